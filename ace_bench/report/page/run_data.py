"""Everything the page shows of one run, as JSON objects read from its folder.

Prompts and replies, by far the largest part, are an object of their own: a page needs them only once a rollout is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

import msgspec

from ace_bench.contexts.base import apply_patch
from ace_bench.contexts.loading import is_known, restore
from ace_bench.core.backbones import explain_all_reasoning
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import DataError, StoreError
from ace_bench.core.model_names import count_models, describe_other_models
from ace_bench.core.types import Message, Record, Sample
from ace_bench.report.gains import NO_ANSWER, answer_of
from ace_bench.report.histories import history, last_used
from ace_bench.report.page.results import ABOUT
from ace_bench.report.records import RunSummary
from ace_bench.report.tables.grids import certificate_note
from ace_bench.report.tables.unfinished import command_continuing
from ace_bench.store.calls import CallRecord, StoredCall, restore_calls, stored_calls
from ace_bench.store.folder import SAMPLES, format_json, pack_samples, unpack_samples
from ace_bench.store.gains import advice_on_gain
from ace_bench.store.journal import RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.processes import read_processes
from ace_bench.store.results import read_object
from ace_bench.store.role_counts import count_roles
from ace_bench.store.roles import advice_on_roles, roles_of
from ace_bench.store.speed import SpeedMeter, advice_on_speed

_FIRST = ("initial.json", "tested.json")
"""Files with the first context: a run without adaptation has only the one that it tested."""
_NO_SAMPLE = Sample(id="", split="", inputs={})
"""Renders a context without a particular sample."""
_OF_PROCESS = ("at", "how", "reason", "seconds", "commit", "python", "command")
_EMBEDDER = "embedder"
"""The role whose replies are vectors: nothing to read, and far larger than all the rest of a page."""
_BLOCK = 64
"""Number of lines that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class _Contexts:
    """The kind, digest and bullets of the first context, and the number of steps before each context, by digest.

    ``changes`` are the bullets that each step of a playbook ``set`` and ``removed``, up to an error in the contexts,
    ``versions`` the playbooks.
    """

    kind: str
    places: Mapping[str, int]
    first: str | None = None
    bullets: Sequence[Record] = ()
    changes: Sequence[Record] = ()
    versions: Sequence[Context] = ()


def run_data(run: RunSummary) -> Record:
    """Read a run folder, finished or not, without its prompts and replies. Raises ``StoreError``.

    A playbook of either kind is given as its first bullets and the changes of each step, any other context as text in
    ``texts``. ``used`` is the last step that used a bullet. ``notes`` say what is missing in the folder.
    """
    journal = read_lines(run.folder / "journal.jsonl", parse_journal)
    calls = stored_calls(run.folder)
    notes = [f"Left out, as it is damaged: {lines.summary}." for lines in (journal, calls) if lines.problems]
    records = [line.record for line in journal.entries]
    rollouts = [record for record in records if isinstance(record, RolloutRecord)]
    steps = [record for record in records if isinstance(record, StepRecord)]
    samples, texts = _samples(run.folder), Texts()
    contexts = _contexts(run.folder, steps, texts, notes)
    used = {record.sample for record in rollouts}
    roles = roles_of(run.metrics)
    if roles is None:
        roles = count_roles(restore_calls(calls.entries), rollouts, steps, contexts.versions)
    answer = _answer(run, contexts.first, calls.entries, notes)
    return {
        "about": {**{name: getattr(run, name) for name in ABOUT}, "folder": str(run.folder)},
        "processes": _processes(run.folder),
        "continues": command_continuing(run),
        "metrics": run.metrics,
        "answer": answer,
        "certificate": certificate_note([run]),
        "speed": _speed(calls.entries),
        "advice": [
            *filter(None, [advice_on_gain(run.metrics), advice_on_speed(run.metrics.get("timing", {}))]),
            *advice_on_roles(roles),
        ],
        "roles": {role: quality.describe() for role, quality in roles.items()},
        "warnings": _warnings(run, calls.entries),
        "notes": notes,
        "kind": contexts.kind,
        "initial": contexts.bullets,
        "used": last_used(contexts.bullets, contexts.changes, steps, rollouts),
        "steps": [*map(_step, steps, chain(contexts.changes, repeat({})))],
        "samples": pack_samples(samples[name] for name in sorted(used & samples.keys())),
        "rollouts": [
            {**msgspec.to_builtins(rollout), "at": contexts.places.get(rollout.context)} for rollout in rollouts
        ],
        "calls": [_cost(call.record) for call in calls.entries],
        "texts": texts.record(),
    }


def _answer(run: RunSummary, first: str | None, calls: Sequence[StoredCall], notes: list[str]) -> Record:
    """Return what the page says first. A folder that lacks what this needs is still shown, with a note."""
    try:
        return answer_of(run, first, calls)
    except StoreError as error:
        notes.append(f"Whether the run helped cannot be told: {error}.")
        return NO_ANSWER


def _warnings(run: RunSummary, calls: Sequence[StoredCall]) -> list[str]:
    """Say which models answered in place of others, and which replies had no text but reasoning."""
    answered = [call.record for call in calls if call.record.fault is None or not call.record.fault.unanswered]
    models = count_models((run.asked_model(call.role), call.completion.model, 1) for call in answered)
    silent = sum(call.completion.all_reasoning for call in answered)
    empty = f"{silent:,} of {len(answered):,} replies have no text: {explain_all_reasoning()}"
    return [*filter(None, [describe_other_models(models)]), *[empty] * bool(silent)]


def call_data(run: RunSummary, session: str | None = None) -> Record:
    """Read what was sent in the calls of a run, or of one session, and what came back. Raises ``StoreError``.

    ``index`` of a call is its index in ``run_data``. Prompts are in ``texts``: ``at`` of a prompt is its index among
    the prompts of its role, ``heads`` are the role and the number of lines of each message.
    ``note`` says how many prompts are missing.
    """
    stored = stored_calls(run.folder).entries
    wanted = [index for index, call in enumerate(stored) if session in (None, call.record.session)]
    chosen = frozenset(wanted)
    texts = Texts()
    earlier = stored[: wanted[-1] + 1] if wanted else []
    calls = [_call(index, call, texts) for index, call in enumerate(restore_calls(earlier)) if index in chosen]
    unknown = sum(call["prompt"] is None for call in calls)
    note = f"The prompts of {unknown} of {len(calls)} calls are not shown: they depend on damaged lines."
    return {"calls": calls, "texts": texts.record(), "note": note if unknown else ""}


def _samples(folder: Path) -> Mapping[str, Sample]:
    """Return the samples by id. Empty for folders of older versions, which have none."""
    try:
        return unpack_samples(read_object(folder, SAMPLES)) if (folder / SAMPLES).exists() else {}
    except DataError as error:
        raise StoreError(f"{folder}: {error}") from error


def _contexts(folder: Path, steps: Sequence[StepRecord], texts: Texts, notes: list[str]) -> _Contexts:
    """Read the contexts of a run. Contexts that are not playbooks are added to ``texts``."""
    name = next((name for name in _FIRST if (folder / "contexts" / name).exists()), None)
    if name is None or (name != _FIRST[0] and steps):
        notes.append("The folder holds no context yet.")
        return _Contexts(kind="", places={})
    first = read_object(folder, f"contexts/{name}")
    kind, contexts = str(first.get("kind")), list[Context]()
    if not is_known(kind):
        values, description = _unknown_contexts(first, steps)
        notes.append(f"ace-bench does not know contexts of kind {kind!r}; {description} as JSON.")
        for value in values:
            texts.add("context", [format_json(value)])
        return _Contexts(kind=kind, places={step.digest: index for index, step in enumerate(steps, 1)})
    try:
        for context in history(folder) if name == _FIRST[0] else [restore(first)]:
            contexts.append(context)
    except StoreError as error:
        notes.append(f"The contexts are shown only up to an error: {error}.")
    places = {context.digest: index for index, context in reversed([*enumerate(contexts)])}
    digest = contexts[0].digest if contexts else None
    versions = [context for context in contexts if isinstance(context, HasBullets)]
    if versions:
        bullets, changes = versions[0].bullet_changes(versions[1:], [step.samples for step in steps])
        return _Contexts(kind=kind, bullets=bullets, changes=changes, places=places, versions=contexts, first=digest)
    for context in contexts:
        texts.add("context", [_text(context)])
    return _Contexts(kind=kind, places=places, first=digest)


def _unknown_contexts(first: Record, steps: Sequence[StepRecord]) -> tuple[list[Record], str]:
    """Return what to show by step, and a description: the contexts, or the patches where their format is unknown."""
    contexts = [first]
    try:
        for step in steps:
            contexts.append(apply_patch(contexts[-1], step.patch))
            if digest_of(contexts[-1]) != step.digest:
                raise DataError(f"step {step.index} does not lead to its context")
    except DataError:
        return [first, *(step.patch for step in steps)], "the first one and the patch of each step are shown"
    return contexts, "the context after each step is shown"


def _text(context: Context) -> str:
    fields = {name: text for name, text in context.render(_NO_SAMPLE).items() if isinstance(text, str)}
    return "\n\n".join(fields.values() if len(fields) == 1 else (f"## {name}\n{text}" for name, text in fields.items()))


def _processes(folder: Path) -> list[Record]:
    """Return who worked on the run, with what changed in the software from one to the next."""
    processes = read_processes(folder)
    return [
        {
            **{name: getattr(process, name) for name in _OF_PROCESS},
            "host": {name: process.host.get(name) for name in ("id", "cpu", "cores", "memory_gib", "gpus")},
            "changes": before.changes_to(process) if before else [],
        }
        for before, process in zip([None, *processes], processes, strict=False)  # the last one is before none
    ]


def _step(step: StepRecord, change: Record) -> Record:
    record = msgspec.to_builtins(step)
    kept = {name: record[name] for name in ("epoch", "samples", "context_tokens", "context_size", "events")}
    return {**kept, "at": record.get("at"), "set": change.get("set", []), "removed": change.get("removed", [])}


def _speed(calls: Iterable[StoredCall]) -> Record:
    meter = SpeedMeter()
    for call in calls:
        meter.add(call.record.completion, call.record.at)
    return meter.speed().record()


def _cost(call: CallRecord) -> Record:
    completion = call.completion
    return {
        "role": call.role,
        "stage": call.stage,
        "session": call.session,
        "usage": msgspec.to_builtins(completion.usage),
        "seconds": completion.seconds,
        "retries": completion.retries,
        "replayed": completion.replayed,
        **({"thoughts": len(completion.thoughts)} if completion.thoughts else {}),
        "fault": msgspec.to_builtins(call.fault),
    }


def _call(index: int, call: CallRecord, texts: Texts) -> Record:
    return {
        "place": index,
        "reply": "" if call.role == _EMBEDDER else call.completion.text,
        **({"thoughts": call.completion.thoughts} if call.completion.thoughts else {}),
        "prompt": None if call.request is None else _prompt(call.role, call.request.messages, texts),
    }


def _prompt(role: str, messages: Sequence[Message], texts: Texts) -> Record:
    index = texts.add(role, [message.content for message in messages])
    return {"at": index, "heads": [[message.role, message.content.count("\n") + 1] for message in messages]}


class Texts:
    """Distinct lines, and chains of texts, each stored as an edit of the previous one, which it mostly repeats.

    An edit is a flat list of integers: ``start, count`` copies lines of the previous text, ``-1 - n`` is line number
    ``n`` of all lines.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last: dict[str, list[int]] = {}
        self._chains: dict[str, list[list[int]]] = {}

    def add(self, chain: str, parts: Iterable[str]) -> int:
        """Append a text, given as one or several parts, to a chain. Return its place in the chain."""
        numbers = self._numbers
        lines = [numbers.setdefault(line, len(numbers)) for part in parts for line in part.split("\n")]
        before = self._last.get(chain, [])
        edits = self._chains.setdefault(chain, [])
        edits.append(_edit(before, lines))
        self._last[chain] = lines
        return len(edits) - 1

    def record(self) -> dict[str, object]:
        """Return all of it as a JSON object."""
        return {"lines": list(self._numbers), "chains": self._chains}


def _edit(before: list[int], after: list[int]) -> list[int]:
    edit: list[int] = []
    where: dict[int, int] | None = None
    position, expected, size, end = 0, 0, len(before), len(after)
    while position < end:
        # A line may occur often: prefer the occurrence that continues the previous match.
        runs_on = expected < size and before[expected] == after[position]
        if where is None and not runs_on:
            where = {line: index for index, line in enumerate(before)}
        start = expected if runs_on or where is None else where.get(after[position])
        if start is None:
            edit.append(-1 - after[position])
            position, expected = position + 1, expected + 1
            continue
        count = 1
        # Most texts repeat thousands of lines: compare them in blocks while possible.
        while (
            len(block := after[position + count : position + count + _BLOCK]) == _BLOCK
            and block == (before[start + count : start + count + _BLOCK])
        ):
            count += _BLOCK
        while position + count < end and start + count < size and before[start + count] == after[position + count]:
            count += 1
        edit += [start, count]
        position, expected = position + count, start + count
    return edit
