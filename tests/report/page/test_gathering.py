"""What the report says of a run: prompts as they were sent, contexts by step, and no more than the folder holds."""

import base64
import json
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.report.histories import history
from ace_bench.report.page.gathering import gather
from ace_bench.report.page.texts import Texts
from ace_bench.report.page.writing import report_page
from ace_bench.report.records import read_run
from ace_bench.store.checksums import FILE as CHECKSUMS
from ace_bench.store.samples import packed, unpacked
from tests.launching import launch
from tests.report.page.runs import FINER, HOSTILE, changed, copied, recorded_prompts


@pytest.fixture(scope="module")
def ace(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("ace"), *FINER, "limit=5", "mode.epochs=2").folder


def unfolded(texts, chain):
    """The texts of a chain, line by line, as the page's script makes them."""
    lines = []
    for edit in texts["chains"].get(chain, []):
        before, lines, numbers = lines, [], iter(edit)
        for number in numbers:
            if number < 0:
                lines.append(texts["lines"][-1 - number])
            else:
                lines += before[number : number + next(numbers)]
        yield lines


def told_prompts(data):
    prompts = {}
    for call in data["calls"]:
        assert call["prompt"] is not None
        chain = prompts.setdefault(call["role"], list(unfolded(data["texts"], call["role"])))
        yield call["role"], call["session"], "\n".join(chain[call["prompt"]["at"]])


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "c\u2028", "d e"]), max_size=8).map("\n".join), max_size=8))
def test_texts_come_out_as_they_went_in(texts):
    packed_texts = Texts()
    places = [packed_texts.add("chain", [text]) for text in texts]
    assert places == list(range(len(texts)))
    assert ["\n".join(lines) for lines in unfolded(packed_texts.record(), "chain")] == texts


@pytest.mark.parametrize(
    "overrides",
    [
        ("method=ace", "mode.epochs=2", "mode.batch_size=2"),
        ("method=ace", "mode=online", "mode.window=3", "labels=none"),
        ("method=ace", "mode=online", "method.update=rewrite"),
        ("method=ace", "method.reflector=off", "mode.epochs=1"),
        ("method=dc", "mode=online"),
        ("method=dc_rs", "mode=online", "mode.window=2"),
        ("method=icl",),
        ("method=base",),
    ],
    ids=" ".join,
)
def test_prompts_are_those_that_were_sent(overrides, tmp_path):
    ran, sent = recorded_prompts(tmp_path, *FINER, "limit=6", *overrides)
    assert sorted(told_prompts(gather(read_run(ran.folder)))) == sent


def test_prompts_that_were_cut_to_fit_are_shown_as_cut(tmp_path):
    ran, sent = recorded_prompts(tmp_path, *FINER, "limit=8", "mode.epochs=1", longest=6_500)
    assert ran.metrics["dropped_items"]["evaluate"] > 0
    assert sorted(told_prompts(gather(read_run(ran.folder)))) == sent


def test_a_prompt_that_does_not_fit_its_call_is_not_shown(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    template = folder / "prompts" / "qa" / "reflector.j2"
    template.write_text(template.read_text().replace("{% block user %}", "{% block user %}Be kind. "))
    calls = gather(read_run(folder))["calls"]
    assert {call["role"] for call in calls if call["prompt"] is None} >= {"reflector"}
    assert all(call["prompt"] for call in calls if call["stage"] == "evaluate")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "samples.json").unlink(), "did not keep what prompts are made from"),
        (lambda folder: (folder / "prompts" / "qa" / "generator.j2").unlink(), ""),
        (
            lambda folder: (folder / "config.yaml").write_text(
                (folder / "config.yaml").read_text().replace("ace_bench.methods.ace.method.Ace", "os.system")
            ),
            "os.system, which is not part of ace-bench",
        ),
    ],
    ids=["no samples", "no template", "foreign class"],
)
def test_without_what_prompts_are_made_from_the_rest_is_still_shown(spoil, said, ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    spoil(folder)
    data = gather(read_run(folder))
    assert said in " ".join(data["notes"])
    assert not any(call["prompt"] for call in data["calls"] if call["role"] == "generator")
    assert len(data["steps"]) == 10
    assert data["rollouts"]


def test_templates_of_a_foreign_folder_run_in_a_sandbox(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    mark = tmp_path / "touched"
    evil = f"{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}{{{{ cycler.__init__.__globals__.os.mkdir('{mark}') }}}}"
    (folder / "prompts" / "qa" / "generator.j2").write_text("{% block user %}" + evil + "{% endblock %}")
    data = gather(read_run(folder))
    assert not mark.exists()
    assert data["rollouts"]


def test_bullets_by_step_are_those_of_the_history(ace):
    data = gather(read_run(ace))
    bullets = {bullet["id"]: bullet for bullet in data["initial"]}
    contexts = list(history(ace))
    for step, context in zip(data["steps"], contexts[1:], strict=True):
        bullets.update({bullet["id"]: bullet for bullet in step["set"]})
        for gone in step["removed"]:
            del bullets[gone]
        assert bullets == {bullet["id"]: bullet for bullet in context.dump()["bullets"]}


def test_other_contexts_are_told_line_by_line(tmp_path):
    folder = launch(tmp_path, *FINER, "limit=4", "mode=online", "method=dc").folder
    texts = ["\n".join(lines) for lines in unfolded(gather(read_run(folder))["texts"], "context")]
    assert texts == [context.render(None)["cheatsheet"] for context in history(folder)]


def test_a_stopped_run_has_a_report(tmp_path):
    folder = launch(tmp_path, *FINER, "limit=6", "budget.calls=14", "mode.before=false").folder
    data = gather(read_run(folder))
    assert data["about"]["state"] == "stopped"
    assert data["steps"]
    assert data["notes"] == []


def test_a_run_that_stopped_before_its_first_step_has_a_report(tmp_path):
    folder = launch(tmp_path, *FINER, "limit=6", "budget.calls=1").folder
    assert "The folder holds no context yet." in gather(read_run(folder))["notes"]


def test_damaged_lines_and_templates_are_left_out_and_said(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    whole = gather(read_run(ace))
    for name in ("journal.jsonl", "calls.jsonl"):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        place = next(place for place, line in enumerate(lines) if b'"seconds"' in line)
        lines[place] = lines[place].replace(b'"seconds":', b'"seconds":1')
        (folder / name).write_bytes(b"".join(lines))
    data = gather(read_run(folder))
    assert [len(data[kind]) for kind in ("rollouts", "calls")] == [
        len(whole[kind]) - 1 for kind in ("rollouts", "calls")
    ]
    notes = " ".join(data["notes"])
    for name in ("journal.jsonl", "calls.jsonl"):
        assert f"{folder / name}: line" in notes
    (folder / "prompts" / "qa" / "generator.j2").write_bytes(b"")
    notes = gather(read_run(folder))["notes"]
    assert any("prompts/qa/generator.j2 of the run folder is missing or damaged" in note for note in notes)


def test_samples_are_kept_once_and_without_gold(ace):
    stored = json.loads((ace / "samples.json").read_text())
    samples = unpacked(stored)
    assert {sample.split for sample in samples.values()} == {"train", "test"}
    assert len(samples) == 10
    assert packed(samples.values()) == stored
    assert len({sample.inputs["background"] for sample in samples.values()}) == 1
    golds = {rollout["grade"]["gold"] for rollout in gather(read_run(ace))["rollouts"]}
    assert golds
    assert not golds & set(stored["texts"])


def test_nothing_of_the_data_stands_in_the_page_as_markup(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")

    def spoil(line):
        if "attempt" in line:
            line["attempt"]["answer"] = HOSTILE

    changed(folder, "journal.jsonl", spoil)
    page = report_page([read_run(folder)])
    assert "owned" not in page
    assert page.count("<script") == 3
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    data = re.search(r'id="data-run-0">([A-Za-z0-9+/=]*)</script>', page)
    shown = json.loads(zlib.decompress(base64.b64decode(data[1])))
    assert HOSTILE in {rollout["attempt"]["answer"] for rollout in shown["rollouts"]}
    assert "default-src 'none'" in page
    assert "unsafe" not in page.split("</head>")[0]
