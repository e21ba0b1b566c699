"""The page: markup, style, script and data in one file, with a content security policy."""

from __future__ import annotations

import base64
import hashlib
import html
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources

import msgspec

from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.types import Record
from ace_bench.report.differences import differences
from ace_bench.report.page.comparing import comparison
from ace_bench.report.page.run_data import run_data
from ace_bench.report.records import Damaged, RunSummary

_SCRIPTS = ("dom", "data", "charts", "lists", "summary", "context", "rollouts", "compare", "main")
"""In the order of their dependencies."""


def report_page(runs: Sequence[RunSummary], damaged: Sequence[Damaged] = ()) -> str:
    """Return the report of one or several runs as HTML; runs that cannot be read are listed with the reason.

    Raises ``StoreError`` if none can be read.

    Data is compressed and base64-encoded, so text from a model can neither end its block nor reach the HTML parser; the
    script inserts it as text. The policy allows only this script and this style, and no requests.
    """
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    shown, unreadable = _read(runs, damaged)
    data = "\n".join(_block(name, value) for name, value in _values(shown, unreadable).items())
    title = differences([run for run, _ in shown]).common or f"{len(shown)} runs"
    parts = {"policy": policy, "title": html.escape(title), "style": style, "data": data, "script": script}
    page = _asset("page.html")
    for name, text in parts.items():
        before, after = page.split(f"<!-- {name} -->")  # one by one: a part must not be inserted into another
        page = before + text + after
    return page


def _read(
    runs: Sequence[RunSummary], damaged: Sequence[Damaged]
) -> tuple[list[tuple[RunSummary, Record]], list[Damaged]]:
    """Return the readable runs with their data, and the unreadable ones."""
    shown, unreadable = [], [*damaged]
    for run in runs:
        try:
            shown.append((run, run_data(run)))
        except (StoreError, DataError) as error:
            unreadable.append(Damaged(folder=run.folder, reason=str(error)))
    if not shown:
        raise StoreError(unreadable[0].reason)
    return shown, unreadable


def _values(shown: Sequence[tuple[RunSummary, Record]], unreadable: Sequence[Damaged]) -> Mapping[str, Record]:
    """Return the contents of the page's data blocks by id."""
    several = len(shown) + len(unreadable) > 1
    differ = differences([run for run, _ in shown])
    head = {
        "common": differ.common,
        "labels": differ.labels,
        "comparison": comparison([run for run, _ in shown]) if several else None,
        "runs": len(shown),
        "unreadable": [{"folder": str(one.folder), "reason": one.reason} for one in unreadable],
    }
    return {"data-report": head, **{f"data-run-{place}": data for place, (_, data) in enumerate(shown)}}


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """Name an inline script or style by its hash, as a policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _block(name: str, value: Record) -> str:
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(value))).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>'
