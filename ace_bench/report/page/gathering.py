"""Everything the page shows of one run, as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.context import Context
from ace_bench.core.errors import StoreError
from ace_bench.core.types import Message, Record, Sample
from ace_bench.report.page.recorded import Recorded, read_recorded
from ace_bench.report.page.retelling import CannotTell, Retelling, start_retelling
from ace_bench.report.page.texts import Texts
from ace_bench.report.records import RunSummary
from ace_bench.store.calls import CallRecord
from ace_bench.store.samples import packed

_NOBODY = Sample(id="", split="", inputs={})
"""Contexts look the same to every sample."""


def gather(run: RunSummary) -> Record:
    """Read a run folder, finished or not; raises ``StoreError``.

    Contexts are told by what each step changed: a playbook by its bullets, any other by the lines of its text. Prompts
    and those lines are packed (``texts``); a call says which of its role's prompts is its own, and which messages the
    prompt has. A ``note`` says what the folder does not hold.
    """
    recorded = read_recorded(run)
    texts = Texts()
    prompts: dict[str, Record] = {}

    def heard(call: CallRecord, messages: Sequence[Message]) -> None:
        place = texts.add(call.role, [message.content for message in messages])
        heads = [[message.role, message.content.count("\n") + 1] for message in messages]
        prompts[call.id] = {"at": place, "heads": heads}

    notes = [f"Left out, as it is damaged: {problem}." for problem in recorded.problems]
    retelling: Retelling | None = None
    try:
        retelling = start_retelling(recorded, heard)
    except CannotTell as reason:
        notes.append(f"Prompts are not shown: {reason}.")
    places, first = _contexts(recorded, texts, retelling, notes)
    used = {record.sample for record in recorded.rollouts}
    return {
        "about": _about(run),
        "metrics": run.metrics,
        "notes": notes,
        "kind": first.kind if first else "",
        "initial": first.dump()["bullets"] if isinstance(first, Playbook) else [],
        "steps": [_step(record, isinstance(first, Playbook)) for record in map(msgspec.to_builtins, recorded.steps)],
        "samples": packed(recorded.samples[name] for name in sorted(used & recorded.samples.keys())),
        "rollouts": [{**msgspec.to_builtins(record), "at": places.get(record.context)} for record in recorded.rollouts],
        "calls": [_call(call, prompts.get(call.id)) for call in recorded.calls],
        "texts": texts.record(),
    }


def _contexts(
    recorded: Recorded, texts: Texts, retelling: Retelling | None, notes: list[str]
) -> tuple[Mapping[str, int], Context | None]:
    """Go through the contexts; return the first step count at which each stood, by digest, and the first of them."""
    places: dict[str, int] = {}
    first: Context | None = None
    try:
        for index, context in enumerate(recorded.contexts()):
            first = first or context
            places.setdefault(context.digest, index)
            if not isinstance(context, Playbook):
                texts.add("context", [_text(context)])
            if retelling is not None:
                retelling.tell(context, index)
    except StoreError as error:
        notes.append(f"The context cannot be followed to the end: {error}.")
    if first is None:
        notes.append("The folder holds no context yet.")
    return places, first


def _text(context: Context) -> str:
    fields = context.render(_NOBODY)
    return "\n\n".join(fields.values() if len(fields) == 1 else (f"## {name}\n{text}" for name, text in fields.items()))


def _about(run: RunSummary) -> Record:
    names = (
        "task",
        "method",
        "backbone",
        "mode",
        "labels",
        "seed",
        "source",
        "simulated",
        "state",
        "reason",
        "attempt",
    )
    return {**{name: getattr(run, name) for name in names}, "folder": str(run.folder)}


def _step(record: dict[str, Any], is_playbook: bool) -> Record:
    kept = {name: record[name] for name in ("epoch", "samples", "context_tokens", "context_size", "events")}
    patch = record["patch"] if is_playbook else {}
    return {**kept, "set": patch.get("set", []), "removed": patch.get("removed", [])}


def _call(call: CallRecord, prompt: Record | None) -> Record:
    completion = call.completion
    return {
        "role": call.role,
        "stage": call.stage,
        "session": call.session,
        "reply": completion.text,
        "usage": msgspec.to_builtins(completion.usage),
        "seconds": completion.seconds,
        "retries": completion.retries,
        "replayed": completion.replayed,
        "fault": msgspec.to_builtins(call.fault),
        "prompt": prompt,
    }
