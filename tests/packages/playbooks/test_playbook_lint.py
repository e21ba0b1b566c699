"""What is found in a playbook before it is shared, and what differs between two."""

from __future__ import annotations

import pytest

from ace_bench.contexts.playbook.bullets import Bullet, measure
from ace_bench.contexts.playbook.embeddings import HashingEmbedder
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.prompts import estimate_tokens
from ace_playbooks.lint import Limits, Solved, lint


def book(*contents, **counters):
    bullets = [
        measure(
            Bullet(id=f"s-{n:05d}", section="s", content=text, created=0, changed=0, tokens=0, **counters),
            estimate_tokens,
        )
        for n, text in enumerate(contents, 1)
    ]
    return Playbook.build_from(bullets, sections=["s"])


def found(playbook, solved=(), **limits):
    findings = lint(playbook, embedder=HashingEmbedder(), limits=Limits(**limits), solved=solved)
    return [(one.kind, one.bullets) for one in findings]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Round the result to two decimals.", "Round the result to two decimals!", "repetition"),
        ("Round the result to two decimals.", "Do not round the result to two decimals.", "contradiction"),
        ("Include the tax in the sum of the invoice.", "Exclude the tax in the sum of the invoice.", "contradiction"),
        ("Always call login before other calls.", "Never call login before other calls.", "contradiction"),
        ("Sort the list of songs by title.", "Never sort the list of songs by title.", "contradiction"),
        (
            'Asked "net loss of the year", answer `Loss`.',
            'Asked "net loss of the year", answer `Gain`.',
            "contradiction",
        ),
        ('Asked "net loss of the year", answer `Loss`.', 'Asked "sales of the year", answer `Sales`.', None),
        ("The API returns five items a page.", "Log in before you send money.", None),
    ],
)
def test_pairs_of_bullets(one, other, kind):
    wanted = [(kind, ("s-00001", "s-00002"))] if kind else []
    assert [pair for pair in found(book(one, other)) if pair[0] == kind or not kind] == wanted


def test_a_training_sample_with_its_answer_is_a_leak_and_either_alone_is_none():
    question = "How many of the twelve trucks that Ada sold last year were painted green?"
    solved = [Solved(sample="train-1", split="train", text=question, answer="seven trucks")]
    leaking = f"When asked {question} answer seven trucks."
    assert found(book(leaking), solved) == [("leak", ("s-00001",))]
    assert found(book("Count seven trucks twice.", question), solved) == []
    assert found(book(leaking)) == []
    for answer, leaks in (("42", [("leak", ("s-00001",))]), ("7", [])):
        short = Solved(sample="train-1", split="train", text=question, answer=answer)
        assert found(book(f"When asked {question} answer {answer}."), [short]) == leaks
