"""What a user keeps is written by one module; this test fails for a module that writes a file of its own."""

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
WRITES = re.compile(  # savefig(drawn) draws into memory
    r"\.(write_text|write_bytes|savefig)\((?!drawn)|\b(copyfile|copytree|copyfileobj)\("
    r"""|open\((.*, )?(mode=)?"(?=[rwxab+t]{1,3}")[rbt]*[wxa+]"""
)
ANYWHERE = {
    "packages/ace_bird_sql/databases.py": {"copyfileobj"},
    "ace_bench/runners/repair.py": {"copytree"},
    "ace_bench/runners/code_changes.py": {"copyfile"},
}
"""Calls that copy into a draft or a temporary folder."""


def test_only_the_writer_writes():
    found = {}
    for path in (path for part in ("ace_bench", "packages") for path in (ROOT / part).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name != WRITER and not name.startswith(tuple(OWN_FILES)):
            calls = WRITES.finditer(path.read_text())
            if left := {call[0] for call in calls if call[2] not in ANYWHERE.get(name, ())}:
                found[name] = sorted(left)
    assert found == {}, "write these by ace_bench.store.files, so that a full disk leaves no cut file"
