"""What a user keeps is written by one module; this test fails for a module that writes a file of its own."""

import ast
import re

from tests.launching import ROOT

WRITER = "ace_bench/store/files.py"
OWN_FILES = {
    "ace_bench/store/lines.py": "logs that grow line by line, behind the guard of their folder",
    "ace_bench/store/folder.py": "the status of a run on a full disk, in place",
    "ace_bench/store/spending.py": "a draft behind the guard of its folder",
    "ace_bench/cli/data.py": "a download that continues where it was cut",
    "ace_bench/backbones/vllm/server.py": "the log of a server",
    "packages/ace_batch/run_batch.py": "the lock and the log of a process",
    "packages/ace_trackers/wandb.py": "the log and the id of a tracker, which must not stop a run",
    "ace_bench/runners/workers.py": "the logs of workers",
    "ace_bench/cli/sweep_summary.py": "a temporary file",
    "packages/ace_benchmarks/": "temporary folders",
    "packages/ace_rehearsal/": "the mini-world and sample sets, made anew as a whole",
    "packages/ace_appworld/": "temporary folders, and the data of an engine that is put in place as a whole",
}
WRITES = {"write_text", "write_bytes", "savefig", "copyfile", "copytree", "copyfileobj"}
MAY_WRITE = re.compile(r"\b(open|fdopen|copy\w*|savefig|write_text|write_bytes)\(")
ANYWHERE = {
    "packages/ace_bird_sql/databases.py": {"copyfileobj"},
    "ace_bench/runners/repair.py": {"copytree"},
    "ace_bench/runners/code_changes.py": {"copyfile"},
}
"""Calls that copy into a draft or a temporary folder."""


def test_only_the_writer_writes():
    found = {}
    for path in (path for part in ("ace_bench", "packages") for path in (ROOT / part).rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        if name == WRITER or name.startswith(tuple(OWN_FILES)) or not MAY_WRITE.search(text):
            continue
        calls = {written(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
        if left := calls - {None} - ANYWHERE.get(name, set()):
            found[name] = sorted(left)
    assert found == {}, "write these by ace_bench.store.files, so that a full disk leaves no cut file"


def written(call):
    """The name of a call that writes to a path, ``None`` for any other."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "open":
        modes = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
        values = [mode.value for mode in modes if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
        return (
            name
            if any(re.fullmatch(r"[rwxab+t]{1,3}", value) and set(value) & set("wxa+") for value in values)
            else None
        )
    if name == "savefig":  # into memory
        return None if isinstance(call.args[0], ast.Name) and call.args[0].id == "drawn" else name
    return name if name in WRITES and call.args and not is_playbook_text(call) else None


def is_playbook_text(call):
    """Whether it is the function that returns a playbook's text."""
    return isinstance(call.func, ast.Name) and call.func.id == "write_text"
