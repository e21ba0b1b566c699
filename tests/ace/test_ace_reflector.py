"""The reflection loop: when it stops, what it shows, what becomes of its tags and its failures."""

import pytest

from ace_bench.core.types import Fault
from tests.methods.playing import ONE, starting_from
from tests.runners.scripted import Scripted, answer, delta, events, gold, kept, play, reflection, right, rollouts

GOLD = gold("toy-train-0")
OFFICIAL = "## OTHERS\n[others-00001] helpful=0 harmful=0 :: first\n[others-00002] helpful=0 harmful=0 :: second\n"


class Trying(Scripted):
    """Numbers the tries of the training sample: each is a session of its own."""

    def __init__(self, *answers, **scripts):
        def generator(call):
            if call.sample != "toy-train-0":
                return right(call)
            said = answers[min(call.trial, len(answers) - 1)]
            return answer(said) if isinstance(said, str) else said

        super().__init__(generator=generator, **scripts)


LOOPS = [  # labels, most rounds, answers by try, tries made, reflections made
    ("gold", 5, [GOLD], 1, 1),
    ("gold", 5, ["a", GOLD], 2, 1),
    ("gold", 3, ["a"], 4, 3),
    ("gold", 1, ["a", "b", GOLD], 2, 1),
    ("correctness", 5, ["a", "a", GOLD], 3, 2),
    ("correctness", 2, ["a"], 3, 2),
    ("none", 5, ["a"], 2, 1),
    ("none", 5, ["a", "b", "b"], 3, 2),
    ("none", 3, ["a", "b", "a", "b"], 4, 3),
]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_when_the_loop_stops(loop, tmp_path):
    labels, rounds, answers, tries, reflections = loop
    ran = play(tmp_path, f"labels={labels}", f"method.max_reflection_rounds={rounds}", script=Trying(*answers), **ONE)
    assert ran.metrics["calls"]["adapt"] == {"generator": tries, "reflector": reflections, "curator": 1}
    assert [line["trial"] for line in rollouts(ran, "adapt")] == list(range(tries))
    assert ran.metrics["rollouts"]["adapt"] == tries


@pytest.mark.parametrize(
    ("labels", "shows_gold", "verdict"), [("gold", True, True), ("correctness", False, True), ("none", False, False)]
)
def test_each_level_of_labels_shows_what_it_may(labels, shows_gold, verdict, tmp_path):
    script = Trying("a", "b")
    play(tmp_path, f"labels={labels}", "method.max_reflection_rounds=2", script=script, **ONE)
    first, second = (call.prompt for call in script.of("reflector"))
    assert ("<reference_answer>" in first, GOLD in first) == (shows_gold, shows_gold)
    assert ("The answer is not correct." in first) == verdict
    assert "thought of a" in first
    assert "thought of b" in second, "each round looks at the latest try"
    assert not any(GOLD in call.prompt for call in script.of("generator"))


def test_a_retry_gets_the_reflection_and_the_curator_the_last_one(tmp_path):
    script = Trying("a", reflector=lambda call: reflection(f"insight {call.nth}"))
    play(tmp_path, "method.max_reflection_rounds=3", script=script, **ONE)
    tries = [call.prompt for call in script.of("generator") if call.sample == "toy-train-0"]
    assert "insight" not in tries[0]
    assert [f"Key insight: insight {n}" in tries[n + 1] for n in range(3)] == [True] * 3
    (curator,) = script.of("curator")
    assert "insight 2" in curator.prompt
    assert "insight 1" not in curator.prompt


def test_tags_count_once_and_strays_are_rejected_with_a_reason(tmp_path):
    tags = [
        {"id": "others-00001", "tag": "helpful"},
        {"id": "others-00001", "tag": "harmful"},  # the first verdict counts
        {"id": "others-00002", "tag": "harmful"},  # shown in the playbook, but not used by the attempt
        {"id": "zz-99999", "tag": "helpful"},  # cited, but there is no such bullet
    ]
    script = Scripted(
        generator=lambda call: answer(gold(call.sample), "others-00001", "zz-99999"),
        reflector=lambda _: {"key_insight": "k", "bullet_tags": tags},
    )
    ran = play(tmp_path, starting_from(tmp_path, OFFICIAL), script=script, **ONE)
    counters = {bullet["id"]: (bullet["helpful"], bullet["harmful"]) for bullet in kept(ran)}
    assert counters == {"others-00001": (1, 0), "others-00002": (0, 0)}
    rejected = {event["operation"]["id"]: event["reason"] for event in events(ran) if event["event"] == "rejected"}
    assert rejected.keys() == {"others-00002", "zz-99999"}
    assert "not a bullet used" in rejected["others-00002"]
    assert "there is no bullet" in rejected["zz-99999"]
    assert ran.metrics["operations"] == {"accepted": 1, "rejected": 2}
    assert "first" in script.of("reflector")[0].prompt
    assert "second" not in script.of("reflector")[0].prompt, "only the bullets used are shown"


def test_a_verdict_of_an_unknown_kind_is_rejected_and_the_rest_stands(tmp_path):
    script = Scripted(
        generator=lambda call: answer(gold(call.sample), "others-00001", "others-00002"),
        reflector=lambda _: reflection(others_00001="splendid", others_00002="neutral"),
    )
    ran = play(tmp_path, starting_from(tmp_path, OFFICIAL), script=script, **ONE)
    assert [(bullet["helpful"], bullet["neutral"]) for bullet in kept(ran)] == [(0, 0), (0, 1)]
    (rejected,) = [event for event in events(ran) if event["event"] == "rejected"]
    assert rejected["operation"]["id"] == "others-00001"
    assert rejected["sample"] == "toy-train-0"


def test_an_unreadable_reflection_reaches_the_curator_as_it_is(tmp_path):
    script = Scripted(reflector=lambda _: "mumble" + "m" * 5_000)
    ran = play(tmp_path, script=script, **ONE)
    assert ran.metrics["faults"]["adapt"] == {}
    assert ran.metrics["unreadable_replies"]["adapt"] == {"reflector": 1}
    (curator,) = script.of("curator")
    assert "This reply could not be read" in curator.prompt
    assert "mumblem" in curator.prompt
    assert "characters left out]" in curator.prompt
    assert "m" * 100 not in curator.prompt


def test_an_unreadable_reflection_can_be_a_fault_and_the_run_goes_on(tmp_path):
    script = Scripted(
        reflector=lambda call: "mumble" if call.sample == "toy-train-1" else reflection(),
        curator=lambda call: delta(f"of {call.sample}"),
    )
    ran = play(tmp_path, "unreadable_replies=fault", script=script, train=3)
    assert ran.status == 0
    assert ran.metrics["faults"]["adapt"] == {"reflector/model/unreadable_reply": 1}
    assert ran.metrics["calls"]["adapt"] == {"generator": 3, "reflector": 4, "curator": 2}
    assert {bullet["content"] for bullet in kept(ran)} == {"of toy-train-0", "of toy-train-2"}
    (fault,) = [event for event in events(ran) if event["event"] == "fault"]
    assert (fault["sample"], fault["role"]) == ("toy-train-1", "reflector")


def test_a_reflector_that_fails_in_a_later_round_leaves_the_earlier_advice(tmp_path):
    script = Trying("a", reflector=lambda call: reflection("early") if call.nth == 0 else "mumble")
    ran = play(tmp_path, "unreadable_replies=fault", script=script, **ONE)
    assert ran.metrics["faults"]["adapt"] == {"reflector/model/unreadable_reply": 1}
    (curator,) = script.of("curator")
    assert "early" in curator.prompt


UNREADABLE = {
    "no JSON": ("The answer must be 7, I think", "The answer must be 7"),
    "a missing key": ({"reasoning": "I add them up", "bullet_ids": []}, "I add them up"),
    "empty": (Fault(owner="model", kind="empty_reply", message="empty"), "it was empty"),
    "cut at the limit": (
        Fault(owner="model", kind="length_truncated", message="cut; raise max_tokens"),
        "it reached the limit of its length",
    ),
    "refused": (Fault(owner="model", kind="refusal", message="the model refused: no"), "the model refused: no"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_attempt_that_cannot_be_read_is_wrong_and_is_learnt_from(kind, tmp_path):
    reply, seen = UNREADABLE[kind]
    script = Scripted(generator=lambda call: reply if "train" in call.sample else answer(gold(call.sample)))
    ran = play(tmp_path, "method.max_reflection_rounds=1", script=script, **ONE)
    assert ran.metrics["faults"] == {"adapt": {}, "evaluate": {}}
    assert ran.metrics["unreadable_replies"]["adapt"] == {"generator": 2}
    (reflector,) = script.of("reflector")
    assert seen in reflector.prompt
    assert "max_tokens" not in reflector.prompt, "advice for the user is not for the model"
    assert len(script.of("curator")) == 1
    assert "1 of 3 replies read at once, 2 unreadable" in (ran.folder / "summary.txt").read_text()


def test_a_failed_attempt_is_neither_reflected_on_nor_curated(tmp_path):
    fault = Fault(owner="model", kind="content_filter", message="no")
    for reflector in ("on", "off"):
        script = Trying(fault)
        ran = play(tmp_path, f"method.reflector='{reflector}'", script=script, **ONE)
        assert ran.status == 0
        assert script.of("reflector") == script.of("curator") == []
        assert ran.metrics["faults"]["adapt"] == {"generator/model/content_filter": 1}
