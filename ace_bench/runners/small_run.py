"""A run on a few samples with a stand-in backbone, in a throwaway folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import msgspec

from ace_bench.core.backbones import GENERATOR, Backbone, TokenCounter
from ace_bench.core.context import Context
from ace_bench.core.method import Learning, Span, Workload, exactly
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.replies import is_offer
from ace_bench.core.scratch import scratch_folder
from ace_bench.core.task import Conversational
from ace_bench.core.types import Completion, Message, Record, Rollout, Sample, Stage, Usage
from ace_bench.runners.arena import RunArena
from ace_bench.runners.build import RunSpec, build_experiment
from ace_bench.runners.experiment import Experiment
from ace_bench.runners.limits import Budget, Stop, longest_reply
from ace_bench.runners.loop import run_loop
from ace_bench.runners.mode import Mode, ModeWorkload
from ace_bench.runners.settings import BySplit
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal

REHEARSED = 8
"""Samples of each split that are rehearsed."""
REHEARSED_EPISODES = 3
"""The same where attempts are conversations with an environment, which take seconds."""
_FRAME = 5
"""The most tokens that a chat template adds to a message."""
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')
"""A string in JSON, with the colon after it if it is a key."""
_MAX_LENGTH = re.compile(r'"maxLength":(\d+)')


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A run in ``mode`` on a few samples; ``whole`` is the same experiment with all samples."""

    spec: RunSpec
    mode: Mode
    experiment: Experiment
    whole: Experiment
    standins: Sequence[StandIn]

    @classmethod
    def make(
        cls, spec: RunSpec, stop: Stop, stack: ExitStack, *, opposite: bool = False, lengthened: bool = False
    ) -> Rehearsal:
        """Rehearse in a folder that the stack removes.

        ``opposite`` inverts each verdict. ``lengthened`` replies fill their token limit.
        """
        standins = {
            role: StandIn(role, backbone, spec.rehearsal, opposite=opposite, lengthened=lengthened)
            for role, backbone in spec.backbones.items()
        }
        acts = isinstance(spec.agent, Conversational)
        most, mode = (REHEARSED_EPISODES, spec.mode.shortened()) if acts else (REHEARSED, spec.mode)
        limits = {split: min(most, limit or most) for split, limit in spec.limits.items()}
        small = replace(
            spec,
            method=spec.rehearsed_method.rehearsed,
            beginning=spec.beginning if spec.rehearsed_method is spec.method else None,
            backbones=standins,
            limit=BySplit(**limits),
            budget=Budget(),
        )
        folder = RunFolder(stack.enter_context(scratch_folder("plan")))
        stack.callback(folder.close)
        experiment = build_experiment(folder, small, stop)
        if opposite:
            experiment = replace(experiment, arena=_OppositeArena(**vars(experiment.arena)))
        full = replace(experiment, arena=replace(experiment.arena, limits=spec.limits))
        rehearsal = cls(spec=spec, mode=mode, experiment=experiment, whole=full, standins=[*standins.values()])
        needed = rehearsal.needed()
        if needed is not None and needed.rollouts.high == 0:
            # Fitting costs nothing, so the whole context is made, and tested with its real size.
            limits_of_fit = {**limits, "train": spec.limits["train"]}
            experiment = replace(experiment, arena=replace(experiment.arena, limits=limits_of_fit))
        run_loop(experiment, mode)
        return replace(rehearsal, experiment=experiment)

    @property
    def work(self) -> ModeWorkload:
        """What the mode does in the whole run."""
        return self.spec.mode.workload(self.whole)

    @property
    def learnt(self) -> int:
        """Samples learnt in the rehearsal."""
        return self.mode.workload(self.experiment).learnt

    @property
    def journal(self) -> Journal:
        """What happened."""
        return self.experiment.folder.journal

    @property
    def prompts(self) -> Mapping[str, Sequence[Message]]:
        """The first prompt of each role."""
        return {role: prompt for standin in self.standins for role, prompt in standin.first.items()}

    def needed(self) -> Workload | None:
        """Return what adaptation takes in the whole run; whether attempts act is known after the rehearsal."""
        acts = any(record.attempt.ended is not None for record in self.journal.rollouts.values())
        learning = Learning(
            samples=self.work.learnt, steps=self.work.steps, split=self.spec.mode.learnt_split, acts=acts
        )
        return self.spec.method.workload(self.whole.arena, learning)

    def roles(self, stage: Stage) -> Mapping[str, int]:
        """Return the calls of each role in a stage."""
        return {role: paid.calls for role, paid in self.experiment.folder.calls.ledger.roles(stage).items()}

    def mean_prompt(self, stage: Stage, role: str) -> float | None:
        """Return the mean tokens of a role's prompts in a stage, ``None`` without any."""
        account = self.experiment.folder.calls.ledger.roles(stage).get(role)
        return account.usage.prompt / account.calls if account and account.usage.prompt is not None else None

    def growth(self) -> tuple[float, int]:
        """Return by how many tokens the context grew for each sample of a step, and its last size."""
        steps = self.journal.steps
        if not steps:
            return 0.0, 0
        begun, ended = self.experiment.beginning.start.tokens, steps[-1].context_tokens
        return max(0.0, (ended - begun) / sum(len(step.samples) for step in steps)), ended

    def longer(self) -> float:
        """Return by how many tokens samples are longer on average than the shortest one that was rehearsed."""
        differences = [0.0]
        for split in self.spec.mode.reads(self.spec.method):
            rehearsed, whole = (
                [sum(map(estimate_tokens, sample.inputs.values())) for sample in experiment.arena.samples(split)]
                for experiment in (self.experiment, self.whole)
            )
            if whole:
                differences.append(fmean(whole) - min(rehearsed))
        return max(differences)


class _OppositeArena(RunArena):
    """Shows a method the opposite of each verdict."""

    def rollout(self, sample: Sample, context: Context, **asked: Any) -> Rollout:
        rollout = super().rollout(sample, context, **asked)
        feedback = rollout.feedback
        correct, score = (
            (None if feedback.correct is None else not feedback.correct),
            (feedback.score and 1 - feedback.score),
        )
        return replace(rollout, feedback=replace(feedback, correct=correct, score=score))


class StandIn:
    """Replies in place of a real backbone, with the real one's token counts.

    ``opposite`` replies with the opposite of each verdict; ``lengthened`` replies are as long as the real one's may be.
    """

    simulated = True
    takes_tools = True  # as the stand-ins do; whether the real one does is found out at its first call

    def __init__(self, role: str, real: Backbone, substitute: Backbone, *, opposite: bool, lengthened: bool):
        self._substitute = substitute
        self._opposite = opposite
        self._lengthened = lengthened
        self._real = real
        self._role = role
        self.name = real.name
        self.identity: Record = real.identity
        self.context_length = real.context_length
        self.first: dict[str, Sequence[Message]] = {}
        self.tokens: dict[str, list[tuple[Span, Span]]] = {}
        self.asked_again: set[str] = set()
        """Roles that reply in JSON. A reply that is not JSON is requested once more."""
        self.exchange = 0.0
        """Tokens of a reply and what follows it, on average over the longest of the generator's conversations."""

    def count(self, text: str) -> int:
        """Count as the real one does."""
        return self._real.count(text)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return the other's reply."""
        if self._role in (role, GENERATOR):
            self.first.setdefault(role, messages)
        completion = self._substitute.complete(messages, role=role, session=session, schema=schema)
        completion = replace(completion, text=_without_absent_fields(completion.text, schema))
        if self._opposite:
            completion = replace(completion, text=_opposite_verdict(completion.text))
        limit = longest_reply(self._real, role)
        if self._lengthened and limit is not None:
            filler = _filler(f"{session}/{completion.text}", limit - self.count(completion.text), self.count)
            completion = replace(completion, text=_lengthen(completion.text, filler, schema))
        if schema is not None and not is_offer(schema):
            self.asked_again.add(role)
        prompt, reply = sum(self.count(message.content) for message in messages), self.count(completion.text)
        framed = Span(prompt, prompt + _FRAME * len(messages))
        self.tokens.setdefault(role, []).append((framed, exactly(reply)))
        if role == GENERATOR:
            self.exchange = max(self.exchange, self._exchange(messages))
        return replace(completion, usage=Usage(prompt=prompt, completion=reply, cached=0))

    def _exchange(self, messages: Sequence[Message]) -> float:
        replies = [index for index, message in enumerate(messages) if message.role == "assistant"]
        return sum(self.count(message.content) for message in messages[replies[0] :]) / len(replies) if replies else 0.0


def _without_absent_fields(text: str, schema: Record | None) -> str:
    """Return a reply without the fields that the schema has no place for: a server that obeys it writes none."""
    if schema is None or "properties" not in schema:
        return text
    try:
        fields = msgspec.json.decode(text, type=dict[str, Any])
    except (ValueError, RecursionError):
        return text
    kept = {name: value for name, value in fields.items() if name in schema["properties"]}
    return text if len(kept) == len(fields) else json.dumps(kept, ensure_ascii=False)


def _opposite_verdict(text: str) -> str:
    """Return a reply with each truth value inverted. A reply that is not a JSON object stays unchanged."""
    try:
        reply = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    if not isinstance(reply, dict) or not any(isinstance(value, bool) for value in reply.values()):
        return text
    return msgspec.json.encode({k: not v if isinstance(v, bool) else v for k, v in reply.items()}).decode()


def _filler(name: str, tokens: int, count: TokenCounter) -> str:
    """Return words that no other name has, as a playbook merges bullets that are alike."""
    letters = hashlib.shake_256(name.encode()).hexdigest(max(0, tokens) * 2)
    filler = " ".join(letters[start : start + 7] for start in range(0, len(letters), 7))
    return filler[: len(filler) * tokens // max(1, count(filler))] if filler else ""


def _lengthen(text: str, filler: str, schema: Record | None) -> str:
    """Return a reply whose longest text is extended with the filler, within the limits of its schema."""
    if not text.startswith("{"):
        head, end, tail = text.rpartition("</")
        return head + filler + end + tail if end else f"{text} {filler}"
    values = (match for match in _JSON_TEXT.finditer(text) if match[1] is None)
    longest = max(values, key=lambda found: len(found[0]), default=None)
    if longest is None:
        return text
    allowed = map(int, _MAX_LENGTH.findall(msgspec.json.encode(schema).decode()))
    room = max(allowed, default=len(text) + len(filler)) - len(longest[0])
    return f"{text[: longest.end() - 1]} {filler[: max(0, room)]}{text[longest.end() - 1 :]}"
