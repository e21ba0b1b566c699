"""The authors' batches: how reflections are dealt, which tags count, what a Curator is shown, and what is refused."""

import json
import re

import pytest

from ace_bench.core.types import Fault
from tests.launching import launch
from tests.methods.playing import starting_from
from tests.runners.scripted import Scripted, answer, play, reflection, steps

SETTINGS = ("protocol=official", "method.measure_post_update=false", "method.max_reflection_rounds=1")
DEALT = re.compile(r"\[Sample (\d+)\].*?insight of (toy-train-\d)", re.DOTALL)


def curated(*contents):
    added = [{"type": "ADD", "section": "others", "content": content} for content in contents]
    return {"reasoning": "because", "operations": added}


def learn(folder, *overrides, train=4, **scripts):
    usual = {"reflector": lambda call: reflection(f"insight of {call.sample}"), "curator": lambda _: curated("new")}
    script = Scripted(**{**usual, **scripts})
    return script, play(folder, *SETTINGS, *overrides, script=script, method="combee", train=train)


def test_copies_are_shuffled_and_each_curator_reads_a_part_under_the_playbook_of_the_one_before(tmp_path):
    script, _ = learn(tmp_path / "a", "mode.batch_size=4", train=6)
    prompts = [call.prompt for call in script.of("curator")]
    dealt = [DEALT.findall(prompt) for prompt in prompts]
    assert [[int(number) for number, _ in part] for part in dealt] == [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]]
    of_first_batch = [sample for part in dealt[:2] for _, sample in part]
    assert sorted(of_first_batch) == sorted([f"toy-train-{number}" for number in range(4)] * 2)
    assert [re.search(r"Step (\d+) of (\d+)", prompt).groups() for prompt in prompts] == [
        ("4", "6"), ("8", "6"), ("8", "6"),
    ]  # fmt: skip
    assert ["misc-00001" in prompt for prompt in prompts] == [False, True, True]
    again, _ = learn(tmp_path / "b", "mode.batch_size=4", "concurrency=1", train=6)
    assert [call.prompt for call in again.of("curator")] == prompts
    other, _ = learn(tmp_path / "c", "mode.batch_size=4", "seed=1", train=6)
    assert [call.prompt for call in other.of("curator")] != prompts
    in_order, _ = learn(tmp_path / "d", "mode.batch_size=3", "method.copies=1", "method.curator_batch_size=2", train=3)
    parts = [DEALT.findall(call.prompt) for call in in_order.of("curator")]
    assert parts == [[("1", "toy-train-0"), ("2", "toy-train-1")], [("3", "toy-train-2")]]


def test_the_last_tag_of_a_batch_counts_once(tmp_path):
    initial = starting_from(tmp_path, "## OTHERS\n[misc-00007] helpful=2 harmful=0 :: keep calm\n")

    def tag(call):
        verdict = "harmful" if call.sample == "toy-train-2" else "helpful"
        return {**reflection("insight"), "bullet_tags": [{"id": "misc-00007", "tag": verdict}]}

    cite = {"generator": lambda call: answer(f"wrong on {call.sample}", "misc-00007")}
    _, ran = learn(tmp_path / "a", "mode.batch_size=3", initial, train=3, reflector=tag, **cite)
    text = json.loads((ran.folder / "contexts" / "final.json").read_text())["text"]
    assert "[misc-00007] helpful=2 harmful=1 :: keep calm" in text


TOO_LONG = Fault(owner="model", kind="context_length", message="too long")


@pytest.mark.parametrize("role", ["generator", "reflector"])
def test_a_sample_about_which_a_call_fails_gives_no_tag_and_no_lesson(role, tmp_path):
    initial = starting_from(tmp_path, "## OTHERS\n[misc-00007] helpful=2 harmful=0 :: keep calm\n")
    failing = "toy-train-2"

    def tag(call):
        verdict = "harmful" if call.sample == failing else "helpful"
        return {**reflection(f"insight of {call.sample}"), "bullet_tags": [{"id": "misc-00007", "tag": verdict}]}

    reply = {"generator": lambda call: answer(f"wrong on {call.sample}", "misc-00007"), "reflector": tag}

    def fail(call):
        again = call.nth > 0 or "insight of" in call.prompt
        return TOO_LONG if call.sample == failing and again else reply[role](call)

    settings = ("mode.batch_size=3", "method.max_reflection_rounds=2", initial)
    script, ran = learn(tmp_path / "a", *settings, train=3, **{**reply, role: fail})
    dealt = [sample for call in script.of("curator") for _, sample in DEALT.findall(call.prompt)]
    assert sorted(dealt) == ["toy-train-0", "toy-train-0", "toy-train-1", "toy-train-1"]
    text = json.loads((ran.folder / "contexts" / "final.json").read_text())["text"]
    assert "[misc-00007] helpful=3 harmful=0 :: keep calm" in text


def test_an_attempt_that_fails_after_a_batch_undoes_it(tmp_path):
    def fail(call):
        return TOO_LONG if call.sample == "toy-train-1" and "misc-00001" in call.prompt else answer("wrong")

    _, ran = learn(tmp_path, "mode.batch_size=2", "method.measure_post_update=true", train=4, generator=fail)
    first, second = steps(ran)
    assert [event["operation"]["type"] for event in first["events"] if event["event"] == "rejected"] == [
        "all of the batch"
    ]
    assert first["context_size"] == 0
    assert second["context_size"] > 0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("method=combee",), "mode.batch_size=1 is method=ace in the authors' code"),
        (("method=ace", "mode.batch_size=8"), "the authors' batches are method=combee"),
        (("method=combee", "mode.batch_size=8", "method.curator_every=2"), "curated at every step"),
        (("method=combee", "mode.batch_size=8", "task=appworld"), "not their parallel AppWorld agent"),
        (("method=ace", "mode.batch_size=8", "task=appworld"), "the authors' parallel agent is not followed"),
    ],
)
def test_what_is_not_followed_is_refused(overrides, message, tmp_path, capsys):
    words = ("task=finer", "backbone=embedded", "protocol=official", "dry_run=true", *overrides)
    assert launch(tmp_path, *words).status == 2
    assert message in " ".join(capsys.readouterr().err.split())
