"""Evaluates the saved outputs of episodes against the full data root, in processes that never ran agent code.

A request names the ``task``, the ``root`` of the full data, the folder ``outputs`` with ``tasks/<id>/dbs``, and the
limits ``memory`` (bytes) and ``seconds``. The answer has ``success``, ``passes`` (the number of unit tests passed) and
``report`` (the engine's text), or ``error`` and ``bad_outputs`` (whether the outputs caused the error).

Each evaluation runs in a process of its own, which is killed when its time is up, so that bad outputs can only break
their own evaluation. ``signal.alarm`` would not do: the engine handles that signal itself, and no signal handler runs
during a query.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .processes import CHUNK, end_tree
from .shared import adopt_orphans, die_with_parent


class Cancelled(Exception):
    """Nobody waits for the answer any more."""


def evaluate(request: Mapping[str, Any], control: int) -> Mapping[str, Any]:
    """Answer a request; raises ``Cancelled`` once the socket ``control`` closes.

    Call it in a fork that does nothing else: it changes the engine's data root.
    """
    from appworld import update_root

    adopt_orphans()
    update_root(request["root"])
    answer = _evaluate_in_fork(request, control)
    if "error" in answer:
        # If the outputs of an episode that did nothing can be evaluated, this episode's outputs caused the error.
        with _unchanged_outputs(request) as outputs:
            baseline = _evaluate_in_fork({**request, "outputs": outputs}, control)
        return {**answer, "bad_outputs": "error" not in baseline}
    return answer


@contextmanager
def _unchanged_outputs(request: Mapping[str, Any]) -> Iterator[str]:
    """Make the outputs of an episode that did nothing."""
    task = request["task"]
    with tempfile.TemporaryDirectory() as outputs:
        shutil.copytree(f"{request['root']}/data/tasks/{task}/dbs", f"{outputs}/tasks/{task}/dbs")
        yield outputs


def _evaluate_in_fork(request: Mapping[str, Any], control: int) -> Mapping[str, Any]:
    reading, writing = os.pipe()
    parent = os.getpid()
    scorer = os.fork()
    if scorer == 0:
        os.close(reading)
        try:
            die_with_parent(parent)
            with open(writing, "wb") as pipe:
                pipe.write(json.dumps(_evaluate(request)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        answer = _read_all(reading, control, time.monotonic() + request["seconds"])
    finally:
        os.close(reading)
        status = end_tree(scorer)
    if answer is None:
        return {"error": f"the evaluation took more than {request['seconds']} seconds"}
    try:
        return dict(json.loads(answer))
    except ValueError:
        return {"error": f"the evaluation ended with status {status}"}


def _read_all(reading: int, control: int, deadline: float) -> bytes | None:
    """Read a pipe to its end; ``None`` if it is not closed in time."""
    received = bytearray()
    while ready := select.select([reading, control], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if control in ready:
            raise Cancelled
        part = os.read(reading, CHUNK)
        if not part:
            return bytes(received)
        received += part
    return None


def _evaluate(request: Mapping[str, Any]) -> Mapping[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    try:
        from appworld.evaluator import evaluate_task

        tracker = evaluate_task(request["task"], request["outputs"], suppress_errors=True, save_report=False)
        report = tracker.report(print_it=False, colorize=False)
    except BaseException:
        return {"error": traceback.format_exc()[-4000:]}
    return {"success": tracker.success, "passes": tracker.pass_count, "report": report}
