"""Tracking with event files of TensorBoard, and with the client of Weights & Biases, which may be away or stuck."""

import json
import os
import shutil
import socket
import struct
from pathlib import Path

import pytest

from ace_bench.contrib.trackers import tensorboard, wandb
from ace_bench.contrib.trackers.points import Points, flatten
from ace_bench.runners.progress import Progress
from ace_bench.store.call_log import Account
from tests.launching import launch

PLAIN = ("task=finer", "task.source=sample", "limit=5", "mode.epochs=1", "mode.before=false")
RUN = (*PLAIN, "tracker=wandb")
SECRET = "sk-planted-in-the-environment"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def sessions(folder):
    """The records of each of the tracker's sessions, in order: files of the LevelDB log format."""
    from wandb.proto import wandb_internal_pb2  # takes seconds to import; most quick runs do without

    for file in sorted(folder.glob("wandb/*run-*/*.wandb")):
        data, place, part, records = file.read_bytes(), 7, b"", []
        while place + 7 <= len(data):
            if 32768 - place % 32768 < 7:
                place += 32768 - place % 32768
                continue
            _, size, kind = struct.unpack("<IHB", data[place : place + 7])
            part += data[place + 7 : place + 7 + size]
            place += 7 + size
            if kind in (1, 4):
                record = wandb_internal_pb2.Record()
                record.ParseFromString(part)
                records.append(record)
                part = b""
        yield records


def items(records, kind):
    """Keys and values of all history or summary records."""
    found = {}
    for record in records:
        if record.WhichOneof("record_type") == kind:
            for item in record.history.item if kind == "history" else record.summary.update:
                found.setdefault(item.key or ".".join(item.nested_key), []).append(item.value_json)
    return found


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Put a stand-in in the place of the client; returns what it was asked since the last time."""
    (tmp_path / "client").mkdir()
    shutil.copy(Path(__file__).with_name("wandb_stand_in.py"), tmp_path / "client" / "wandb.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "client"), prepend=os.pathsep)
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))

    def take():
        said = (tmp_path / "record").read_text().splitlines()
        (tmp_path / "record").unlink()
        return [json.loads(line) for line in said]

    return take


def test_what_leaves_the_machine_and_that_a_stopped_run_goes_on_in_the_same_tracker_run(
    tmp_path, recorded, caplog, monkeypatch
):
    monkeypatch.setattr(wandb, "EVERY_S", 0.001)
    assert launch(tmp_path / "results", *RUN, "budget.calls=4").status == 3
    (_, opened), *_, last = recorded()
    assert last == ["finish", 1]
    ran = launch(tmp_path / "results", *RUN)
    first, metric, *points, summary, scores, costs, artifact, last = recorded()
    assert (ran.status, caplog.messages) == (0, [])
    assert first == ["init", opened]
    config = opened.pop("config")
    private = {"disable_git": True, "save_code": False, "host": "undisclosed", "console": "off", "silent": True}
    private |= {f"x_disable_{what}": True for what in ("machine_info", "meta", "stats")}
    assert opened == {
        "project": "ace-bench",
        "entity": None,
        "mode": "online",
        "resume": "allow",
        "id": (ran.folder / "wandb" / "id").read_text(),
        "dir": str(ran.folder),
        "name": "finer-ace-embedded-offline-gold-seed0",
        "group": ran.metrics["digest"][:12],
        "settings": {**private, "x_save_requirements": False},
    }
    assert len(opened["id"]) == 16
    assert config.keys() == {*wandb._SETTINGS, *wandb._KINDS, "backbones"}
    assert (config["limit"], config["seed"], config["task"]["source"], config["simulated"]) == (5, 0, "sample", True)
    assert not {"data_dir", "initial", "context"} & {*config["task"], *config["method"], *config["mode"]}
    assert str(tmp_path) not in json.dumps(config)
    assert config["backbones"].keys() == {"generator"}
    assert metric == ["metric", "*", "spent/calls"]
    assert {kind for kind, _ in points} == {"log"}
    assert points[-1][1]["spent/calls"] == len(ran.lines("calls"))
    numbers = dict(flatten(ran.metrics))
    assert summary == ["summary", numbers]
    for title, table, groups in (
        ("scores", scores, ("headline.", "splits.")),
        ("costs", costs, ("calls.", "tokens.", "usd.", "rollouts.", "timing.", "faults.")),
    ):
        rows = [[name, float(value)] for name, value in numbers.items() if name.startswith(groups)]
        spent = {"spent/calls": len(ran.lines("calls"))}
        assert table == ["log", {title: [["figure", "value"], *rows], **spent}]
    assert artifact == ["artifact", "context-run-1", "playbook", ran.metrics["context"], "tested.json", "tested.txt"]
    assert last == ["finish", 0]


@pytest.mark.slow
def test_a_run_is_tracked_with_curves_figures_and_its_context_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(wandb, "EVERY_S", 0.001)
    ran = launch(tmp_path, *RUN, "tracker.wandb.mode=offline")
    assert ran.status == 0
    (records,) = sessions(ran.folder)
    history = items(records, "history")
    done = [int(value) for value in history["adapt/done"]]
    assert done == sorted(set(done))
    assert done[-1] == 5
    assert "context/tokens" in history
    assert "evaluate_test_after/score" in history
    assert items(records, "summary")["headline.after"] == [str(ran.metrics["headline"]["after"])]
    artifacts = [record.artifact for record in records if record.WhichOneof("record_type") == "artifact"]
    assert {"playbook", "run_table"} == {artifact.type for artifact in artifacts}
    (playbook,) = [artifact for artifact in artifacts if artifact.type == "playbook"]
    assert {entry.path for entry in playbook.manifest.contents} == {"tested.json", "tested.txt"}
    (run,) = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert run.run_group == ran.metrics["digest"][:12]
    assert run.host == "undisclosed"
    sent = "".join(map(str, records))
    assert SECRET not in sent
    assert str(tmp_path) not in str(run)
    assert not list(ran.folder.glob("wandb/*run-*/files/requirements.txt"))


@pytest.mark.slow
@pytest.mark.parametrize("stuck", [False, True], ids=["unreachable", "never answers"])
def test_a_service_that_fails_changes_nothing_but_a_warning(stuck, tmp_path, monkeypatch, caplog):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
        if not stuck:
            server.close()
        monkeypatch.setattr(wandb, "_PATIENCE_S", 0.5)
        ran = launch(tmp_path / "tracked", *RUN)
    assert ran.status == 0
    assert "wandb" in caplog.text
    plain = launch(tmp_path / "plain", *PLAIN)
    assert ran.lasting() == plain.lasting()


@pytest.mark.slow
def test_without_a_login_the_run_goes_on_and_several_trackers_watch_it(tmp_path, monkeypatch, caplog):
    for name in [name for name in os.environ if name.startswith("WANDB")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    ran = launch(tmp_path, *PLAIN, "tracker=[tensorboard,wandb]")
    assert ran.status == 0
    assert scalars(ran.folder / "tensorboard")
    assert "worker.log for the reason" in caplog.text
    assert "API key" in (ran.folder / "wandb" / "worker.log").read_text()


def scalars(folder):
    """Steps and values by tag of all event files in a folder."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="pip install 'ace-bench[tracking]'")
    found = {}
    for file in sorted(folder.glob("events.*")):
        data, place = file.read_bytes(), 0
        while place < len(data):
            (size,) = struct.unpack_from("<Q", data, place)  # a record: size, its checksum, the event, its checksum
            event = event_pb2.Event.FromString(data[place + 12 : place + 12 + size])
            place += 16 + size
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_a_run_is_tracked_with_curves_and_final_scores(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard, "EVERY_S", 0.001)
    ran = launch(tmp_path / "tracked", *PLAIN, "tracker=tensorboard")
    assert ran.status == 0
    found = scalars(ran.folder / "tensorboard")
    steps = [step for step, _ in found["adapt/done"]]
    assert steps == sorted(set(steps))
    assert found["adapt/done"][-1][1] == 5
    (final,) = found["final/headline.after"]
    assert final[1] == pytest.approx(ran.metrics["headline"]["after"], abs=1e-4)
    assert ran.lasting() == launch(tmp_path / "plain", *PLAIN).lasting()


def test_points_are_taken_seldom_but_at_each_phases_end_and_never_of_replays():
    def snapshot(phase, done, calls):
        sums = {"score": 50.0, "faults": 0, "context_size": 1, "context_tokens": 2, "left": None}
        return Progress(phase=phase, done=done, total=4, spent=Account(calls=calls), **sums)

    taken = Points(seconds=1000.0)
    shots = [
        ("a", 0, 3),
        ("a", 1, 3),
        ("a", 2, 4),
        ("a", 3, 5),
        ("a", 4, 6),
        ("b, c", 1, 7),
        ("b, c", 2, 8),
        ("b, c", 4, 8),
    ]
    points = [taken.take(snapshot(*shot)) for shot in shots]
    assert [point is not None for point in points] == [False, False, True, False, True, True, False, True]
    spent = dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "usd"), 0) | {"calls": 7}
    phase, context = {"done": 1, "score": 50.0, "faults": 0}, {"items": 1, "tokens": 2}
    groups = {"b_c": phase, "context": context, "spent": spent}
    assert points[5] == {f"{group}/{name}": value for group, some in groups.items() for name, value in some.items()}
    nested = {"a": {"b": 1, "c": {"d": 2.5, "e": "text"}}, "f": [3], "g": 4}
    assert dict(flatten(nested)) == {"a.b": 1, "a.c.d": 2.5, "g": 4}
