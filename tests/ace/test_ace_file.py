"""The algorithm can be read in one short file, and that file is what runs."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path

import pytest

from ace_bench.ace import ace
from ace_bench.core.settings import build
from ace_bench.runners.composing import compose_run
from tests.runners.scripted import Scripted, delta, play, wrong

FILE = Path(ace.__file__)


@pytest.fixture
def tree():
    return ast.parse(FILE.read_text())


def test_it_is_what_runs_for_method_ace():
    method = build(compose_run(["method=ace", "embedder=hashing"]).settings["method"], "method")
    assert [type(part) for part in (method, method.reflector, method.curator)] == [ace.Ace, ace.Reflector, ace.Curator]


def test_it_knows_no_ablation_and_none_of_the_authors_loops(tree):
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [
        name for name in modules if name.endswith(("ablations", "rules", "nearest", "combee")) or "official" in name
    ]


def test_a_run_goes_through_all_of_its_functions(tree, tmp_path):
    called = set()

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename == str(FILE):
            called.add(frame.f_code.co_name)

    script = Scripted(generator=wrong, curator=lambda call: delta(f"lesson {call.session}"))
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        play(tmp_path, script=script, train=2, val=1, test=1)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    written = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert written <= called
