"""Optimisers on the toy task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ace_bench.core.types import Fault
from ace_bench.runners.build import assemble
from ace_bench.runners.composing import settle
from ace_bench.runners.identifying import identify
from ace_bench.runners.rehearsal import rehearse
from ace_bench.runners.settings import decode
from tests.launching import Ran, composed
from tests.runners.scripted import Call, Scripted, answer, gold, play


def play_optimiser(results: Path, method: str, *overrides: str, script: Scripted, **sizes: int) -> Ran:
    """Optimise, then test; without the evaluation before."""
    return play(results, *overrides, script=script, method=method, **sizes)


def context_of(ran: Ran, name: str = "final") -> dict[str, Any]:
    return json.loads((ran.folder / "contexts" / f"{name}.json").read_text())


def estimate_calls(*settings: str) -> tuple[int, int]:
    """Return the calls of a run on four samples of a split: at least, and at most."""
    chosen = composed("task=formula", "task.source=sample", "limit=4", "mode.before=false", *settings)
    estimate = rehearse(assemble(identify(decode(settle(*chosen)))))
    return estimate.low.calls, estimate.high.calls


ONE = {"train": 1, "val": 1, "test": 1}


def starting_from(folder: Path, text: str) -> str:
    """Return the setting of a method that starts from a text."""
    path = folder / "initial.txt"
    path.write_text(text)
    return f"method.initial={path}"


WORDS = ("careful", "patient", "modest", "thorough")


def knows(prompt: str) -> int:
    """How many of the words that matter an instruction has."""
    head = prompt.partition("<instruction>")[2].partition("</instruction>")[0]
    return sum(word in head for word in WORDS)


def obedient(call: Call) -> Any:
    """Right on every sample whose number is below the number of words that the instruction has."""
    number = int(call.sample.rpartition("-")[2])
    return answer(gold(call.sample) if number < knows(call.prompt) else "wrong")


def one_word_more(call: Call) -> Any:
    """A proposer that adds the next word to the instruction it is shown, in any of DSPy's forms."""
    if "new_instruction" in call.prompt:
        current = call.prompt.split("[[ ## current_instruction ## ]]\n")[-1].partition("\n\n[[ ##")[0]
        return {"new_instruction": " ".join([current, *[word for word in WORDS if word not in current][:1]])}
    if "[[ ## proposed_instruction ## ]]" in call.prompt:
        return f"[[ ## proposed_instruction ## ]]\nBe {' '.join(WORDS[: 1 + call.nth % 4])}.\n\n[[ ## completed ## ]]"
    name = next(name for name in ("observations", "summary", "program_description", "module_description")
                if f"[[ ## {name} ## ]]" in call.prompt.split("Respond with")[-1])  # fmt: skip
    return f"[[ ## {name} ## ]]\nA remark.\n\n[[ ## completed ## ]]"


FAILING = Fault(owner="model", kind="content_filter", message="I will not")
