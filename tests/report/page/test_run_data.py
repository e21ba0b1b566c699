"""What the report says of a run: prompts as they were sent, contexts by step, and no more than the folder holds."""

import base64
import json
import re
import shutil
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.contexts.instruction import Instruction
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import StoreError
from ace_bench.methods.official.playbook import TextPlaybook
from ace_bench.report.histories import bullet_history, history
from ace_bench.report.page.content import report_page
from ace_bench.report.page.results import Results
from ace_bench.report.page.run_data import Texts, call_data, run_data
from ace_bench.report.records import read_run
from ace_bench.store.folder import pack_samples, unpack_samples
from ace_bench.store.lines import DiskGuard
from ace_bench.store.processes import FILE as PROCESSES
from ace_bench.store.processes import ProcessLog
from ace_bench.store.results import CHECKSUMS
from tests.launching import launch
from tests.report.page.runs import FINER, HOSTILE, changed, copied, lines_of, metrics_of, recorded_prompts


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


def shown_prompts(folder, session=None):
    prompts = {}
    made, said = run_data(read_run(folder))["calls"], call_data(read_run(folder), session)
    for call in said["calls"]:
        assert call["prompt"] is not None
        role = made[call["place"]]["role"]
        chain = prompts.setdefault(role, list(unfolded(said["texts"], role)))
        yield role, made[call["place"]]["session"], "\n".join(chain[call["prompt"]["at"]])


def unpacked_block(page, name):
    data = re.search(rf'id="{name}">([A-Za-z0-9+/=]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(data[1])))


def first_run(page):
    (row, *_) = unpacked_block(page, "data-runs")["runs"]
    return unpacked_block(page, f"data-run-{row['key']}")


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "c\u2028", "d e"]), max_size=8).map("\n".join), max_size=8))
def test_texts_come_out_as_they_went_in(texts):
    packed_texts = Texts()
    places = [packed_texts.add("chain", [text]) for text in texts]
    assert places == list(range(len(texts)))
    record = packed_texts.record()
    assert ["\n".join(lines) for lines in unfolded(record, "chain")] == texts
    assert len(record["lines"]) == len({*record["lines"]}), "a line that is repeated is a number"


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("method=ace", "mode.epochs=2", "mode.batch_size=2"),
        ("method=ace", "mode=online", "method.update=rewrite", "labels=none"),
        ("method=ace", "method.reflector=off", "mode.epochs=1"),
        ("method=dc_rs", "mode=online", "mode.window=2"),
        ("method=icl",),
    ],
    ids=" ".join,
)
def test_prompts_are_those_that_were_sent(overrides, tmp_path):
    ran, sent = recorded_prompts(tmp_path, *FINER, "limit=6", *overrides)
    assert sorted(shown_prompts(ran.folder)) == sent


def test_prompts_that_were_cut_to_fit_are_shown_as_cut(tmp_path):
    ran, sent = recorded_prompts(tmp_path, *FINER, "limit=8", "mode.epochs=1", longest=6_500)
    assert ran.metrics["dropped_items"]["evaluate"] > 0
    assert sorted(shown_prompts(ran.folder)) == sent


def test_a_report_needs_nothing_but_the_records(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    shutil.rmtree(folder / "prompts")
    settings = (folder / "config.yaml").read_text()
    (folder / CHECKSUMS).unlink()
    (folder / "config.yaml").write_text(settings.replace("ace_bench.ace.settings.make_ace", "gone.Method"))
    whole, data = run_data(read_run(ace)), run_data(read_run(folder))
    assert {key: data[key] for key in ("calls", "texts", "steps", "notes")} == {
        key: whole[key] for key in ("calls", "texts", "steps", "notes")
    }
    assert call_data(read_run(folder)) == call_data(read_run(ace))


def test_a_context_of_an_unknown_kind_with_its_own_patches_is_shown_as_its_first_json_and_the_patches(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    initial = folder / "contexts" / "initial.json"
    initial.write_text(initial.read_text().replace('"playbook"', '"garden"'))
    data = run_data(read_run(folder))
    assert data["kind"] == "garden"
    assert data["rollouts"][-1]["at"] == len(data["steps"])
    assert "contexts of kind 'garden'" in " ".join(data["notes"])
    first, *changes = ("\n".join(lines) for lines in unfolded(data["texts"], "context"))
    assert json.loads(first) == json.loads(initial.read_text())
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert list(map(json.loads, changes)) == [line["patch"] for line in journal if line["kind"] == "step"]


def test_a_playbook_that_costs_points_has_advice(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["gain"]["ci95"] = [-20.0, -1.0]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    said = "answers better without its playbook"
    assert not any(said in advice for advice in run_data(read_run(ace))["advice"])
    assert any(said in advice for advice in run_data(read_run(folder))["advice"])


def test_a_run_that_cannot_be_read_costs_one_row(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    (folder / "contexts" / "initial.json").write_text("{")
    page = report_page(Results(ace, folder))
    assert len(unpacked_block(page, "data-runs")["runs"]) == 1
    (row,) = unpacked_block(page, "data-runs")["unreadable"]
    assert row["folder"] == str(folder)
    assert "initial.json is damaged" in row["reason"]
    assert first_run(page)["rollouts"]
    assert "<title>finer · ace · embedded · offline · labels=gold · seed 0 · limit=5 · ace-bench</title>" in page
    with pytest.raises(StoreError, match=r"initial\.json is damaged"):
        report_page(Results(folder))


def test_a_run_is_shown_as_its_files_record_it(ace):
    data, contexts = run_data(read_run(ace)), list(history(ace))
    bullets = {bullet["id"]: bullet for bullet in data["initial"]}
    for step, context in zip(data["steps"], contexts[1:], strict=True):
        bullets.update({bullet["id"]: bullet for bullet in step["set"]})
        for gone in step["removed"]:
            del bullets[gone]
        whole = json.loads(json.dumps(context.dump()))
        assert bullets == {bullet["id"]: bullet for bullet in whole["bullets"]}
    assert data["used"] == {one.id: one.last_used for one in bullet_history(ace) if one.last_used is not None}
    kept = ("epoch", "samples", "context_tokens", "context_size", "events", "at")
    steps = [{name: line[name] for name in kept} for line in lines_of(ace, "step")]
    assert json.loads(json.dumps([{name: step[name] for name in kept} for step in data["steps"]])) == steps
    places = {context.digest: place for place, context in reversed([*enumerate(contexts)])}
    for rollout, line in zip(data["rollouts"], lines_of(ace, "rollout"), strict=True):
        assert rollout["at"] == places[line["context"]]
        assert rollout["key"] == line["key"]
        assert rollout["grade"]["score"] == line["grade"]["score"]
    made = [json.loads(line) for line in (ace / "calls.jsonl").read_text().splitlines()]
    of_call = ("role", "stage", "session", "usage", "seconds", "retries", "replayed", "fault")
    assert data["calls"] == [{name: call[name] for name in of_call} for call in made]
    found = call_data(read_run(ace))
    assert ([call["reply"] for call in found["calls"]], found["note"]) == ([call["text"] for call in made], "")
    assert (data["kind"], data["notes"], data["metrics"]) == ("playbook", [], metrics_of(ace))


def test_a_playbook_that_is_one_text_is_shown_by_its_bullets(ace, tmp_path):
    texts = [
        "## OTHERS\n[misc-00001] helpful=0 harmful=0 :: first\n  - second line\n",
        "## OTHERS\n[misc-00001] helpful=1 harmful=0 :: first\n  - second line\n[misc-00001] helpful=0 harmful=0 :: b",
    ]
    playbooks = [TextPlaybook(text=text, dialect="finance") for text in texts]
    folder = copied(ace, tmp_path / "seed0")
    (folder / CHECKSUMS).unlink()
    (folder / "contexts" / "initial.json").write_text(json.dumps(playbooks[0].dump()))

    def rewritten(line):
        if line["kind"] == "step":
            after = playbooks[line["index"] > 0]
            line.update(digest=after.digest, patch=after.patch(playbooks[line["index"] > 1]))

    changed(folder, "journal.jsonl", rewritten)
    data = run_data(read_run(folder))
    assert data["notes"] == []
    (first,) = data["initial"]
    assert (first["section"], first["content"], first["created"]) == ("OTHERS", "first\n  - second line", -1)
    unchanged, step, *later = data["steps"]
    assert [(one["id"], one["helpful"], one["created"], one["changed"]) for one in step["set"]] == [
        ("misc-00001", 1, -1, 1),
        ("misc-00001 (2)", 0, 1, 1),
    ]
    assert step["set"][1]["sources"] == list(step["samples"]) != []
    assert not any(other["set"] or other["removed"] for other in (unchanged, *later))


def test_other_contexts_are_shown_after_each_step(tmp_path):
    folder = launch(tmp_path, *FINER, "limit=4", "mode=online", "method=dc").folder
    contexts = list(history(folder))
    texts = ["\n".join(lines) for lines in unfolded(run_data(read_run(folder))["texts"], "context")]
    assert texts == [context.render(None)["cheatsheet"] for context in contexts]

    # The same run with a kind that nobody knows.
    records = [{**context.dump(), "kind": "garden"} for context in contexts]
    digests = {context.digest: digest_of(record) for context, record in zip(contexts, records, strict=True)}
    changed(
        folder, "journal.jsonl", lambda line: line["kind"] == "step" and line.update(digest=digests[line["digest"]])
    )
    (folder / CHECKSUMS).unlink()
    (folder / "contexts" / "initial.json").write_text(json.dumps(records[0]))
    data = run_data(read_run(folder))
    assert "the context after each step is shown as JSON" in " ".join(data["notes"])
    shown = ["\n".join(lines) for lines in unfolded(data["texts"], "context")]
    assert list(map(json.loads, shown)) == json.loads(json.dumps(records))


@pytest.mark.parametrize(
    ("overrides", "state", "steps", "notes"),
    [
        (("budget.calls=14", "mode.before=false"), "stopped", True, []),
        (("method=base", "budget.calls=1"), "stopped", False, ["The folder holds no context yet."]),
        (("method=base",), "finished", False, []),
    ],
)
def test_a_run_without_an_end_or_without_steps_has_a_report(overrides, state, steps, notes, tmp_path):
    data = run_data(read_run(launch(tmp_path, *FINER, "limit=6", *overrides).folder))
    assert (data["about"]["state"], bool(data["steps"]), data["notes"]) == (state, steps, notes)
    assert data["texts"]["chains"] == ({"context": [[-1]]} if state == "finished" else {})


def test_damaged_lines_are_left_out_and_the_page_says_so(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    whole = run_data(read_run(ace))
    bases = {call["request"]["base"] for call in map(json.loads, (folder / "calls.jsonl").read_text().splitlines())}
    for name, damaged in (("journal.jsonl", '"seconds"'), ("calls.jsonl", f"/{bases.pop() or bases.pop()}/")):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        place = next(place for place, line in enumerate(lines) if damaged.encode() in line)
        lines[place] = lines[place].replace(b'"seconds":', b'"seconds":1')
        (folder / name).write_bytes(b"".join(lines))
    data = run_data(read_run(folder))
    assert [len(data[kind]) for kind in ("rollouts", "calls")] == [
        len(whole[kind]) - 1 for kind in ("rollouts", "calls")
    ]
    notes = " ".join(data["notes"])
    for name in ("journal.jsonl", "calls.jsonl"):
        assert f"{folder / name}: line" in notes
    said = call_data(read_run(folder))
    missing = sum(call["prompt"] is None for call in said["calls"])
    assert missing
    assert f"The prompts of {missing} of {len(data['calls'])} calls are not shown" in said["note"]


def test_samples_are_kept_once_and_without_gold(ace):
    stored = json.loads((ace / "samples.json").read_text())
    samples = unpack_samples(stored)
    assert (len(samples), pack_samples(samples.values())) == (10, stored)
    golds = {rollout["grade"]["gold"] for rollout in run_data(read_run(ace))["rollouts"]}
    assert golds
    assert not golds & set(stored["texts"])


def test_nothing_of_the_data_stands_in_the_page_as_markup(ace, tmp_path):
    folder = copied(ace, tmp_path / "seed0")

    def spoil(line):
        if "attempt" in line:
            line["attempt"]["answer"] = HOSTILE

    changed(folder, "journal.jsonl", spoil)
    page = report_page(Results(folder))
    assert "owned" not in page
    assert page.count("<script") == 6  # five blocks of data, and the script
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    shown = first_run(page)
    assert HOSTILE in {rollout["attempt"]["answer"] for rollout in shown["rollouts"]}
    assert "default-src 'none'" in page
    assert "unsafe" not in page.split("</head>")[0]


def test_the_processes_of_a_run_are_listed_with_what_changed_between_them(ace, tmp_path):
    folder = copied(ace, tmp_path / "copy")
    guard = DiskGuard()
    for numpy in ("1.0", "2.0"):
        log = ProcessLog(folder / PROCESSES, guard)
        log.begin("ace-bench run task=finer", {"packages": {"numpy": numpy}})
        log.close()
    first, killed, last = run_data(read_run(folder))["processes"]
    assert (first["how"], killed["how"]) == ("finished", None)
    assert last["changes"] == ["numpy 1.0 to 2.0"]
    assert last["command"] == "ace-bench run task=finer"
    (folder / PROCESSES).unlink()  # as older versions left it
    assert run_data(read_run(folder))["processes"] == []


def test_a_context_of_several_fields_is_shown_under_their_names(tmp_path):
    (tmp_path / "context.json").write_text(json.dumps(Instruction(text="Be brief.").dump()))
    saved = f"mode.context={tmp_path / 'context.json'}"
    data = run_data(read_run(launch(tmp_path, *FINER, "limit=1", "method=gepa", "mode=evaluate", saved).folder))
    (lines,) = unfolded(data["texts"], "context")
    assert (data["kind"], "\n".join(lines)) == ("instruction", "## instruction\nBe brief.\n\n## demonstrations\n(none)")
