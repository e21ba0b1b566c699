"""The Python that pages print for notebooks runs as printed, over a run folder."""

import re

import pytest

from tests.launching import ROOT, launch

PRINTED = re.compile(r"```python\n(.*?)```", re.DOTALL)
FOLDER = re.compile(r'"results/[^"]*/\.\.\./seed0"')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("run"), "task=finer", "task.source=sample", "limit=2", "mode.epochs=1").folder


@pytest.mark.parametrize("page", ["README.md", "docs/reports.md"])
def test_what_a_page_prints_for_notebooks_runs(page, folder):
    pytest.importorskip("matplotlib").use("Agg")
    blocks = [block for block in PRINTED.findall((ROOT / page).read_text()) if FOLDER.search(block)]
    assert blocks
    for block in blocks:
        exec(compile(FOLDER.sub(lambda _: repr(str(folder)), block), page, "exec"), {})
