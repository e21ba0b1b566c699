"""In-context learning: worked examples of the training split, as many as fit (paper, section 4.2)."""

from __future__ import annotations

import random

from ace_bench.contexts.instruction import Demonstration, Demonstrations
from ace_bench.core.errors import ConfigError
from ace_bench.core.method import Arena, ContextUpdate, Learning, Workload, exactly
from ace_bench.core.settings import Count, Share
from ace_bench.core.types import GeneratorSpec, Labels
from ace_bench.methods.base import BaseMethod


class Icl(BaseMethod[Demonstrations]):
    """Shows training samples with their reference answers, in an order drawn by the run's seed.

    ``shots`` limits their number (few-shot); ``None`` shows all (many-shot). Where the backbone's context length is
    known they take at most the share ``fill`` of it: one that does not fit makes room for the next that does. A
    prompt that is still too long is sent with fewer of them, and the run counts how many were left out.
    """

    generator = GeneratorSpec(template="demonstrated", answer_format="text")

    def __init__(self, *, shots: Count | None, fill: Share) -> None:
        self._shots = shots
        self._fill = fill

    def start(self, arena: Arena) -> Demonstrations:
        """Return the context without examples."""
        return Demonstrations()

    def check(self, arena: Arena) -> None:
        """Raise ``ConfigError`` if reference answers are not to be seen."""
        if arena.labels is not Labels.GOLD:
            raise ConfigError(f"method=icl shows reference answers; labels={arena.labels.value} forbids that: use gold")

    def workload(self, arena: Arena, learning: Learning) -> Workload:
        """Return that examples are chosen without any call."""
        del arena, learning
        return Workload(rollouts=exactly(0), roles={})

    def fit(self, context: Demonstrations, arena: Arena) -> ContextUpdate[Demonstrations]:
        """Choose the examples, without any call."""
        del context
        samples = list(arena.samples("train"))
        random.Random(f"{arena.seed}/demonstrations").shuffle(samples)
        length, count = arena.context_length("generator"), arena.counter("generator")
        room = None if length is None else int(self._fill * length)
        chosen: list[Demonstration] = []
        for sample in samples:
            if self._shots is not None and len(chosen) == self._shots:
                break
            question = sample.inputs["question"]
            demonstration = Demonstration.measure(question=question, answer=arena.gold_answer(sample), count=count)
            if room is None or demonstration.tokens <= room:
                chosen.append(demonstration)
                room = None if room is None else room - demonstration.tokens
        event = {"event": "demonstrated", "shown": len(chosen), "of": len(samples)}
        return ContextUpdate(context=Demonstrations(items=tuple(chosen)), events=(event,))
