"""The smoke reproduction of docs/reproducing.md through a real server, two runs at a time."""

import json
import subprocess
import sys
import time
import urllib.request

from ace_bench.backbones.vllm.load import PATH, read_counters
from ace_bench.report.records import find_runs
from tests.launching import ROOT
from tests.pages.reading import commands
from tests.vllm.conftest import BOUNDS, hydra

READABLE = (
    f"backbone.bound_replies={hydra(BOUNDS)}",
    *("backbone.sampling.temperature=1.0", "backbone.sampling.seed=null", "backbone.sampling.max_tokens=1000"),
)
"""What lets random weights give replies that can be read: else nearly every call is a fault and every score 0."""


def counters(root):
    with urllib.request.urlopen(f"{root}{PATH}") as page:
        return read_counters(page.read().decode())


def test_table_2_is_reproduced_as_the_page_says(shared, tmp_path, capsys):
    (printed,) = [text for text in commands("docs/reproducing.md") if "results=results/smoke" in text]
    places = {"http://localhost:8000": shared.server.root, "model=NAME": "model=tiny", "results/smoke": str(tmp_path)}
    for page, here in places.items():
        assert page in printed
        printed = printed.replace(page, here)
    before = counters(shared.server.root)
    started = time.monotonic()
    words = [sys.executable, *printed.split()[1:], *READABLE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    after = counters(shared.server.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 at a time" in done.stdout
    (table,) = tmp_path.glob("tables/table_02_*.md")
    assert "missing" not in table.read_text()
    runs = find_runs(tmp_path).runs
    assert all(run.finished for run in runs)
    calls = [json.loads(line) for run in runs for line in (run.folder / "calls.jsonl").read_bytes().splitlines()]
    usages = [call["usage"] for call in calls if call["usage"]["prompt"] is not None]
    prompt, cached = (sum(usage[key] for usage in usages) for key in ("prompt", "cached"))
    queries, hits = after.queries - before.queries, after.hits - before.hits
    assert prompt <= queries, "the server counts the probes, too"
    figures = {
        "runs": len(runs),
        "seconds": round(seconds),
        "calls": len(calls),
        "faults": sum(sum(stage.values()) for run in runs for stage in run.metrics["faults"].values()),
        "tokens in a prompt": round(prompt / len(usages)),
        "cached by usage": f"{cached / prompt:.1%}",
        "cached by the server's counters": f"{hits / queries:.1%}",
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(figures, indent=1)}\n")
    assert f"{len(runs)} of {len(runs)} runs to do" in done.stdout
    assert {call["role"] for call in calls} >= {"generator", "reflector", "curator", "proposer"}
    assert 0 < cached <= hits
