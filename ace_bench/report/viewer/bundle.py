"""The viewer as a static site: the page, and the answers of its server as files."""

from __future__ import annotations

from pathlib import Path

from ace_bench.core.errors import ConfigError, DataError, StoreError
from ace_bench.report.page.writing import viewer_page
from ace_bench.report.viewer.content import COMPARISON, MOST_COMPARED, RUNS, Content
from ace_bench.report.viewer.results import Results
from ace_bench.store.files import new_folder, write_files


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
