"""The notebooks, and the Python that pages print for notebooks, run as they are."""

import os
import re
import warnings

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import running
from tests.launching import ROOT, launch

PRINTED = re.compile(r"```python\n(.*?)```", re.DOTALL)
FOLDER = re.compile(r'"results/[^"]*/\.\.\./seed0"')
LONG_NUMBER = re.compile(r"\d+\.\d{10,}(e-?\d+)?")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("run"), "task=finer", "task.source=sample", "limit=2", "mode.epochs=1").folder


@pytest.mark.parametrize("page", ["docs/python-api.md", "docs/reports.md"])
def test_what_a_page_prints_for_notebooks_runs(page, folder):
    pytest.importorskip("matplotlib").use("Agg")
    blocks = [block for block in PRINTED.findall((ROOT / page).read_text()) if FOLDER.search(block)]
    assert blocks
    for block in blocks:
        exec(compile(FOLDER.sub(lambda _: repr(str(folder)), block), page, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb")))
def test_a_notebook_shows_what_it_gives_with_a_served_model(name, tmp_path, monkeypatch):
    """Its stored outputs are those of the embedded backbone; the same model over HTTP must give them again."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    stored = nbformat.read(ROOT / "notebooks" / name, 4)
    executed = nbformat.read(ROOT / "notebooks" / name, 4)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        model = f"backbone=openai_compatible backbone.base_url={server.address} backbone.model=embedded"
        monkeypatch.setenv("ACE_BENCH_MODEL", f"{model} backbone.simulated=true backbone.api_key_env=null")
        with warnings.catch_warnings():  # of Jupyter's own code
            warnings.simplefilter("ignore")
            client = nbclient.NotebookClient(executed, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
            client.execute()
        assert server.stats()["completions"] > 100
    for before, after in zip(stored.cells, executed.cells, strict=True):
        assert texts(before) == texts(after)


def texts(cell):
    """The printed texts; of numbers only the digits that are the same on all processors."""
    found = (output.get("data", {}).get("text/plain", output.get("text")) for output in cell.get("outputs", ()))
    return [text and LONG_NUMBER.sub(lambda number: f"{float(number[0]):.10g}", text) for text in found]
