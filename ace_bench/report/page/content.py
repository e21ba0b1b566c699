"""What the viewer's page fetches, by name: the same bytes come from the server and lie in a bundle, a static site."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.page.listing import comparison
from ace_bench.report.page.results import Results, stamp_of_run
from ace_bench.report.page.run_data import call_data, run_data
from ace_bench.report.page.writing import packed, viewer_page
from ace_bench.report.records import RunSummary
from ace_bench.store.files import new_folder, write_files

RUNS, COMPARISON = "runs.bin", "comparison.bin"
_OF_RUN = re.compile(r"(?P<part>run|calls)-(?P<key>[0-9a-f]{12})\.bin")
_KEPT = 8
"""Number of answers about runs that are kept."""
MOST_COMPARED = 50
"""Maximum number of runs whose pairs are tested at once."""


class Content:
    """Answers by name. A query narrows an answer; a bundle holds the answers without one.

    ``runs.bin`` is the list, ``run-KEY.bin`` a run without prompts and replies, ``calls-KEY.bin`` those, of one session
    with ``session``, and ``comparison.bin`` the paired tests of the ``runs`` (keys separated by commas). ``live`` tells
    the page that the server sends events.
    """

    def __init__(self, results: Results, *, live: bool):
        self._results = results
        self._live = live
        self._kept: OrderedDict[object, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, name: str, query: Mapping[str, str]) -> bytes | None:
        """Return an answer, ``None`` if there is no such name; raises ``StoreError`` and ``DataError``."""
        if name == RUNS:
            return packed({**self._results.listing(), "live": self._live})
        runs = self._results.runs()
        if name == COMPARISON:
            chosen = query["runs"].split(",") if "runs" in query else [*runs]
            return self._compared({key: runs[key] for key in chosen if key in runs})
        found = _OF_RUN.fullmatch(name)
        if found is None or found["key"] not in runs:
            return None
        run = runs[found["key"]]
        if found["part"] == "run":
            return self._made((name, stamp_of_run(run.folder)), lambda: run_data(run))
        session = query.get("session")
        return self._made((name, session, stamp_of_run(run.folder)), lambda: call_data(run, session))

    def _compared(self, runs: Mapping[str, RunSummary]) -> bytes:
        if len(runs) > MOST_COMPARED:
            return packed({"scores": {}, "pairs": [], "problem": f"there are more than {MOST_COMPARED} runs"})
        stamps = tuple((key, stamp_of_run(run.folder)) for key, run in runs.items())
        return self._made(stamps, lambda: comparison(runs))

    def _made(self, key: object, make: Callable[[], Record]) -> bytes:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        answer = packed(make())
        with self._lock:
            self._kept[key] = answer
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return answer


def write_bundle(results: Results, folder: Path) -> list[str]:
    """Write the site to a new or empty folder; return what it lacks, and why.

    Raises ``ConfigError`` where the folder holds something, and ``FileUnwritable``.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--bundle={folder} is not empty; name a new folder")
    results.progress()  # so that the list holds it
    content = Content(results, live=False)
    problems = []
    parts = [f"{part}-{key}.bin" for key in results.runs() for part in ("run", "calls")]
    with new_folder(folder):
        write_files({folder / "index.html": viewer_page()})
        for name in (RUNS, COMPARISON, *parts):
            try:
                write_files({folder / "data" / name: content.read(name, {}) or b""})
            except (StoreError, DataError) as error:
                problems.append(str(error))
    if len(results.runs()) > MOST_COMPARED:
        problems.append(f"paired tests, as there are more than {MOST_COMPARED} runs; ace-bench view makes them")
    return problems
