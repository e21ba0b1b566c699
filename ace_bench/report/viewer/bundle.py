"""The viewer as a static site: the page, and the answers of its server as files."""

from __future__ import annotations

from pathlib import Path

from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.report.page.writing import viewer_page
from ace_bench.report.viewer.content import COMPARISON, MOST_COMPARED, RUNS, Content
from ace_bench.report.viewer.results import Results


def write_bundle(results: Results, folder: Path) -> list[str]:
    """Write the site to a new or empty folder; return what it lacks, and why.

    Raises ``ConfigError`` where the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--bundle={folder} is not empty; name a new folder")
    data = folder / "data"
    data.mkdir(parents=True)
    (folder / "index.html").write_text(viewer_page(), encoding="utf-8")
    results.progress()  # so that the list holds it
    content = Content(results, live=False)
    problems = []
    parts = [f"{part}-{key}.bin" for key in results.runs() for part in ("run", "calls")]
    for name in (RUNS, COMPARISON, *parts):
        try:
            (data / name).write_bytes(content.read(name, {}) or b"")
        except (StoreError, DataError) as error:
            problems.append(str(error))
    if len(results.runs()) > MOST_COMPARED:
        problems.append(f"paired tests, as there are more than {MOST_COMPARED} runs; ace-bench view makes them")
    return problems
