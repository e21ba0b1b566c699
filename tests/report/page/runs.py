"""Runs that the tests of the report look at."""

import ctypes
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

from ace_bench.backbones.embedded.backbone import EmbeddedBackbone
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Fault
from ace_bench.report.page.editing import Editing
from ace_bench.report.page.results import Results
from ace_bench.report.page.server import ViewerServer
from ace_bench.store.lines import SEAL
from tests.backbones.serving import running
from tests.doubles import Recording
from tests.launching import launch

FINER = ("task=finer", "task.source=sample")
_STEAL = "document.title='owned'"
HOSTILE = f'</script><script>{_STEAL}</script><img src=x onerror="{_STEAL}">\u2028&amp;\x00'


def copied(folder, target):
    """A copy of a run folder that may be spoilt."""
    shutil.copytree(folder, target)
    return target


def changed(folder: Path, name: str, change=id) -> None:
    """Change each line of a JSON Lines file in place, as in a folder of a version without checksums."""
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    for line in lines:
        change(line)
        for field in SEAL:
            line.pop(field, None)
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@contextmanager
def permissions_count():
    """Let permissions hold for root, too, until the block ends (capabilities 1 and 2 of Linux)."""
    libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    before, sets[0] = sets[0], sets[0] & ~0b110
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0


class Failing(Recording):
    """Fails while evaluating: on some samples, and where the prompt is too long."""

    def __init__(self, inner: EmbeddedBackbone, *, marked: str = "", longest: int = 10**9):
        super().__init__(inner)
        self._marked = marked
        self._longest = longest

    def complete(self, messages, *, role, session, schema=None):
        evaluates = session.startswith("evaluate")
        if evaluates and sum(len(message.content) for message in messages) > self._longest:
            raise RolloutFault(Fault(owner="model", kind="context_length", message="the prompt is too long"))
        if evaluates and self._marked and self._marked in session:
            raise RolloutFault(Fault(owner="backbone", kind="no_reply", message="the server said 500"))
        return super().complete(messages, role=role, session=session, schema=schema)


def recorded_prompts(tmp_path, *overrides, **settings):
    """Run an experiment; return it and all prompts that its backbone was sent, by role and session."""
    backbones = []

    def wrapped(inner):
        backbones.append(Failing(inner, **settings))
        return backbones[-1]

    ran = launch(tmp_path, *overrides, backbone=wrapped)
    return ran, sorted(asked for backbone in backbones for asked in backbone.asked)


def unfinished_copy(folder, target, lines=9):
    """A run that is under way: the first lines of its journal, and no result."""
    copied(folder, target)
    (target / "metrics.json").unlink()
    (target / "status.json").write_text('{"state": "running", "reason": ""}')
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (target / "journal.jsonl").write_bytes(b"".join(journal[:lines]))
    return target


def viewing(root, *, editing=False, tables="<p>The tables.</p>"):
    """The viewer of a folder on a free port. It is read-only unless it takes changes of playbooks."""
    results = Results(root)
    changes = Editing(results, root) if editing else None
    return running(ViewerServer(results, 0, make_tables=lambda: tables, editing=changes))


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text())


def lines_of(folder, kind):
    """The lines of a run's journal of one kind."""
    lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]
