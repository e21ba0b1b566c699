"""Evaluations by `vllm run-batch`: without a server, and through a kill of the harness."""

import os
import signal
import time

from tests.vllm.conftest import calls, family, launching, none_left, run

TEST = 4


def words(model):
    own = (word for word in launching(model) if not word.startswith("method."))
    return (*own, "batch=vllm", "method=base", f"limit={{test: {TEST}}}", "backbone.sampling.max_tokens=200")


def wait_for_batch(process):
    """The processes of a run once its batch has begun."""
    started = family(process.pid)
    while not any("run-batch" in line for line in started.values()):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
        started = family(process.pid)
    return started


def test_a_killed_run_gets_the_replies_of_the_batch_that_it_began(model, tmp_path):
    with run(tmp_path, *words(model)) as process:
        started = wait_for_batch(process)
        process.kill()
    with run(tmp_path, *words(model)) as process:
        output = process.communicate(timeout=600)[0]
    assert process.returncode == 0, output
    assert "Going on with batch" in output
    assert (len(list(tmp_path.rglob("*.process"))), calls(tmp_path)) == (1, TEST)
    assert none_left(started)


def test_ctrl_c_ends_the_batch(model, tmp_path):
    with run(tmp_path, *words(model)) as process:
        started = wait_for_batch(process)
        os.kill(process.pid, signal.SIGINT)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert none_left(started)
