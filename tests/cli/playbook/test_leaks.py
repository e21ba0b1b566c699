"""A bullet that repeats a sample of the run together with its answer."""

from __future__ import annotations

from ace_bench.cli.playbook.leaks import Leak, Solved, find_leaks
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.playbook import Playbook

QUESTION = "How many of the twelve trucks that Ada sold last year were painted green?"


def leaks(content, answer):
    bullet = Bullet(id="s-00001", section="s", content=content, created=0, changed=0, tokens=1)
    solved = Solved(sample="train-1", split="train", text=QUESTION, answer=answer)
    return [*find_leaks(Playbook.build_from([bullet], sections=["s"]), [solved])]


def test_a_training_sample_with_its_answer_is_a_leak_and_either_alone_is_none():
    found = [Leak(bullet="s-00001", split="train", sample="train-1")]
    assert leaks(f"When asked {QUESTION} answer seven trucks.", "seven trucks") == found
    assert leaks("Count seven trucks twice.", "seven trucks") == leaks(QUESTION, "seven trucks") == []
    for answer, expected in (("42", found), ("7", [])):
        assert leaks(f"When asked {QUESTION} answer {answer}.", answer) == expected
