"""The authors' side: their own loop, run in a process of its own, and what it did."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ace_bench.tasks.appworld.engine import find_engine, python_of
from tests.official.comparing import Call, Side, Step
from tests.official.serving import spoken

VARIABLE = "OFFICIAL"
_TIMEOUT = 300
_HERE = Path(__file__).parent


def checkout(name: str) -> Path:
    """Return the folder of a checkout, named as its repository; without it, the test is skipped."""
    given = os.environ.get(VARIABLE)
    if not given:
        pytest.skip(
            f"the authors' code is needed: make test-official {VARIABLE}=DIR, where DIR holds a checkout of {name} and "
            "others, named as their repositories; what they require need not be installed"
        )
    folder = Path(given).expanduser().resolve() / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: put a checkout of {name} there")
    return folder


def run_finance(code: Path, folder: Path, url: str, *options: str, timeout: float = _TIMEOUT) -> Side:
    """Run ``finance/run.py`` of a checkout in a folder made by ``Finance.write``, one test worker, in order."""
    command = [sys.executable, str(_HERE / "authors_finance.py"), str(code), str(folder), url]
    record = _record(folder, [*command, "--test_workers", "1", *options], {**os.environ}, timeout)
    files: dict[str, str] = record["files"]
    results = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    playbooks = {name: text for name, text in files.items() if name.endswith(".txt")}
    calls = [Call(**call) for call in record["calls"]]
    return Side(calls, [Step(step["after"], step["next"]) for step in record["steps"]], _scores(results), playbooks)


def _scores(results: Mapping[str, Any]) -> dict[str, list[float]]:
    final = results["final_results.json"]
    if "online_test_results" in final:
        after, name = final["online_test_results"], "windows"
        windows = results["test_results.json"]["test_results"]["window_results"]
        looks = [window["window_accuracy"] for window in windows]
    else:
        after, name = final["final_test_results"], "validation"
        looks = [look["val_result"]["accuracy"] for look in results["train_results.json"]["results"]]
    return {"before": [final["initial_test_results"]["accuracy"]], "after": [after["accuracy"]], name: looks}


def run_appworld(code: Path, root: Path, url: str, tasks: Sequence[str], *, labels: bool, max_steps: int) -> Side:
    """Run the adaptation agent of a checkout on tasks of an AppWorld root, in the engine's interpreter."""
    engine = find_engine()
    settings = {"tasks": tasks, "labels": labels, "max_steps": max_steps, "packages": sysconfig.get_path("purelib")}
    script = _HERE / "authors_appworld.py"
    command = [str(python_of(engine.folder)), str(script), str(code), str(root), url, json.dumps(settings)]
    record = _record(root, command, engine.environment(root, root))
    calls = [Call(call["role"], spoken(call["messages"]), call["reply"]) for call in record["calls"]]
    return Side(calls, [Step(step["after"], step["next"]) for step in record["steps"]])


def run_cheatsheet(
    code: Path, folder: Path, url: str, *, approach: str, max_tokens: int, timeout: float = _TIMEOUT
) -> Side:
    """Run an approach of a Dynamic Cheatsheet checkout on ``folder/questions.json``."""
    command = [sys.executable, str(_HERE / "authors_dc.py"), str(code), str(folder), url, str(max_tokens), approach]
    record = _record(folder, command, {**os.environ}, timeout)
    calls = [Call(call["role"], call["prompt"], call["reply"], call.get("answer")) for call in record["calls"]]
    return Side(calls, [Step(step["after"]) for step in record["steps"]])


def run_memory(code: Path, folder: Path, url: str, *, agent: str, top_k: int) -> Side:
    """Run an agent of a StreamBench checkout on ``folder/rows.json``, with the model behind a URL."""
    script = _HERE / "authors_memories.py"
    command = [sys.executable, str(script), str(code), str(folder), url, agent, str(top_k)]
    record = _record(folder, command, {**os.environ})
    return Side([Call(call["role"], call["prompt"], call["reply"]) for call in record["calls"]], [])


def run_theirs(command: Sequence[str], **options: Any) -> str:
    """Run a script over the authors' code, which must not fail; return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", done.stderr):
        raise AssertionError(f"the authors' code imports {missing[1]}, which has no stand-in here: install it in .venv")
    if done.returncode:
        raise AssertionError(f"the authors' code failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def _record(
    folder: Path, command: Sequence[str], environment: Mapping[str, str], timeout: float = _TIMEOUT
) -> dict[str, Any]:
    run_theirs(command, timeout=timeout, env=environment)
    record: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return record
