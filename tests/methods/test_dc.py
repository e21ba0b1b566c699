"""Dynamic Cheatsheet: what its curator is shown, what it keeps, and when it writes."""

import pytest

from ace_bench.methods.dc import behind_first_tag, between_tags
from tests.launching import launch
from tests.methods.field.making import BROKEN, TOO_LONG, Themed
from tests.methods.playing import context_of
from tests.runners.scripted import Scripted, Toy, events, gold, play, rollouts, steps


def said(text):
    return f"I think so.\n<answer>{text}</answer>"


def sheet_in(prompt):
    return prompt.partition("<cheatsheet>\n")[2].partition("\n</cheatsheet>")[0]


def growing(call):
    """A curator that keeps what is there and adds the sample it is asked about."""
    return f"Fine. <cheatsheet>\n{sheet_in(call.prompt)}\n- saw {call.sample}\n</cheatsheet>"


def dc(tmp_path, *overrides, method="dc", mode="online", curator=growing, generator=None, **sizes):
    script = Scripted(generator=generator or (lambda call: said(gold(call.sample))), curator=curator)
    settings = ("mode=online", "mode.before=false") if mode == "online" else ("mode.before=false",)
    ran = play(tmp_path, *settings, *overrides, script=script, method=method, **sizes)
    assert ran.status == 0
    return ran, script


def order_of(ran):
    return [sample for step in steps(ran) for sample in step["samples"]]


@pytest.mark.parametrize(
    ("reply", "text", "authors"),
    [
        ("<cheatsheet>\n- a\n</cheatsheet>", "- a", "- a"),
        ("A <cheatsheet> is due: <cheatsheet>- a\n- b</cheatsheet> done", "- a\n- b", "is due: <cheatsheet>- a\n- b"),
        ("<cheatsheet>\n- cut o", None, "- cut o"),
        ("- a\n</cheatsheet>", None, None),
        ("</cheatsheet> - a <cheatsheet>", None, ""),
        ("<cheatsheet> \n </cheatsheet>", None, ""),
        ("", None, None),
    ],
)
def test_only_what_stands_between_both_tags_is_a_cheatsheet(reply, text, authors):
    assert between_tags(reply) == text
    assert behind_first_tag(reply) == authors


def test_the_authors_are_shown_the_attempts_where_the_curator_writes_no_sheet(tmp_path):
    ran, script = dc(tmp_path, "method.protocol=authors", method="dc_rs", curator=lambda _: "no tags", test=3)
    first, second = (sheet_in(call.prompt) for call in script.of("generator")[:2])
    assert first == "(empty)"
    assert second.startswith("Earlier attempts")
    assert f"Question: ask {order_of(ran)[0]}?\nOutput: " in second
    assert ran.metrics["calls"]["adapt"] == {"curator": 3, "generator": 3}


def test_each_sample_is_answered_under_the_sheet_that_the_one_before_left(tmp_path):
    ran, script = dc(tmp_path, test=4)
    order = order_of(ran)
    shown = {call.sample: sheet_in(call.prompt) for call in script.of("generator")}
    for place, sample in enumerate(order):
        seen = [line for line in shown[sample].splitlines() if line.startswith("- saw")]
        assert seen == [f"- saw {earlier}" for earlier in order[:place]]
    assert ran.metrics["calls"]["adapt"] == {"curator": 4, "generator": 4}
    assert ran.metrics["headline"]["after"] == 100.0
    assert ran.metrics["operations"] == {"rewritten": 4}
    assert context_of(ran)["text"].count("- saw") == 4


@pytest.mark.parametrize(
    "reply", ["<cheatsheet>\n- cut o", "no tags", BROKEN], ids=["cut off", "without tags", "refused"]
)
def test_a_reply_without_a_whole_sheet_keeps_the_old_one(reply, tmp_path):
    def curator(call):
        return growing(call) if "- saw" not in call.prompt else reply

    ran, _ = dc(tmp_path, curator=curator, test=3)
    assert context_of(ran)["text"].count("- saw") == 1
    assert [event["event"] for event in events(ran)] == ["rewritten", *["fault" if reply is BROKEN else "kept"] * 2]
    assert {event["sample"] for event in events(ran)} == set(order_of(ran))


@pytest.mark.parametrize(
    ("labels", "verdict", "truth"), [("gold", True, True), ("correctness", True, False), ("none", False, False)]
)
@pytest.mark.parametrize("method", ["dc", "dc_rs"])
def test_the_curator_is_shown_what_labels_reveal(method, labels, verdict, truth, tmp_path):
    _, script = dc(tmp_path, f"labels={labels}", method=method, generator=lambda _: said("a guess"), test=3)
    for call in script.of("curator"):
        assert "<answer>a guess</answer>" in call.prompt
        assert ("The answer is not correct." in call.prompt) is verdict
        assert ("gold of toy" in call.prompt) is truth


def test_a_failed_rollout_teaches_nothing_and_a_missing_answer_is_just_wrong(tmp_path):
    def generator(call):
        return BROKEN if call.sample.endswith("0") else "no tag" if call.sample.endswith("1") else said("x")

    ran, script = dc(tmp_path, generator=generator, test=3)
    assert sorted(call.sample for call in script.of("curator")) == ["toy-test-1", "toy-test-2"]
    assert ran.metrics["faults"]["adapt"] == {"generator/model/content_filter": 1}
    assert ran.metrics["operations"]["skipped"] == 1
    assert ran.metrics["counters"]["adapt"]["without_answer"] == 1


def test_a_batch_is_rewritten_for_sample_by_sample(tmp_path):
    ran, script = dc(tmp_path, "mode.batch_size=3", mode="offline", train=3, test=1)
    assert [sheet_in(call.prompt).count("- saw") for call in script.of("curator")] == [0, 1, 2]
    assert context_of(ran)["text"].count("- saw") == 3
    assert "- saw" in next(call.prompt for call in script.of("generator") if "test" in call.sample)


class FourSubjects(Themed):
    subjects = (*Themed.subjects, "a river that runs north", "moss on slate")


def test_retrieval_shows_the_most_similar_attempts_before_the_answer(tmp_path):
    ran, script = dc(tmp_path, "method.retrieved=2", method="dc_rs", task=FourSubjects, test=12)
    order = order_of(ran)
    assert [call.sample for call in script.of("curator")] == order[1:], "the first sample has nothing before it"
    calls = [(role, call.sample) for role, call in script.calls]
    for sample in order[1:]:
        assert calls.index(("curator", sample)) < calls.index(("generator", sample))
    for place, call in enumerate(script.of("curator"), start=1):
        shown = call.prompt.partition("<episodes>")[2].partition("</episodes>")[0]
        number = int(order[place].rpartition("-")[2])
        related = [name for name in order[:place] if int(name.rpartition("-")[2]) % 4 == number % 4]
        assert shown.count("Question: ") == min(2, place)
        assert all(f"part {name.rpartition('-')[2]}?" in shown for name in related[:2])
        assert gold(order[place]) not in call.prompt
    sheets = {call.sample: sheet_in(call.prompt) for call in script.of("generator")}
    assert all(f"- saw {sample}" in sheets[sample] for sample in order[1:])
    assert len(context_of(ran)["episodes"]) == 12


def test_retrieval_prepares_a_window_once(tmp_path):
    ran, script = dc(tmp_path, "mode.window=2", method="dc_rs", test=4)
    order = order_of(ran)
    assert [call.sample for call in script.of("curator")] == [order[2]]
    first = {line["sample"]: line["context"] for line in reversed(rollouts(ran, "adapt")) if line["trial"] == 0}
    assert first[order[2]] == first[order[3]]
    assert ran.metrics["headline"]["n"] == 4


def test_retrieved_attempts_give_way_where_a_prompt_is_too_long(tmp_path):
    def cramped(call):
        return TOO_LONG if call.prompt.count("Output: ") > 1 else growing(call)

    ran, _ = dc(tmp_path, method="dc_rs", curator=cramped, test=3)
    assert {"event": "dropped_from_prompt", "role": "curator", "items": 1, "sample": order_of(ran)[2]} in events(ran)


def test_a_saved_sheet_is_a_start_and_can_be_evaluated(tmp_path):
    ran, _ = dc(tmp_path, test=2)
    saved = ran.folder / "contexts" / "final.json"
    _, script = dc(tmp_path, f"method.initial={saved}", test=3)
    assert all(sheet_in(call.prompt).count("- saw") >= 2 for call in script.of("generator"))
    frozen = Scripted(generator=lambda call: said(sheet_in(call.prompt).count("- saw")))
    launch(
        tmp_path,
        "task=formula",
        "task.source=sample",
        "method=dc_rs",
        "mode=evaluate",
        f"mode.context={saved}",
        backbone=lambda _: frozen,
        task=lambda _: Toy(),
    )
    assert len(frozen.calls) == 4
    assert {role for role, _ in frozen.calls} == {"generator"}
    assert all("- saw" in call.prompt for call in frozen.of("generator"))
