"""How well each role did is counted from what it said, and is the same for a run without an end and an older folder."""

import re
from dataclasses import replace

import pytest

from ace_bench.report.page.run_data import run_data
from ace_bench.report.records import read_run
from ace_bench.store.roles import (
    Citations,
    Curations,
    Proposals,
    Replies,
    RoleQuality,
    SecondTries,
    Sentences,
    advice_on_roles,
    roles_of,
)
from tests.runners.scripted import Scripted, answer, delta, gold, lesson, play, reflection, right


def first_sentence(prompt):
    """The first sentence of a template that counts as one."""
    return next(part for part in re.split(r"(?<=[.!?])\s+|\n+", prompt) if len(part.split()) > 4).strip()


def lesson_on(call):
    return f"What was learnt concerns {call.sample} alone."


def generator(call):
    """Wrong at first; only sample 1 turns right, and sample 2 is asked twice."""
    if call.sample == "toy-train-2" and call.nth == 0:
        return "I would rather not say."
    if call.sample.startswith("toy-test"):
        return answer(gold(call.sample) if call.sample == "toy-test-0" else "wrong", *cited_by(call))
    return right(call) if call.trial and call.sample == "toy-train-1" else answer(f"no {call.trial}", "str-99999")


def cited_by(call):
    return {"toy-test-0": ("others-00001",), "toy-test-1": ("others-00001", "others-77777")}.get(call.sample, ())


def reflector(call):
    tags = {"str_99999": "helpful", "others_00001": "splendid"}
    return {**reflection(lesson_on(call), **tags), "reasoning": f"{first_sentence(call.prompt)}\nToo short."}


def curator(call):
    """Says what the Reflector said on sample 0, and nothing on sample 3."""
    said = {"toy-train-0": delta(lesson_on(call)), "toy-train-3": delta()}
    return said.get(call.sample) or lesson(call)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    script = Scripted(generator=generator, reflector=reflector, curator=curator)
    return play(tmp_path_factory.mktemp("roles"), "method.max_reflection_rounds=1", script=script)


def test_every_figure_of_every_role(ran):
    roles = roles_of(ran.metrics)
    assert roles.keys() == {"generator", "reflector", "curator"}
    generator, reflector, curator = (roles[role] for role in ("generator", "reflector", "curator"))
    assert generator.replies == Replies(asked=12, at_once=10, second_ask=2)
    assert generator.second_tries == SecondTries(total=4, right=1)
    assert generator.citations == Citations(
        attempts=12,
        valid=2,
        invented=8,
        inventing=8,
        with_bullets=2,
        right_with_bullets=1,
        without_bullets=5,
        right_without_bullets=0,
    )
    assert reflector.sentences == Sentences(total=8, copied=4, shared=3)
    assert reflector.proposals == {
        "votes": Proposals(accepted=0, refused={"not a bullet used": 4, "there is no bullet": 4})
    }
    assert curator.sentences == curator.bullets == Sentences(total=1, copied=1)
    assert curator.proposals == {"bullets": Proposals(accepted=3)}
    assert curator.curations == Curations(total=4, empty=1, wrong=4, empty_wrong=1)


def test_the_summary_has_a_line_for_each_role(ran):
    lines = " ".join((ran.folder / "summary.txt").read_text().replace("│", " ").split())
    assert "generator 10 of 12 replies read at once, 2 after a second ask" in lines
    assert "1 of 4 second tries turned right" in lines
    assert "invented bullets cited in 8 of 12 attempts" in lines
    assert "1 of 2 right with a cited bullet, 0 of 5 without" in lines
    assert "nothing proposed in 1 of 4 replies (1 of 4 after a wrong attempt)" in lines


def test_the_page_counts_where_the_metrics_do_not(ran):
    """As in a run that was stopped, and in folders of older versions."""
    run = read_run(ran.folder)
    counted = run_data(run)["roles"]
    metrics = {name: part for name, part in run.metrics.items() if name != "role_quality"}
    assert run_data(replace(run, metrics=metrics))["roles"] == counted


def refusing(accepted, refused):
    return RoleQuality(proposals={"votes": Proposals(accepted=accepted, refused={"unknown tag": refused})})


@pytest.mark.parametrize(
    ("quality", "advice"),
    [
        (RoleQuality(replies=Replies(asked=40, at_once=35, unreadable=5)), "raise sampling.ROLE.max_tokens"),
        (RoleQuality(replies=Replies(asked=40, at_once=40, cut=5)), "many replies are unreadable or cut (critic)"),
        (RoleQuality(replies=Replies(asked=40, at_once=36, unreadable=4)), None),
        (RoleQuality(replies=Replies(asked=40, at_once=20, unreadable=20, all_reasoning=20)), None),
        (refusing(8, 229), "most votes of the critic are refused (229 unknown tag)"),
        (refusing(10, 10), None),
        (refusing(1, 8), None),
        (
            RoleQuality(curations=Curations(total=40, empty=30, wrong=20, empty_wrong=10)),
            "after 10 of 20 wrong attempts",
        ),
        (RoleQuality(curations=Curations(total=40, empty=30, wrong=20, empty_wrong=9)), None),
        (RoleQuality(bullets=Sentences(total=10, copied=6, shared=6)), "repeat its instructions"),
        (RoleQuality(bullets=Sentences(total=10, copied=10, shared=5)), None),
        (RoleQuality(second_tries=SecondTries(total=158, right=6)), "only 6 of 158 second tries turned right"),
        (RoleQuality(second_tries=SecondTries(total=20, right=1)), None),
        (RoleQuality(second_tries=SecondTries(total=19)), None),
        (RoleQuality(citations=Citations(attempts=40, inventing=20)), "do not exist in 20 of 40 attempts"),
        (RoleQuality(citations=Citations(attempts=40, inventing=19)), None),
    ],
)
def test_advice_names_cause_and_fix_where_a_figure_is_far_off(quality, advice):
    sentences = advice_on_roles({"critic": quality})
    assert len(sentences) == (advice is not None)
    assert all(advice in sentence for sentence in sentences)
