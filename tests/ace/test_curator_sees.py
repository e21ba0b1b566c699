"""A Curator that sees the nearest bullets instead of the whole playbook."""

import re

import pytest

from tests.methods.playing import starting_from
from tests.runners.scripted import Scripted, answer, events, kept, play, reflection

NEAR, FAR, CITED = "oth-00003", "oth-00005", "oth-00009"
TEXTS = {NEAR: "Add the lease payments of a year.", FAR: "Read the mailbox before the calendar.",
         CITED: "Play songs in the order of their albums."}  # fmt: skip
SHOWN = re.compile(r"^\[(oth-\d+)\]", re.MULTILINE)


@pytest.fixture
def initial(tmp_path):
    lines = [f"[{name}] helpful=0 harmful=0 :: {text}" for name, text in TEXTS.items()]
    return starting_from(tmp_path, "\n".join(["## OTHERS", *lines]))


def curate(results, *settings, operations, **script):
    """One step whose attempt cites a bullet, and whose lesson is about another."""
    scripted = Scripted(
        generator=lambda call: answer(f"wrong on {call.sample}", CITED),
        reflector=lambda _: reflection("A year has twelve lease payments to add."),
        curator=lambda _: {"operations": operations},
        **script,
    )
    common = ("method.operations=[ADD,UPDATE,MERGE,REMOVE,TAG]", "method.max_reflection_rounds=1")
    return scripted, play(results, *common, *settings, script=scripted, train=1, test=1)


def change(kind, *ids):
    named = {"ids": [*ids]} if kind == "MERGE" else {"id": ids[0]}
    said = {"tag": "harmful"} if kind == "TAG" else {"content": f"{kind} of {ids[0]}"}
    return {"type": kind, **named, **said}


BLIND = [change("UPDATE", FAR), change("MERGE", NEAR, FAR), change("REMOVE", FAR), change("TAG", FAR)]


def test_it_sees_the_nearest_and_the_cited_bullets_and_can_change_no_others(initial, tmp_path):
    again = {"type": "ADD", "section": "others", "content": TEXTS[FAR].upper()}
    asked = [*BLIND, again, change("UPDATE", NEAR), change("REMOVE", CITED)]
    nearest = ("method.curator_sees=1",)
    script, ran = curate(tmp_path / "a", initial, *nearest, operations=asked)
    (curator,) = script.of("curator")
    assert SHOWN.findall(curator.prompt) == [NEAR, CITED]
    assert "the playbook holds others" in curator.prompt
    assert "holds 3 entries" in curator.prompt
    assert {bullet["id"]: bullet["content"] for bullet in kept(ran)} == {NEAR: f"UPDATE of {NEAR}", FAR: TEXTS[FAR]}
    assert sum(bullet["harmful"] for bullet in kept(ran)) == 0
    reasons = [event["reason"] for event in events(ran) if event["event"] == "rejected"]
    assert reasons == [f"the Curator was not shown bullet {FAR!r}"] * 4 + [f"bullet {FAR} already says exactly this"]
    assert all("the playbook holds others" not in call.prompt for call in script.of("generator"))


@pytest.mark.parametrize("settings", [(), ("method.curator_sees=3",)])
def test_it_sees_and_may_change_all_by_default_and_while_the_playbook_is_small(settings, initial, tmp_path):
    script, ran = curate(tmp_path / "a", initial, *settings, operations=[change("REMOVE", FAR)])
    (curator,) = script.of("curator")
    assert SHOWN.findall(curator.prompt) == [*TEXTS]
    assert "the playbook holds others" not in curator.prompt
    assert FAR not in {bullet["id"] for bullet in kept(ran)}


def test_like_bullets_are_merged_whether_it_saw_them_or_not(initial, tmp_path):
    copy = {"type": "ADD", "section": "others", "content": "Read the mailbox first, before the calendar."}
    nearest = ("method.curator_sees=1", "method.refiner.threshold=0.5")
    _, ran = curate(tmp_path / "a", initial, *nearest, operations=[copy])
    assert [event["bullet"] for event in events(ran) if event["event"] == "merged"] == [FAR]
    assert len(kept(ran)) == 3


def test_the_groups_of_combee_see_their_own_and_the_merger_what_any_of_them_saw(initial, tmp_path):
    lessons = ["A year has twelve lease payments to add.", "The calendar comes after the mailbox."]
    script = Scripted(
        reflector=lambda call: reflection(lessons[int(call.sample[-1])]),
        curator=lambda call: {"operations": [change("UPDATE", *SHOWN.findall(call.prompt)[:1])]},
        merger=lambda _: {"operations": [change("UPDATE", NEAR), change("UPDATE", FAR), change("REMOVE", CITED)]},
    )
    settings = ("mode.batch_size=2", "method.max_reflection_rounds=1", "method.groups=2", "method.copies=1", initial)
    nearest = ("method.curator_sees=1", "method.operations=[UPDATE,REMOVE]")
    ran = play(tmp_path / "a", *settings, *nearest, script=script, method="combee", train=2, test=1)
    assert sorted(SHOWN.findall(call.prompt)[0] for call in script.of("curator")) == [NEAR, FAR]
    (merger,) = script.of("merger")
    assert SHOWN.findall(merger.prompt) == [NEAR, FAR]
    assert [bullet["content"] for bullet in kept(ran)] == [f"UPDATE of {NEAR}", f"UPDATE of {FAR}", TEXTS[CITED]]
