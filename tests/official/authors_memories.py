"""Runs the memories of the authors' StreamBench in a process of its own and writes down what they did.

    python tests/official/authors_memories.py CHECKOUT FOLDER URL AGENT TOP_K

CHECKOUT is a checkout of stream-bench/stream-bench, URL that of its model, AGENT the name of one of its agents and
``FOLDER/rows.json`` a list of DDXPlus rows in their order. ``FOLDER/record.json`` then holds ``calls`` (prompt and
reply in order). The loop around their classes is that of their ``run_bench.py``; texts are embedded by this harness on
both sides.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from authors_finance import completion
from authors_prompts import Missing

_REPLACED = (
    "colorama", "datasets", "evaluate", "torch", "transformers", "faiss", "stream_bench.benchmarks.math",
    "stream_bench.benchmarks.ds_1000",
)  # fmt: skip


class _Index:
    """What their memory asks of ``faiss.IndexFlatL2``."""

    def __init__(self, _size: int):
        self._rows: list[Any] = []

    def add(self, rows: Any) -> None:
        self._rows.extend(rows)

    def search(self, rows: Any, top_k: int) -> tuple[Any, Any]:
        distances = ((np.asarray(self._rows) - rows) ** 2).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[:top_k]
        return distances[nearest][None], nearest[None]


def main() -> None:
    checkout, folder, url, name, top_k = sys.argv[1:]
    sys.dont_write_bytecode = True
    from ace_bench.playbook.embed import make_embedder

    sys.path[0] = checkout  # in place of this file's folder
    sys.modules.update({replaced: MagicMock() for replaced in _REPLACED})
    sys.meta_path.append(Missing())
    embedder = make_embedder(name="hashing")
    utils = import_module("stream_bench.agents.utils")
    utils.faiss.IndexFlatL2 = _Index
    utils.RAG.encode_data = lambda _, text: np.asarray(embedder.embed([text]))[0]
    calls: list[dict[str, str]] = []

    def get_llm(series: str, model_name: str) -> Any:
        def model(prompt: str, **_: Any) -> tuple[str, dict[str, Any]]:
            said = completion(url, {"messages": [{"role": "user", "content": prompt}]})
            reply = said.choices[0].message.content
            calls.append({"role": model_name, "prompt": prompt, "reply": reply})
            return reply, {"logprobs": [], "num_input_tokens": 0, "num_output_tokens": 0}

        return model

    base = import_module("stream_bench.agents.base")
    base.get_llm, base.setup_logger = get_llm, MagicMock()
    bench = object.__new__(import_module("stream_bench.benchmarks.ddxplus").create_ddxplus())
    bench.option_text = "\n".join(f"{number}. {text}" for number, text in bench.LABEL2TEXT.items())
    bench.fewshot_text = ""
    rag = {"embedding_model": "", "order": "similar_at_bottom", "seed": 42, "top_k": int(top_k), "rag_filename": ""}
    sampling = {"max_tokens": 64, "temperature": 0.0}
    llm = {"series": "any", "model_name": "generator", **sampling}
    config = {"bench_name": "ddxplus", "split": "test", "mode": "normal", "seed": 42, "llm": llm}
    agent = import_module("stream_bench.agents").load_agent(name)({
        **config, "agent_name": name, "exp_name": "", "rag": rag, "top_k": top_k, "warmup_steps": 0
    })  # fmt: skip
    agent.bench = bench
    for row in json.loads(Path(folder, "rows.json").read_text(encoding="utf-8")):
        reply = agent(**bench.get_input(row), label_set=bench.LABEL_SET, parse_template="")
        correct = bench.postprocess_generation(reply) == bench.get_output(row)
        _, feedback = bench.give_feedback(reply, row, {"correct": correct})
        agent.update(has_feedback=True, **feedback)
    Path(folder, "record.json").write_text(json.dumps({"calls": calls}), encoding="utf-8")


if __name__ == "__main__":
    main()
