"""The embedded reader learns from gold, only from gold, and is misled by wrong lessons, in every kind of question."""

import json
import os
import subprocess
import sys

import pytest

from tests.launching import ROOT
from tests.packages.rehearsal.reader.conftest import (
    WORLDS,
    WRONG,
    advice_of,
    answer,
    ask,
    learn,
)


def test_gold_teaches_and_shuffled_or_hidden_gold_does_not(world):
    assert answer(world) != world.gold
    assert answer(world, playbook=learn(world)) == world.gold
    assert answer(world, playbook=learn(world.shuffled())) != world.gold
    assert answer(world, playbook=learn(world, reflector="reflector_harmful")) != world.gold
    assert learn(world, gold=None, feedback="", labels="none") == ""
    assert learn(world, gold=None, feedback=WRONG, labels="correctness") == ""


def test_a_harmful_lesson_hurts_until_its_counters_say_so(world):
    """The lesson of a wrong gold misleads; the right lesson beside it wins once the wrong one is known to harm."""
    right, wrong = learn(world), learn(world.shuffled()).replace("new-", "bad-")
    names = [line[1:10] for line in wrong.splitlines() if line.startswith("[bad-")]
    counters = "\n".join(f"{name}: helpful 0, harmful 9, neutral 0" for name in names)
    assert answer(world, playbook=wrong) != world.gold
    assert answer(world, playbook=wrong, counters=counters) == answer(world)
    assert answer(world, playbook=f"{wrong}\n{right}", counters=counters) == world.gold


def test_a_reflection_with_the_gold_leads_the_retry(world):
    reflection = ask("reflector", **world.task, answer=answer(world), gold=world.gold, feedback=WRONG)
    assert answer(world, reflection=advice_of(reflection)) == world.gold
    missing = ask("reflector", **world.task, answer=answer(world), feedback=WRONG, labels="correctness")
    assert world.gold not in json.dumps(missing), "what no prompt shows is in no reply"


def test_bullets_are_judged_by_what_they_led_to(world):
    playbook = learn(world)
    cited = ask("generator", **world.task, playbook=playbook)["bullet_ids"]
    assert cited
    attempt = {**world.task, "bullets": f"{playbook}\n[new-00009] (others) look twice", "answer": world.gold}
    good = ask("reflector", **attempt, gold=world.gold, feedback="The answer is correct.")
    tags = {tag["id"]: tag["tag"] for tag in good["bullet_tags"]}
    assert {tags[name] for name in cited} == {"helpful"}
    assert tags["new-00009"] == "neutral"
    assert good["key_insight"] == "", "what the playbook taught is not taught again"
    other = next(gold for _, gold in world.train if gold != world.gold)
    bad = ask("reflector", **attempt, gold=other, feedback=WRONG)
    assert "harmful" in {tag["tag"] for tag in bad["bullet_tags"]}


@pytest.mark.slow
def test_answers_do_not_depend_on_the_hash_seed_or_on_what_was_asked_before():
    code = (
        f"from {__name__} import *\nfor world in WORLDS.values(): print(p := learn(world), answer(world, playbook=p))"
    )
    assert "LossCarryforwards" in learn(WORLDS["tags"])
    outputs = {
        subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
