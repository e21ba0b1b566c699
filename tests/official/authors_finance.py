"""Runs the authors' finance code in a process of its own and writes down what it did.

    python tests/official/authors_finance.py CHECKOUT FOLDER URL [options of their finance/run.py]

CHECKOUT is a checkout of ace-agent/ace, older or newer: the finance task moved from ``finance`` to ``eval/finance``.
Batches, where it has them, are worked off in order, and shuffled as the seed of step ``0/combee/<step>`` says.
FOLDER holds ``finance/data/sample_config.json`` and the files it names, and
URL is a server that speaks the chat-completions protocol. ``FOLDER/record.json`` then holds ``calls`` (role, prompt and
reply in order; of a Generator's the answer and its verdict), ``steps`` (the playbook after each, and the next number of
a bullet) and ``files`` (what their run wrote, by name). Only the standard library is needed: the packages that their
code imports are replaced by small stand-ins.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import sys
import types
import urllib.request
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

_SECONDS = 600  # of a call: a real model on a small machine is slow
_KEPT = ("final_results.json", "train_results.json", "test_results.json")


def completion(url: str, parameters: dict[str, Any]) -> Any:
    """Ask a server; the answer's fields are attributes."""
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(parameters).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:
        return json.load(response, object_hook=lambda fields: types.SimpleNamespace(**fields))


def _stand_ins(url: str) -> dict[str, types.ModuleType]:
    """Return the modules that are not there or would need the network."""

    class Client:
        def __init__(self, **_: Any):
            create = types.SimpleNamespace(create=lambda **parameters: completion(url, parameters))
            self.chat = types.SimpleNamespace(completions=create)

    words = types.SimpleNamespace(encode=str.split)
    contents = {
        "openai": {"OpenAI": Client},
        "tiktoken": {"get_encoding": lambda _: words},
        "dotenv": {"load_dotenv": lambda: None},
        "numpy": {"ndarray": object},  # only their de-duplication computes with it
    }
    modules = {}
    for name, attributes in contents.items():
        modules[name] = types.ModuleType(name)
        vars(modules[name]).update(attributes)
    return modules


class Recorder:
    """What the authors' code did."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.calls: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []

    def watch_calls(self) -> None:
        """Note each call; the roles take the function from ``llm``, so it is wrapped before they are imported."""
        llm = importlib.import_module("llm")
        inner = llm.timed_llm_call

        def call(*arguments: Any, **options: Any) -> Any:
            reply, about = inner(*arguments, **options)
            self.calls.append({"role": options["role"], "prompt": arguments[3], "reply": reply})
            return reply, about

        llm.timed_llm_call = call

    def watch_answers(self) -> None:
        """Note what was read from each reply of the Generator; with one worker it is graded before the next call."""
        processor = importlib.import_module(f"{self.task}.data_processor").DataProcessor
        inner = processor.answer_is_correct

        def graded(self_: Any, answer: str, target: str) -> bool:
            correct: bool = inner(self_, answer, target)
            if self.calls[-1]["role"] == "generator":  # batches grade a first answer once more at the end
                self.calls[-1].setdefault("answer", answer)
                self.calls[-1].setdefault("correct", correct)
            return correct

        processor.answer_is_correct = graded

    def watch_loop(self) -> None:
        """Note each step."""
        loop = importlib.import_module("ace.ace").ACE
        train = loop._train_single_sample

        def step(system: Any, **options: Any) -> Any:
            answers = train(system, **options)
            self.steps.append({"after": system.playbook, "next": system.next_global_id})
            return answers

        loop._train_single_sample = step

    def watch_batches(self) -> None:
        """Note each batch. Its samples are worked off in order, so that an answer belongs to the call before it."""
        batches = importlib.import_module("ace.ace_batch")
        train = batches.ACEBatch._train_batch
        batches.ThreadPoolExecutor, batches.as_completed = InOrder, list
        vars(batches).setdefault("is_api_error", lambda _: True)  # this state calls it and defines it nowhere
        batches.random = types.SimpleNamespace(shuffle=self._shuffle)

        def step(system: Any, **options: Any) -> Any:
            answers = train(system, **options)
            self.steps.append({"after": system.playbook, "next": system.next_global_id})
            return answers

        batches.ACEBatch._train_batch = step

    def _shuffle(self, items: list[Any]) -> None:
        random.Random(f"0/combee/{len(self.steps)}").shuffle(items)


class InOrder:
    """A pool of threads without threads."""

    def __init__(self, **_: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, function: Any, *arguments: Any, **options: Any) -> Future[Any]:
        """Do the work at once."""
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **options))
        except Exception as error:
            done.set_exception(error)
        return done


def _written(results: Path) -> dict[str, str]:
    """Return the playbooks and result files of the only run in a folder."""
    (run,) = results.iterdir()
    paths = [*(run / name for name in _KEPT), *run.glob("*playbook.txt"), *run.glob("intermediate_playbooks/*")]
    return {str(path.relative_to(run)): path.read_text(encoding="utf-8") for path in paths if path.exists()}


def main() -> None:
    checkout, folder, url, *options = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.path[0] = checkout  # in place of this file's folder
    sys.modules.update(_stand_ins(url))
    os.environ["SAMBANOVA_API_KEY"] = "none"
    os.chdir(folder)
    newer = Path(checkout, "eval", "finance").is_dir()
    if newer:
        shutil.copytree("finance", "eval/finance")
    recorder = Recorder("eval.finance" if newer else "finance")
    recorder.watch_calls()
    run = importlib.import_module(f"{recorder.task}.run")
    recorder.watch_answers()
    recorder.watch_loop()
    if Path(checkout, "ace", "ace_batch.py").exists():
        recorder.watch_batches()
    sys.argv = ["run.py", *options, "--save_path", "authors"]
    run.main()
    Path("record.json").write_text(json.dumps({**vars(recorder), "files": _written(Path("authors"))}), encoding="utf-8")


if __name__ == "__main__":
    main()
