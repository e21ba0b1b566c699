"""Evaluates the saved outputs of episodes against the full data root, in processes that no agent code ever ran in.

An order names the ``task``, the ``root`` of the full data, the folder ``outputs`` with ``tasks/<id>/dbs``, and the
limits ``memory`` (bytes) and ``seconds``. The answer has ``success``, ``tests`` (their number), ``passes`` (number
passed) and ``report`` (the engine's text), or ``error`` and ``spoilt`` (whether the outputs are to blame). Every
evaluation runs in a fork of its own: what agent code left in the outputs can spoil that one only.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .confine import die_with_parent


def evaluated(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer an order. The process is to be a fork that does nothing else: the engine's data root changes."""
    from appworld import update_root

    update_root(order["root"])
    answer = _forked(order)
    if "error" in answer:
        # Whose fault is it? If a world that nobody touched can be evaluated, it is what this episode left.
        with _untouched(order) as outputs:
            return {**answer, "spoilt": "error" not in _forked({**order, "outputs": outputs})}
    return answer


@contextmanager
def _untouched(order: Mapping[str, Any]) -> Iterator[str]:
    """Give the outputs of an episode in which nothing happened."""
    task = order["task"]
    with tempfile.TemporaryDirectory() as outputs:
        shutil.copytree(f"{order['root']}/data/tasks/{task}/dbs", f"{outputs}/tasks/{task}/dbs")
        yield outputs


def _forked(order: Mapping[str, Any]) -> Mapping[str, Any]:
    reading, writing = os.pipe()
    scorer = os.fork()
    if scorer == 0:
        os.close(reading)
        try:
            os.write(writing, json.dumps(_evaluate(order)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(scorer, 0)
    if not answer:
        return {"error": f"the evaluation ended with status {os.waitstatus_to_exitcode(status)}"}
    return dict(json.loads(answer))


def _evaluate(order: Mapping[str, Any]) -> Mapping[str, Any]:
    die_with_parent(os.getppid())
    signal.alarm(order["seconds"])  # its default action ends the fork, whatever runs in it
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
