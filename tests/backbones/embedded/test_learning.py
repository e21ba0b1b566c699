"""The embedded reader learns from gold, only from gold, and is misled by wrong lessons, in every kind of question."""

import json

from ace_bench.backbones.embedded.lessons import Entry
from tests.backbones.embedded.conftest import WRONG, advice_of, answer, ask, learn


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
    trusts = [Entry(id="", content="", helpful=n, harmful=m).trust for n, m in ((9, 0), (0, 3), (0, 4), (4, 3))]
    assert trusts == [1.0, 0.25, 0.2, 0.5]


def test_a_reflection_with_the_gold_leads_the_retry(world):
    reflection = ask("reflector", **world.task, answer=answer(world), gold=world.gold, feedback=WRONG)
    assert answer(world, reflection=advice_of(reflection)) == world.gold
    missing = ask("reflector", **world.task, answer=answer(world), feedback=WRONG, labels="correctness")
    assert world.gold not in json.dumps(missing), "what no prompt shows is in no reply"
