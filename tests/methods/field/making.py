"""What the tests of the field's memories share: a task of some subjects, scripted roles, faults, and what is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Any

from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import Fault, Sample
from tests.launching import Ran
from tests.runners.scripted import Call, Script, Scripted, Toy, answer, events, gold, play

BROKEN = Fault(owner="model", kind="content_filter", message="no")
TOO_LONG = Fault(owner="model", kind=CONTEXT_LENGTH, message="too long")
_SHOWN = re.compile(r"<(past_answers|memory_items|workflows)>\n(.*?)\n</\1>", re.DOTALL)


class Themed(Toy):
    """Samples on some subjects in turn."""

    subjects: tuple[str, ...] = ("the price of tin in Malacca", "seven silent violins")

    def samples(self, split: str) -> Sequence[Sample]:
        asked = zip(super().samples(split), cycle(self.subjects), count(), strict=False)
        return [
            Sample(id=one.id, split=split, inputs={"background": "Toy.", "question": f"{subject}, part {number}?"})
            for one, subject, number in asked
        ]


def even_right(call: Call) -> dict[str, Any]:
    """Right on samples with even numbers."""
    return answer(gold(call.sample) if int(call.sample[-1]) % 2 == 0 else f"wrong on {call.sample}")


def even_right_as_text(call: Call) -> str:
    """The same, for methods that ask for plain text."""
    return str(even_right(call)["final_answer"])


def item(title: str, content: Any = "do so") -> dict[str, Any]:
    """One of ReasoningBank's items."""
    return {"title": title, "description": "in short", "content": content}


def workflow(title: str) -> dict[str, Any]:
    """A routine of two steps."""
    return {"title": title, "description": "when asked", "steps": ["look", f"do as in {title}"]}


def note_item(call: Call) -> dict[str, Any]:
    """An extractor that names the sample and what it was told of the attempt."""
    told = "succeeded" if "an attempt that succeeded" in call.prompt else "failed"
    return {"memory_items": [item(f"{told} on {call.sample}")]}


def note_workflow(call: Call) -> dict[str, Any]:
    """An inducer that finds one routine, named after the sample."""
    return {"workflows": [workflow(f"saw {call.sample}")]}


def learn(
    folder: Path, method: str, *settings: str, mode: str = "online", task: Callable[..., Toy] = Toy, **roles: Any
) -> tuple[Ran, Scripted]:
    """Run a method; ``roles`` are the scripts of its models, and the sizes of splits."""
    scripts: dict[str, Script] = {name: script for name, script in roles.items() if callable(script)}
    script = Scripted(
        **{
            "generator": even_right,
            "extractor": note_item,
            "inducer": note_workflow,
            "self_judge": lambda _: {"success": True},
            **scripts,
        }
    )
    sizes = {name: size for name, size in roles.items() if name not in scripts}
    asked = (f"mode={mode}", "mode.before=false", "mode.shuffle=false", *settings)
    ran = play(folder, *asked, script=script, method=method, task=task, **sizes)
    assert ran.status == 0
    return ran, script


def prompts_of(script: Scripted, stage: str = "") -> dict[str, str]:
    """The last prompt of the generator for each sample."""
    return {call.sample: call.prompt for call in script.of("generator") if call.session.startswith(stage)}


def shown(prompt: str) -> list[int]:
    """The numbers at the end of the questions and titles that a prompt shows, in order."""
    found = _SHOWN.search(prompt)
    return [int(one) for one in re.findall(r"^(?:Question: |## ).*?(\d+)\??$", found[2], re.MULTILINE)] if found else []


def events_of(ran: Ran, kind: str) -> list[dict[str, Any]]:
    """The events of a kind."""
    return [event for event in events(ran) if event["event"] == kind]


def titles(ran: Ran) -> list[str]:
    """The titles in the last context of AWM and ReasoningBank."""
    from tests.methods.playing import context_of

    saved = context_of(ran)
    groups = [one["items"] for one in saved["experiences"]] if "experiences" in saved else [saved["items"]]
    return [one["title"] for some in groups for one in some]
