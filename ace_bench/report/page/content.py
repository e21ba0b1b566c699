"""The page and what it shows, by name: fetched from a server, lying in a static site, or inside the page.

Markup, style and script are one file with a content security policy that allows only this script and this style. A
report has its data inside; a policy for it allows no requests.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

import msgspec

from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.gains import base_folders
from ace_bench.report.page.comparing import comparison, seed_intervals
from ace_bench.report.page.results import KEY, Results, stamp_of_run
from ace_bench.report.page.run_data import call_data, run_data
from ace_bench.report.records import RunSummary
from ace_bench.store.files import new_folder, write_files

_SCRIPTS = (
    *("dom", "data", "source", "charts", "lists", "diff", "columns", "runs", "summary", "context", "rollouts"),
    *("compare", "playbooks", "main"),
)
"""In the order of their dependencies."""
_FETCHES = "connect-src 'self'; "
VIEWER, TABLES = "index.html", "tables.html"
"""The two pages of a site, and of the server."""
RUNS, COMPARISON, INTERVALS = "runs.bin", "comparison.bin", "intervals.bin"
_OF_RUN = re.compile(r"(?P<part>run|calls)-(?P<key>[0-9a-f]{12})\.bin")
_KEPT = 8
"""Number of answers about runs that are kept."""
MOST_COMPARED = 50
"""Maximum number of finished runs whose pairs are tested at once."""


class Content:
    """Answers by name. A query narrows an answer. A site holds the answers without one.

    ``runs.bin`` is the list, ``run-KEY.bin`` a run without prompts and replies, ``calls-KEY.bin`` those, of one session
    with ``session``, ``comparison.bin`` the paired tests of the ``runs`` (keys separated by commas), and
    ``intervals.bin`` the intervals of runs over their seeds. ``live`` tells the page that the server sends events.
    """

    def __init__(self, results: Results, *, live: bool):
        self._results = results
        self._live = live
        self._made = lru_cache(maxsize=_KEPT)(self._make)

    def read(self, name: str, query: Mapping[str, str]) -> bytes | None:
        """Return an answer, ``None`` if there is no such name. Raises ``StoreError`` and ``DataError``."""
        if name == RUNS:
            return _compress({**self._results.listing(), "live": self._live})
        runs = self._results.runs()
        if name == COMPARISON:
            keys = query["runs"].split(",") if "runs" in query else [*runs]
            chosen = tuple(key for key in keys if key in runs)
            if not _are_tested({key: runs[key] for key in chosen}):
                problem = f"more than {MOST_COMPARED} runs have finished"
                return _compress({"scores": {}, "pairs": [], "problem": problem})
            return self._made(name, chosen, "", tuple(stamp_of_run(runs[key].folder) for key in chosen))
        if name == INTERVALS:
            return self._made(name, tuple(runs), "", tuple(stamp_of_run(run.folder) for run in runs.values()))
        match = _OF_RUN.fullmatch(name)
        if match is None or match["key"] not in runs:
            return None
        key = match["key"]
        folders = [runs[key].folder, *(base_folders(runs[key]) if match["part"] == "run" else ())]
        return self._made(match["part"], (key,), query.get("session"), tuple(map(stamp_of_run, folders)))

    def whole(self) -> Iterator[tuple[str, bytes]]:
        """Yield all answers without a query, the list last: it names the runs that cannot be read."""
        for key in self._results.runs():
            parts = [f"{part}-{key}.bin" for part in ("run", "calls")]
            try:
                answers = {name: self.read(name, {}) or b"" for name in parts}
            except (StoreError, DataError) as error:
                self._results.leave_out(key, str(error))
            else:
                yield from answers.items()
        self._results.progress()  # so that the list holds it
        for name in (COMPARISON, INTERVALS, RUNS):
            yield name, self.read(name, {}) or b""

    def _make(self, part: str, keys: tuple[str, ...], session: str | None, stamp: object) -> bytes:
        """Make an answer about runs. It is made again when their ``stamp`` changes."""
        del stamp
        runs = self._results.runs()
        if not runs.keys() >= {*keys}:
            raise StoreError("a run was removed meanwhile; load the page again")
        if part == COMPARISON:
            return _compress(comparison({key: runs[key] for key in keys}))
        if part == INTERVALS:
            return _compress(seed_intervals([runs[key] for key in keys], KEY))
        run = runs[keys[0]]
        return _compress(run_data(run) if part == "run" else call_data(run, session))


def report_page(results: Results) -> str:
    """Return the report of the runs as one HTML file. Raises ``StoreError`` if none can be read.

    Data is compressed and base64-encoded, so text from a model can neither end its block nor reach the HTML parser. The
    script inserts it as text.
    """
    blocks = [_block(name, data) for name, data in Content(results, live=False).whole()]
    if not results.runs():
        raise StoreError(results.damaged[0].reason)
    return _page(results.listing()["common"] or f"{len(results.runs())} runs", "\n".join(blocks))


def viewer_page() -> str:
    """Return the page that fetches its data from the server that it comes from, and leads to the tables."""
    return _page("Runs", "", _FETCHES)


def write_site(results: Results, folder: Path, *, tables: str) -> list[str]:
    """Write viewer and ``tables`` as static files to a new or empty folder.

    Return the runs that are left out, with the reason.

    Raises ``ConfigError`` if the folder holds something, and ``FileUnwritable``.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty; name a new folder")
    unreadable = results.damaged
    with new_folder(folder):
        write_files({folder / VIEWER: viewer_page(), folder / TABLES: tables})
        for name, data in Content(results, live=False).whole():
            write_files({folder / "data" / name: data})
    problems = [problem.reason for problem in results.damaged if problem not in unreadable]
    if not _are_tested(results.runs()):
        problems.append(f"paired tests, as more than {MOST_COMPARED} runs have finished; ace-bench view makes them")
    return problems


def _are_tested(runs: Mapping[str, RunSummary]) -> bool:
    """Whether all pairs of some runs are tested. Only finished runs have scores."""
    return sum(run.finished for run in runs.values()) <= MOST_COMPARED


@cache
def viewer_policy() -> str:
    """Return the content security policy of ``viewer_page``, which a server also sends as a header."""
    return _policy(_FETCHES)


@cache
def tables_policy() -> str:
    """Return the content security policy of the tables. They are only markup, so it allows no script and no request."""
    return f"default-src 'none'; style-src {_source(_asset('page.css'))}; base-uri 'none'; form-action 'none'"


def render_tables(**values: object) -> str:
    """Return the page of tables, in the style of the viewer."""
    return _render("tables.html", viewer=VIEWER, style=_asset("page.css"), policy=tables_policy(), **values)


def _page(title: str, data: str, fetches: str = "") -> str:
    values = {"title": title, "style": _asset("page.css"), "data": data, "script": _script()}
    return _render("page.html", policy=_policy(fetches), tables=TABLES if fetches else "", **values)


def _render(name: str, **values: object) -> str:
    """Fill in a template. Values are escaped where it does not call them safe."""
    from jinja2 import Environment, StrictUndefined

    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return templates.from_string(_asset(name)).render(values)


def _policy(fetches: str) -> str:
    """Allow only this script and this style. The script cannot turn text into markup or code either."""
    return (
        f"default-src 'none'; {fetches}script-src {_source(_script())}; style-src {_source(_asset('page.css'))}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "})();\n"


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """Name an inline script or style by its hash, as a policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _block(name: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return f'<script type="text/plain" id="data-{name.removesuffix(".bin")}">{text}</script>'


def _compress(value: Record) -> bytes:
    """Compress data for the page."""
    return zlib.compress(msgspec.json.encode(value), 3)
