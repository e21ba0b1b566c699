"""Evaluates the saved outputs of episodes against the full data root, in processes that no agent code ever ran in.

An order names the ``task``, the ``root`` of the full data, the folder ``outputs`` with ``tasks/<id>/dbs``, and the
limits ``memory`` (bytes) and ``seconds``. The answer has ``success``, ``tests`` (their number), ``passes`` (number
passed) and ``report`` (the engine's text), or ``error`` and ``spoilt`` (whether the outputs are to blame). Every
evaluation runs in a fork of its own, which is killed when its time is up: what agent code left in the outputs can spoil
that one only. An alarm would not do, as the engine handles that signal itself, and not while a query runs.
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

from .process_tree import end_tree
from .shared import adopt_orphans, die_with_parent

_CHUNK = 1 << 16


class Abandoned(Exception):
    """Nobody waits for the answer any longer."""


def evaluated(order: Mapping[str, Any], leash: int) -> Mapping[str, Any]:
    """Answer an order; raises ``Abandoned`` once ``leash`` closes.

    The process is to be a fork that does nothing else: the engine's data root changes.
    """
    from appworld import update_root

    adopt_orphans()
    update_root(order["root"])
    answer = _forked(order, leash)
    if "error" in answer:
        # Whose fault is it? If a world that nobody touched can be evaluated, it is what this episode left.
        with _untouched(order) as outputs:
            return {**answer, "spoilt": "error" not in _forked({**order, "outputs": outputs}, leash)}
    return answer


@contextmanager
def _untouched(order: Mapping[str, Any]) -> Iterator[str]:
    """Give the outputs of an episode in which nothing happened."""
    task = order["task"]
    with tempfile.TemporaryDirectory() as outputs:
        shutil.copytree(f"{order['root']}/data/tasks/{task}/dbs", f"{outputs}/tasks/{task}/dbs")
        yield outputs


def _forked(order: Mapping[str, Any], leash: int) -> Mapping[str, Any]:
    reading, writing = os.pipe()
    parent = os.getpid()
    scorer = os.fork()
    if scorer == 0:
        os.close(reading)
        try:
            die_with_parent(parent)
            with open(writing, "wb") as pipe:
                pipe.write(json.dumps(_evaluate(order)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        answer = _received(reading, leash, time.monotonic() + order["seconds"])
    finally:
        os.close(reading)
        status = end_tree(scorer)
    if answer is None:
        return {"error": f"the evaluation took more than {order['seconds']} seconds"}
    try:
        return dict(json.loads(answer))
    except ValueError:
        return {"error": f"the evaluation ended with status {status}"}


def _received(reading: int, leash: int, until: float) -> bytes | None:
    """Read to the end of a pipe; ``None`` where it does not end in time."""
    received = bytearray()
    while ready := select.select([reading, leash], [], [], max(0.0, until - time.monotonic()))[0]:
        if leash in ready:
            raise Abandoned
        part = os.read(reading, _CHUNK)
        if not part:
            return bytes(received)
        received += part
    return None


def _evaluate(order: Mapping[str, Any]) -> Mapping[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    try:
        from appworld.evaluator import evaluate_task

        tracker = evaluate_task(order["task"], order["outputs"], suppress_errors=True, save_report=False)
        report = tracker.report(print_it=False, colorize=False)
    except BaseException:
        return {"error": traceback.format_exc()[-4000:]}
    return {
        "success": tracker.success,
        "tests": tracker.num_tests,
        "passes": tracker.pass_count,
        "report": report,
    }
