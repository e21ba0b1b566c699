"""Tracking with TensorBoard's event files, alone and beside Weights & Biases."""

import struct

import pytest

from tests.launching import launch

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="pip install 'ace-bench[tracking]'")

RUN = ("task=finer", "task.source=sample", "limit=5", "mode.epochs=1", "mode.before=false")


def scalars(folder):
    """Steps and values by tag of all event files in a folder."""
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


def test_a_run_is_tracked_with_curves_and_final_scores(tmp_path):
    ran = launch(tmp_path / "tracked", *RUN, "tracker=tensorboard", "tracker.tensorboard.every=0.001")
    assert ran.status == 0
    found = scalars(ran.folder / "tensorboard")
    steps = [step for step, _ in found["adapt/done"]]
    assert steps == sorted(set(steps))
    assert found["adapt/done"][-1][1] == 5
    (final,) = found["final/headline.after"]
    assert final[1] == pytest.approx(ran.metrics["headline"]["after"], abs=1e-4)
    assert ran.lasting() == launch(tmp_path / "plain", *RUN).lasting()


@pytest.mark.slow
def test_several_trackers_watch_one_run(tmp_path):
    pytest.importorskip("wandb")
    ran = launch(tmp_path, *RUN, "tracker=[tensorboard,wandb]", "tracker.wandb.mode=offline")
    assert ran.status == 0
    assert scalars(ran.folder / "tensorboard")
    assert list(ran.folder.glob("wandb/offline-run-*/*.wandb"))
