"""The page: markup, style and script in one file with a content security policy; its data is embedded or fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.page.listing import comparison, listing, run_row, with_progress
from ace_bench.report.page.run_data import call_data, run_data
from ace_bench.report.progress import Progress
from ace_bench.report.records import Damaged, RunSummary

_SCRIPTS = (
    *("dom", "data", "source", "charts", "lists", "diff", "columns", "runs", "summary", "context", "rollouts"),
    *("compare", "playbooks", "main"),
)
"""In the order of their dependencies."""
_FETCHES = "connect-src 'self'; "


def report_page(runs: Sequence[RunSummary], damaged: Sequence[Damaged] = ()) -> str:
    """Return the report of one or several runs as one HTML file; runs that cannot be read are listed with the reason.

    Raises ``StoreError`` if none can be read.

    Data is compressed and base64-encoded, so text from a model can neither end its block nor reach the HTML parser; the
    script inserts it as text. The policy allows only this script and this style, and no requests.
    """
    shown: dict[str, RunSummary] = {}
    blocks: dict[str, Record] = {}
    unreadable = [*damaged]
    for run in runs:
        key = str(len(shown))
        try:
            blocks |= {f"data-run-{key}": run_data(run), f"data-calls-{key}": call_data(run)}
            shown[key] = run
        except (StoreError, DataError) as error:
            unreadable.append(Damaged(folder=run.folder, reason=str(error)))
    if not shown:
        raise StoreError(unreadable[0].reason)
    rows = {key: run_row(run, str(run.folder)) for key, run in shown.items()}
    rows = {key: row if row["result"] else with_progress(row, Progress(shown[key].folder)) for key, row in rows.items()}
    found = listing(rows, [*shown.values()], unreadable)
    blocks |= {"data-runs": found, "data-comparison": comparison(shown)}
    data = "\n".join(_block(name, value) for name, value in blocks.items())
    return _page(found["common"] or f"{len(shown)} runs", data)


def viewer_page() -> str:
    """Return the page that fetches its data from the server that it comes from."""
    return _page("Runs", "", _FETCHES)


@cache
def viewer_policy() -> str:
    """Return the content security policy of ``viewer_page``, which a server also sends as a header."""
    return _policy(_FETCHES)


def packed(value: Record) -> bytes:
    """Compress data for the page."""
    return zlib.compress(msgspec.json.encode(value), 3)


def _page(title: str, data: str, fetches: str = "") -> str:
    parts: Mapping[str, str] = {
        "policy": _policy(fetches),
        "title": html.escape(title),
        "style": _asset("page.css"),
        "data": data,
        "script": _script(),
    }
    page = _asset("page.html")
    for name, text in parts.items():
        before, after = page.split(f"<!-- {name} -->")  # one by one: a part must not be inserted into another
        page = before + text + after
    return page


def _policy(fetches: str) -> str:
    """Allow this script and this style alone; the script cannot turn text into markup or code either."""
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


def _block(name: str, value: Record) -> str:
    return f'<script type="text/plain" id="{name}">{base64.b64encode(packed(value)).decode()}</script>'
