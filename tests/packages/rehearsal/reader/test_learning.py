"""The embedded reader learns from gold, only from gold, and is misled by wrong lessons, in every kind of question."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ace_rehearsal.reader import EmbeddedBackbone
from tests.packages.rehearsal.reader.conftest import QUERIES, TAGS, WRONG, Ask, Render, World, advice_of, answer, learn


def test_gold_teaches_and_shuffled_gold_does_not(ask: Ask, world: World) -> None:
    assert answer(ask, world) != world.gold
    assert answer(ask, world, playbook=learn(ask, world)) == world.gold
    assert answer(ask, world, playbook=learn(ask, world.shuffled())) != world.gold


def test_without_labels_nothing_is_learnt(ask: Ask, world: World) -> None:
    assert learn(ask, world, gold=None, feedback="", labels="none") == ""
    assert learn(ask, world, gold=None, feedback=WRONG, labels="correctness") == ""


def test_a_harmful_lesson_hurts_until_its_counters_say_so(ask: Ask, world: World) -> None:
    """The lesson of a wrong gold misleads; the right lesson beside it wins once the wrong one is known to harm."""
    right, wrong = learn(ask, world), learn(ask, world.shuffled()).replace("new-", "bad-")
    names = [line[1:10] for line in wrong.splitlines() if line.startswith("[bad-")]
    counters = "\n".join(f"{name}: helpful 0, harmful 9, neutral 0" for name in names)
    assert answer(ask, world, playbook=wrong) != world.gold
    assert answer(ask, world, playbook=wrong, counters=counters) == answer(ask, world)
    assert answer(ask, world, playbook=f"{wrong}\n{right}", counters=counters) == world.gold


def test_a_reflector_that_is_to_mislead_teaches_what_is_wrong(ask: Ask, world: World) -> None:
    misled = learn(ask, world, reflector="reflector_harmful")
    assert answer(ask, world, playbook=misled) != world.gold


def test_a_reflection_with_the_gold_leads_the_retry(ask: Ask, world: World) -> None:
    task = {"background": world.background, "question": world.question}
    reflection = ask("reflector", **task, answer=answer(ask, world), gold=world.gold, feedback=WRONG)
    assert answer(ask, world, reflection=advice_of(reflection)) == world.gold
    missing = ask("reflector", **task, answer=answer(ask, world), feedback=WRONG, labels="correctness")
    assert world.gold not in json.dumps(missing), "what no prompt shows is in no reply"


def test_bullets_are_judged_by_what_they_led_to(ask: Ask, world: World) -> None:
    playbook = learn(ask, world)
    task = {"background": world.background, "question": world.question, "bullets": playbook}
    cited = ask("generator", **task, playbook=playbook)["bullet_ids"]
    assert cited
    good = ask("reflector", **task, answer=world.gold, gold=world.gold, feedback="The answer is correct.")
    tags = {tag["id"]: tag["tag"] for tag in good["bullet_tags"]}
    assert {tags[name] for name in cited} == {"helpful"}
    assert good["key_insight"] == "", "what the playbook taught is not taught again"
    other = world.shuffled().train[0][1] if world.gold != world.shuffled().train[0][1] else world.train[0][1]
    bad = ask("reflector", **task, answer=world.gold, gold=other, feedback=WRONG)
    assert "harmful" in {tag["tag"] for tag in bad["bullet_tags"]}


def test_a_right_answer_that_nothing_taught_is_kept(ask: Ask) -> None:
    known = {"background": TAGS.background, "question": TAGS.question, "answer": TAGS.gold}
    reflection = ask("reflector", **known, feedback="The answer is correct.", labels="correctness")
    assert "LossCarryforwards" in reflection["key_insight"]


def test_values_are_filled_in_where_the_lesson_had_its_own(ask: Ask) -> None:
    playbook = learn(ask, QUERIES)
    question = QUERIES.question.replace("Corvale", "Upper Dunhaven")
    fields = {"background": QUERIES.background, "question": question, "playbook": playbook}
    assert "town = 'Upper Dunhaven'" in ask("generator", **fields)["final_answer"]


def test_worked_examples_teach_like_bullets(render: Render, world: World) -> None:
    shown = "\n\n".join(f"Question: {question}\nAnswer: {gold}" for question, gold in world.train)
    fields = {"background": world.background, "question": world.question, "demonstrations": shown}
    assert EmbeddedBackbone().complete(render("demonstrated", **fields), role="", session="").text == world.gold


def test_answers_do_not_depend_on_the_hash_seed_or_on_what_was_asked_before() -> None:
    code = (
        "import json\n"
        "from ace_rehearsal.reader import EmbeddedBackbone\n"
        "from ace_bench.store.prompts import PromptSet\n"
        "from tests.packages.rehearsal.reader.conftest import FIELDS, PROMPTS, WORLDS, learn\n"
        "render = PromptSet(*PROMPTS, task='finer', prompt_group='qa').render\n"
        "def ask(role, **fields):\n"
        "    messages = render(role, {**FIELDS, **fields})\n"
        "    text = EmbeddedBackbone().complete(messages, role='', session='').text\n"
        "    print(text)\n"
        "    return json.loads(text)\n"
        "for world in WORLDS.values():\n"
        "    playbook = learn(ask, world)\n"
        "    ask('generator', background=world.background, question=world.question, playbook=playbook)\n"
    )
    root = Path(__file__).parents[4]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "LossCarryforwards" in outputs.pop()
