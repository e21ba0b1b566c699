"""Renders prompts with the authors' code, which asks no model.

    python tests/official/authors_prompts.py REPOSITORY CHECKOUT < cases.json > prompts.json

REPOSITORY is ``dynamic-cheatsheet`` or ``stream-bench``. The cases are a JSON list, and so are the prompts:
for each case an object of its messages by role. Packages that their code imports are replaced where it does not need
them for that.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

Case = dict[str, Any]
PAST_QUERIES = [
    {"question": f"Which {answer}?", "answer": f"SELECT {answer}", "correctness": f"Your answer is {verdict}"}
    for answer, verdict in (("{a}", "correct"), ("\\b", "not correct"))
]
_REPLACED = {
    "dynamic-cheatsheet": ("litellm", "tiktoken", "sklearn", "sklearn.metrics", "sklearn.metrics.pairwise"),
    "stream-bench": ("evaluate", "datasets", "stream_bench.benchmarks.utils"),
}


class Missing(MetaPathFinder, Loader):
    """Stands in for every package that is not there: a whole checkout imports many that prompts do not need."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        package = sys.modules.get(name.partition(".")[0])
        known = isinstance(getattr(package, "__file__", None), str)  # not of a package that others share, as google
        return None if known else ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> Any:
        return MagicMock()

    def exec_module(self, module: Any) -> None:
        pass


def dynamic_cheatsheet(cases: list[Case]) -> list[Case]:
    """Return all messages of one step of the cumulative approach."""
    module = import_module("dynamic_cheatsheet.language_model")
    import_module("dynamic_cheatsheet.utils.execute_code").execute_code_with_timeout = lambda _: "42"
    prompts = Path(module.__file__).parents[1] / "prompts"
    templates = [
        (prompts / f"{name}.txt").read_text(encoding="utf-8")
        for name in ("generator_prompt", "curator_prompt_for_dc_cumulative")
    ]
    made = []
    for case in cases:
        sent: list[Any] = []
        replies = iter(case["replies"])

        def client(messages: Any, _sent: list[Any] = sent, _replies: Any = replies, **_: Any) -> Any:
            _sent.append([dict(message) for message in messages])
            return types.SimpleNamespace(choices=[types.SimpleNamespace(message={"content": next(_replies)})])

        model = module.LanguageModel("openai/gpt-4o")
        model.client = client
        model.advanced_generate(
            "DynamicCheatsheet_Cumulative",
            case["question"],
            cheatsheet=case["cheatsheet"] or "(empty)",
            generator_template=templates[0],
            cheatsheet_template=templates[1],
        )
        made.append({"calls": sent})
    return made


def ddxplus(cases: list[Case]) -> list[Case]:
    """Return the prompts without and with examples."""
    sys.modules["stream_bench.benchmarks.utils"].strip_all_lines = lambda text: "\n".join(
        map(str.strip, text.splitlines())
    )
    bench_class = import_module("stream_bench.benchmarks.ddxplus").create_ddxplus()

    class Rows(list[Any]):
        def shuffle(self, seed: int) -> Rows:
            return self

    sql = import_module("stream_bench.benchmarks.text_to_sql").GeneralText2SQL
    past = "\n\n\n".join(sql.get_memprompt_template().format(**one) for one in PAST_QUERIES)
    made = []
    for case in cases:
        bench = object.__new__(bench_class)
        bench.seed, bench.NUM_SHOTS = 0, len(case["shots"])
        bench.dataset = {"validate": Rows(case["shots"])}
        bench.option_text = "\n".join(f"{number}. {name}" for number, name in bench.LABEL2TEXT.items())
        bench.fewshot_text = bench.get_fewshot_text()
        shown = bench.get_input(case["row"])
        made.append(
            {
                "base": shown["prompt_zeroshot"],
                "demonstrated": shown["prompt_fewshot"],
                "query": sql.get_zeroshot_prompt(case["schema"], case["asked"]),
                "queries": sql.get_fewshot_template(case["schema"], case["asked"]).replace("{fewshot_text}", past),
            }
        )
    return made


def main() -> None:
    repository, checkout = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = checkout  # in place of this file's folder
    sys.modules.update({name: MagicMock() for name in _REPLACED[repository]})
    sys.meta_path.append(Missing())
    render = {"dynamic-cheatsheet": dynamic_cheatsheet, "stream-bench": ddxplus}[repository]
    with contextlib.redirect_stdout(io.StringIO()):
        made = render(json.load(sys.stdin))
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
