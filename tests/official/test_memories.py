"""``method.protocol=authors``: StreamBench's memories ask and remember, call by call, as the authors' code does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from ace_bench.tasks.ddxplus import CONDITIONS, answer_of
from tests.official import ours
from tests.official.authors import checkout, run_memory
from tests.official.comparing import compare
from tests.official.serving import Reply, draw_by, serving

pytestmark = pytest.mark.official

_TOP_K = 4
_WORDS = ("cough", "{braces}", "\\d+", "chest pain", "2\\n weeks,", "100%", "naïve;", "smokes", "--", "{{ Peru }}")


def _rows(number: int) -> list[dict[str, str]]:
    draw = random.Random(3)

    def row(place: int) -> dict[str, str]:
        case = draw.randrange(len(CONDITIONS))
        lines = [" ".join(draw.choices(_WORDS, k=6)) for _ in range(3)]
        profile = f"  Patient {place}: case {case}\n" + "\n".join(f"  - {line} " for line in lines)
        return {"PATIENT_PROFILE": profile, "PATHOLOGY": CONDITIONS[case]}

    return [row(place) for place in range(number)]


def _diagnose(messages: Sequence[dict[str, str]]) -> Reply:
    """Right in two of three cases; with a rationale where the prompt asks for one."""
    case = int(re.findall(r"case (\d+)", messages[-1]["content"])[-1])
    draw = draw_by(messages, "model")
    diagnosis = answer_of(case if draw.random() < 2 / 3 else draw.randrange(len(CONDITIONS)))
    if "<your_rationale>" not in messages[-1]["content"]:
        return Reply(diagnosis)
    said = json.dumps({"rationale": f"{draw.choice(_WORDS)}\n {{x}}", "answer": diagnosis})
    return Reply(f"Step by step:\n{said}")


@pytest.mark.parametrize(
    ("agent", "method", "settings"),
    [
        ("self_stream_icl", "self_stream_icl", ()),
        ("mem_prompt", "mem_prompt", ()),
        ("self_stream_icl_cot", "self_stream_icl", ("agent.scaffold=json",)),
    ],
)
def test_each_call_equals_the_authors(agent: str, method: str, settings: Sequence[str], tmp_path: Path) -> None:
    code = checkout("stream-bench")
    rows = _rows(40)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    data = tmp_path / "data"
    data.mkdir()
    for split, of in {"train": _rows(1), "val": _rows(1), "test": rows}.items():
        (data / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
    with serving(_diagnose) as server:
        expected = run_memory(code, tmp_path, server.url, agent=agent, top_k=_TOP_K)
        done = ours.run(
            code, tmp_path, server.url, "task=ddxplus", f"task.data_dir={data}", "task.train_size=null",
            "task.test_seed=null", "labels=correctness", "mode=online", "mode.shuffle=false", "mode.before=false",
            "embedder=hashing", f"method.top_k={_TOP_K}", "method.protocol=authors", *settings,
            method=method, protocol="paper",
        )  # fmt: skip
    assert compare(expected, ours.spoken_calls(done)) == len(rows)
