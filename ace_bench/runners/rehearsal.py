"""A rehearsal before the run: a few samples with a stand-in backbone, to estimate the cost and show prompts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from ace_bench.agents.single_turn import SingleTurn
from ace_bench.core.backbones import GENERATOR, JUDGE, Backbone, Limited, ListPriced, Priced
from ace_bench.core.method import Span, exactly
from ace_bench.core.task import Conversational, Stepwise
from ace_bench.core.types import Message, Stage, Usage
from ace_bench.runners.build import RunSpec
from ace_bench.runners.limits import Stop, longest_reply
from ace_bench.runners.small_run import Rehearsal, StandIn
from ace_bench.store.call_log import Account

_MARGIN = 1.25
"""How much longer replies may be on average than the longest of their role, how much faster a context may grow, and how
far a real model's tokenizer may be from the count of a prompt."""
_TEMPLATE = 64
"""Tokens that a server's chat template may add to a prompt: some have a system prompt of their own."""
_REASON, _ECHOED = 50, 500
"""Tokens that a repeated prompt has in addition: why the reply is unreadable, and at most so much of it."""
_REASONED, _PLAIN = 150, 20
"""Tokens that real models' replies have on average, at least: those that a schema asks to reason or other roles write,
and bare answers. Chosen after 2,755 recorded replies of Qwen2.5-Coder-1.5B. The embedded reader writes less."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The cost of a run, and the first prompt of each role. A typical run lies between ``low`` and ``high``.

    ``low`` is without retries: each sample is right at once, optimisers repeat what is recorded, and a context that did
    not change is not evaluated again. A call takes at least the fewest tokens that one of its role took in the
    rehearsal, where ``answered_by`` stood in for the backbones.

    ``typical`` is in the middle between no retries and all of them, and between the shortest call of the rehearsal and
    the longest with a context that keeps growing. Replies are as long as those of real models. Of these tokens
    ``chain`` are written one after another.

    ``high`` is the most that any replies take: each is as long as its limit and makes contexts and prompts grow; each
    JSON reply is unreadable and asked for once more; attempts run half of the code that they may. If no backbone
    limits its replies, so that ``limited`` is false, it is the most that replies like the stand-in's take, with room
    for longer samples and replies. ``price_lists`` are the lists that prices come from.
    """

    low: Account
    typical: Account
    high: Account
    chain: float
    limited: bool
    answered_by: str
    prompts: Mapping[str, Sequence[Message]] = field(default_factory=dict)
    price_lists: tuple[str, ...] = ()


def rehearse(spec: RunSpec, stop: Stop | None = None) -> Estimate:
    """Run the spec on a few samples in throwaway folders, at no cost, and scale up to all of them.

    A method that learns in steps is rehearsed twice, the second time with the opposite of each verdict: so roles that
    follow only a success, or only a failure, are measured, too. Where replies have a limit, all is rehearsed again with
    replies of that length, but for attempts at an environment, whose conversations would take too long.
    """
    with ExitStack() as stack:
        make = partial(Rehearsal.make, spec, stop or Stop(), stack)
        takes = [make()]
        verdicts = [False, True] if spec.method.adaptation == "steps" and takes[0].work.learnt else [False]
        takes += [make(opposite=True) for _ in verdicts[1:]]
        plain = _Projection(spec, takes)
        low, high = plain.bounds()
        typical, chain = plain.typical()
        limited = any(isinstance(backbone, Limited) for backbone in spec.backbones.values())
        if limited:
            acts = isinstance(spec.agent, Conversational)
            longer = [] if acts else [make(opposite=opposite, lengthened=True) for opposite in verdicts]
            _, high = _Projection(spec, takes, longer).bounds()
    price_lists = (backbone.price_list for backbone in spec.backbones.values() if isinstance(backbone, ListPriced))
    return Estimate(
        low=low,
        typical=typical,
        high=high,
        chain=chain,
        limited=limited,
        answered_by=spec.rehearsal.name,
        prompts=takes[0].prompts,
        price_lists=tuple(dict.fromkeys(filter(None, price_lists))),
    )


class _Tokens(msgspec.Struct, frozen=True):
    """Bounds of the tokens of a role's calls."""

    prompt: Span
    completion: Span


def _by_role(standins: Iterable[StandIn]) -> Mapping[str, _Tokens]:
    counts: dict[str, list[tuple[Span, Span]]] = {}
    for standin in standins:
        for role, calls in standin.tokens.items():
            counts.setdefault(role, []).extend(calls)
    spans = {role: [_span(ends) for ends in zip(*calls, strict=True)] for role, calls in counts.items()}
    return {role: _Tokens(*bounds) for role, bounds in spans.items()}


def _span(spans: Sequence[Span]) -> Span:
    return Span(min(span.low for span in spans), max(span.high for span in spans))


class _Projection:
    """Scales what was rehearsed up to the whole run.

    ``lengthened`` holds rehearsals whose replies fill their token limit. With them, the upper end is of such replies,
    which may be unreadable. It may be empty.
    """

    def __init__(
        self, spec: RunSpec, rehearsals: Sequence[Rehearsal], lengthened: Sequence[Rehearsal] | None = None
    ) -> None:
        self._spec = spec
        self._rehearsals = rehearsals
        self._unlike = lengthened is not None
        self._measured = [*rehearsals, *(lengthened or ())]
        self._work = rehearsals[0].work
        self._needed = rehearsals[0].needed()
        standins = [standin for rehearsal in rehearsals for standin in rehearsal.standins]
        self._tokens = _by_role(standins)
        self._asked_again = {role for standin in standins for role in standin.asked_again}
        self._longer = max(rehearsal.longer() for rehearsal in rehearsals)
        agent = spec.agent
        self._steps = agent.max_steps if isinstance(agent, Stepwise) else None
        self._code_runs = -(-agent.code_runs // 2) if self._unlike and isinstance(agent, SingleTurn) else 0
        further_calls = (self._steps or 1) - 1 + self._code_runs
        exchange = max((standin.exchange for standin in standins), default=0.0) if self._steps else 0.0
        reply = self._longest_reply(GENERATOR) or 0
        self._conversation = (exchange + self._unlike * reply) * further_calls

    def bounds(self) -> tuple[Account, Account]:
        """Return the two ends."""
        low, high = Account(), Account()
        for stage in Stage:
            for role, calls in self._calls(stage).items():
                low += self._account(role, math.floor(calls.low), self._cheapest_call(role))
                high += self._account(role, math.ceil(calls.high), self._dearest_call(stage, role))
        return low, high

    def typical(self) -> tuple[Account, float]:
        """Return what lies in the middle of the ends, and how many of its tokens are written one after another."""
        total, chain = Account(), 0.0
        for stage in Stage:
            at_once = self._calls_at_once(stage)
            for role, calls in self._calls(stage).items():
                account = self._account(role, round(self._middle_of(stage, calls)), self._typical_call(stage, role))
                total += account
                chain += (account.usage.completion or 0) / at_once
        return total, chain

    def _middle_of(self, stage: Stage, calls: Span) -> float:
        """Return the middle of a span. Retries of single samples are a factor, and all else is a sum.

        The geometric mean of a factor is off by the square root of its ratio at most.
        """
        is_factor = stage is Stage.ADAPT and self._spec.method.adaptation == "steps"
        return math.sqrt(calls.low * calls.high) if is_factor and calls.low else (calls.low + calls.high) / 2

    def _typical_call(self, stage: Stage, role: str) -> tuple[float, float] | None:
        """Return the prompt and completion tokens of a call in the middle of the ends."""
        tokens, dearest = self._of_role(role), self._dearest_call(stage, role)
        if tokens is None or dearest is None:
            return None
        prompt, completion = (
            math.sqrt(max(1.0, least) * most)
            for least, most in zip((tokens.prompt.low, tokens.completion.low), dearest, strict=True)
        )
        limit, completion = self._longest_reply(role), max(completion, self._real_reply(role))
        return prompt, completion if limit is None else min(limit, completion)

    def _real_reply(self, role: str) -> int:
        """Return how many tokens a real model's replies have on average, at least."""
        if self._backbone(role).simulated:
            return 0
        return _REASONED if role != GENERATOR or role in self._asked_again else _PLAIN

    def _calls_at_once(self, stage: Stage) -> float:
        """Return how many calls of a stage can be under way at a time."""
        samples = self._work.evaluated.high if stage is Stage.EVALUATE else self._work.learnt / (self._work.steps or 1)
        return max(1.0, min(self._spec.concurrency, samples))

    def _longest_reply(self, role: str) -> int | None:
        return longest_reply(self._backbone(role), role)

    def _backbone(self, role: str) -> Backbone:
        return self._spec.backbones.get(role) or self._spec.backbones[GENERATOR]

    def _calls(self, stage: Stage) -> Mapping[str, Span]:
        """Return the calls of each role in a stage."""
        if stage is Stage.EVALUATE:
            rollouts, calls_of_others = self._work.evaluated, dict[str, Span]()
        elif self._needed is None:
            return self._in_proportion()
        else:
            rollouts = self._needed.rollouts + Span(0, self._work.repeated)
            calls_of_others = dict(self._needed.roles) if self._work.learnt else {}
            rollouts = rollouts if self._work.learnt else exactly(0)
        if any(JUDGE in rehearsal.roles(stage) for rehearsal in self._rehearsals):
            calls_of_others[JUDGE] = Span(0, rollouts.high)  # equal answers to a sample are judged once
        calls = {GENERATOR: rollouts.times(self._calls_of_rollout(stage)), **calls_of_others}
        return {role: span.times(Span(1, 1 + self._is_asked_again(role))) for role, span in calls.items()}

    def _is_asked_again(self, role: str) -> bool:
        """Whether an unreadable reply is asked for once more, and not within the steps of an agent."""
        if not self._unlike or (role == GENERATOR and self._steps):
            return False
        return role in self._asked_again or (self._needed is not None and role in self._needed.asked_again)

    def _in_proportion(self) -> Mapping[str, Span]:
        """Return the calls of adaptation, in proportion to the samples."""
        first = self._rehearsals[0]
        factor = exactly(self._work.learnt / first.learnt if first.learnt else 0)
        most = {role: Span(1, 1 + self._is_asked_again(role)) for role in first.roles(Stage.ADAPT)}
        return {role: factor.times(most[role]).times(exactly(n)) for role, n in first.roles(Stage.ADAPT).items()}

    def _calls_of_rollout(self, stage: Stage) -> Span:
        """Return the fewest and the most calls of a rollout: of the rehearsed ones where the agent sets no limit."""
        if self._steps is not None:
            return Span(1, self._steps)
        records = [record for rehearsal in self._rehearsals for record in rehearsal.journal.rollouts.values()]
        counts = [record.calls for record in records if record.stage is stage] or [record.calls for record in records]
        return Span(min(counts), max(*counts, 1 + self._code_runs)) if counts else Span(1, 1 + self._code_runs)

    def _of_role(self, role: str) -> _Tokens | None:
        """Return the tokens of a role. If none of its calls was rehearsed, return those of all roles."""
        counts = self._tokens.values()
        if role in self._tokens or not counts:
            return self._tokens.get(role)
        return _Tokens(_span([count.prompt for count in counts]), _span([count.completion for count in counts]))

    def _cheapest_call(self, role: str) -> tuple[float, float] | None:
        """Return the fewest prompt and completion tokens of a call."""
        tokens = self._of_role(role)
        if tokens is None:
            return None
        prompt, limit = tokens.prompt.low, self._longest_reply(role)
        prompt = prompt if self._backbone(role).simulated else prompt / _MARGIN
        return prompt, tokens.completion.low if limit is None else min(limit, tokens.completion.low)

    def _dearest_call(self, stage: Stage, role: str) -> tuple[float, float] | None:
        """Return the most prompt and completion tokens of a call, on average."""
        tokens = self._of_role(role)
        if tokens is None:
            return None
        grown, limit = self._grown(stage), self._longest_reply(role)
        written = grown if self._needed and role in self._needed.writers else 0
        conversation = self._conversation / 2 if role == GENERATOR else self._conversation
        growth = self._longer + grown + conversation
        completion = _MARGIN * max(tokens.completion.high, self._real_reply(role)) + written
        longest = tokens.prompt.high + growth
        if limit is None or not self._unlike:
            return longest, completion if limit is None else min(limit, completion)
        means = [rehearsal.mean_prompt(stage, role) for rehearsal in self._measured]
        prompt = max((mean for mean in means if mean is not None), default=tokens.prompt.high)
        again = self._is_asked_again(role) * (_REASON + min(limit, _ECHOED)) / 2  # of every second call
        prompt = max(longest, _MARGIN * (prompt + growth + again) + _TEMPLATE)
        return min(prompt, self._backbone(role).context_length or prompt), limit

    def _account(self, role: str, calls: int, tokens: tuple[float, float] | None) -> Account:
        """Return the cost of calls, given the prompt and completion tokens of each. It is ``None`` if unknown."""
        if not calls:
            return Account()
        if tokens is None:
            return Account(calls=calls, usage=Usage(cached=0))
        usage = Usage(prompt=round(calls * tokens[0]), completion=round(calls * tokens[1]), cached=0)
        backbone = self._backbone(role)
        dollars = backbone.dollars(usage) if isinstance(backbone, Priced) else None
        return Account(calls=calls, usage=replace(usage, usd=dollars))

    def _grown(self, stage: Stage) -> float:
        """Return by how many tokens a context outgrows the rehearsed one: at the end, or on average while adapting."""
        if self._spec.method.adaptation != "steps":
            return 0.0
        needed, rehearsed = self._needed, self._rehearsals[0].learnt
        shown_samples = needed.shown_samples if needed and needed.shown_samples is not None else self._work.learnt
        a_sample, ended = max(rehearsal.growth() for rehearsal in self._measured)
        growth = _MARGIN * a_sample * max(0, min(shown_samples, self._work.learnt) - rehearsed)
        limits = [backbone.context_length for backbone in self._spec.backbones.values()]
        if needed:
            limits += [needed.context_tokens, *(self._longest_reply(role) for role in needed.writers if self._unlike)]
        room = [max(0, limit - ended) for limit in limits if limit is not None]
        return min([growth, *room]) / (2 if stage is Stage.ADAPT else 1)
