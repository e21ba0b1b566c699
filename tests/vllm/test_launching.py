"""A server of a run's own: started, killed in mid-run, started again, interrupted; never left behind."""

import json
import os
import signal
import time

from tests.vllm.conftest import calls, family, launching, none_left, run

ONLINE = ("mode=online", "mode.before=false", "limit=12", "backbone.retry.times=2")


def wait_for_calls(results, least, process):
    while calls(results) < least:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


def test_a_server_killed_in_mid_run_stops_it_cleanly_and_the_same_command_finishes(model, tmp_path):
    command = (*launching(model), *ONLINE)
    with run(tmp_path, *command) as process:
        wait_for_calls(tmp_path, 10, process)
        started = family(process.pid)
        assert any("EngineCore" in line for line in started.values())
        (server,) = (number for number, line in started.items() if " serve " in line and "supervisor.py" not in line)
        os.kill(server, signal.SIGKILL)
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 3, output
    assert "vLLM: ready after" in output
    assert "vLLM has ended with status -9" in output
    assert "Run the same command to continue" in output
    folder = next(tmp_path.rglob("status.json")).parent
    status = json.loads((folder / "status.json").read_text())
    assert status["state"] == "stopped"
    assert not (folder / "metrics.json").exists()
    assert none_left(started)
    paid = calls(tmp_path)

    with run(tmp_path, *command) as process:
        wait_for_calls(tmp_path, paid + 1, process)
        started = family(process.pid)
        output = process.communicate(timeout=600)[0]
    assert process.returncode == 0, output
    assert (folder / "metrics.json").exists()
    ids = [json.loads(line)["id"] for line in (folder / "calls.jsonl").read_text().splitlines()]
    assert len(ids) == len(set(ids)) > paid
    assert none_left(started)


def test_ctrl_c_while_the_server_loads(model, tmp_path):
    with run(tmp_path, *launching(model), *ONLINE) as process:
        assert any("starting" in line for line in process.stdout)
        time.sleep(5)
        started = family(process.pid)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert len(started) > 1
    assert none_left(started)


def test_kill_9_of_a_run_under_way(model, tmp_path):
    with run(tmp_path, *launching(model), *ONLINE) as process:
        wait_for_calls(tmp_path, 2, process)
        started = family(process.pid)
        assert any("EngineCore" in line for line in started.values())
        process.kill()
    assert none_left(started)


def test_a_model_that_is_not_there(tmp_path):
    nowhere = tmp_path / "nowhere"
    with run(tmp_path / "results", *launching(nowhere), *ONLINE) as process:
        output = process.communicate(timeout=300)[0]
    assert process.returncode == 2, output
    assert "the model is not found" in output
    assert "backbone.model" in output
    assert 'run.py"' not in output, "no traceback of the harness"
