"""A task as a DSPy program: one predictor whose calls are rollouts by the task's own agent.

An optimiser changes the predictor's instruction and demonstrations, which become an ``Instruction`` context. With a
multi-turn agent, its steps are the reasoning that the optimiser sees. DSPy catches every ``Exception`` and goes on with
a score of 0, so exceptions of rollouts and calls are carried through it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ace_bench.contexts.instruction import Demonstration, Instruction
from ace_bench.core.method import Arena
from ace_bench.core.prompts import Transcript
from ace_bench.core.types import Labels, Rollout, Sample

PROPOSER = "proposer"
NO_ANSWER = "(no answer)"
_STEPS_SHARE = 5
"""A transcript takes at most a fifth of the proposer's context: GEPA shows three of them."""


class _Uncaught(BaseException):
    """Wraps an exception for code that catches ``Exception``."""

    def __init__(self, cause: Exception):
        super().__init__(cause)
        self.cause = cause


@contextmanager
def through_dspy() -> Iterator[None]:
    """Wrap exceptions, such as an exhausted budget or an interruption, so that DSPy does not catch them."""
    try:
        yield
    except Exception as error:
        raise _Uncaught(error) from error


@contextmanager
def out_of_dspy() -> Iterator[None]:
    """Unwrap and raise the exceptions that ``through_dspy`` wrapped."""
    try:
        yield
    except _Uncaught as carrier:
        raise carrier.cause from None


class ProgramRollouts:
    """The rollouts that an optimiser asks for; ``keys`` holds the key of each distinct one.

    Evaluations of several candidates side by side share the run's concurrency: while one makes its rollouts, the
    others' rollouts gather and are made together.
    """

    def __init__(self, arena: Arena):
        self._arena = arena
        self._count = arena.counter("generator")
        self._measured = lru_cache(maxsize=32)(self._measure)  # counting may need a request to a server
        self._making = Lock()
        self._wanted: deque[tuple[Sample, Instruction]] = deque()
        self.keys: set[str] = set()

    def __deepcopy__(self, memo: object) -> ProgramRollouts:
        """Return itself: the copies that optimisers make of a program share it."""
        return self

    def context(self, predictor: dspy.Predict) -> Instruction:
        """Return the predictor's instruction and demonstrations as a context."""
        demonstrations = tuple(
            (demo["question"], demo["answer"], demo.get("reasoning", "")) for demo in predictor.demos
        )
        return self._measured(predictor.signature.instructions, demonstrations)

    def _measure(self, text: str, demonstrations: tuple[tuple[str, str, str], ...]) -> Instruction:
        examples = tuple(
            Demonstration.measure(question=question, answer=answer, reasoning=reasoning, count=self._count)
            for question, answer, reasoning in demonstrations
        )
        return Instruction.measure(text, count=self._count, demonstrations=examples)

    def make(self, sample: Sample, predictor: dspy.Predict) -> Rollout:
        """Make a rollout, or return the recorded one."""
        rollout = self._arena.rollout(sample, self.context(predictor))
        self.keys.add(rollout.key)
        return rollout

    def prefetch(self, samples: Sequence[Sample], predictor: dspy.Predict) -> None:
        """Make rollouts in parallel, so that ``make`` finds them recorded."""
        context = self.context(predictor)
        self._wanted.extend((sample, context) for sample in samples)
        with self._making:
            wanted = [self._wanted.popleft() for _ in range(len(self._wanted))]
            distinct = {(sample.id, context.digest): (sample, context) for sample, context in wanted}
            self._arena.map(lambda one: self._arena.rollout(*one), distinct.values())

    def fields(self, rollout: Rollout) -> Mapping[str, str]:
        """Return a rollout as the outputs of the predictor."""
        attempt = rollout.attempt
        reasoning = self._steps(rollout) if attempt.trajectory else attempt.reasoning
        return {"reasoning": reasoning, "answer": NO_ANSWER if attempt.answer is None else attempt.answer}

    def _steps(self, rollout: Rollout) -> str:
        transcript = Transcript(rollout.attempt.trajectory)
        length, count = self._arena.context_length(PROPOSER), self._arena.counter(PROPOSER)
        while length is not None and count(transcript.text) > length // _STEPS_SHARE:
            smaller = transcript.shrink()
            if smaller is None:
                break
            transcript = smaller
        return transcript.text


class Predict(dspy.Predict):  # type: ignore[misc]
    """A predictor whose calls are rollouts. Named like its base: MIPROv2 shows its model the code of other classes."""

    def __init__(self, signature: type[dspy.Signature], rollouts: ProgramRollouts):
        super().__init__(signature)
        self.rollouts = rollouts

    def forward(self, sample: Sample, **inputs: str) -> dspy.Prediction:
        """Make a rollout and add its inputs and outputs to DSPy's trace."""
        with through_dspy():
            rollout = self.rollouts.make(sample, self)
            prediction = dspy.Prediction(**self.rollouts.fields(rollout))
        prediction._rollout = rollout  # for the metric; not a field, so that no prompt shows it
        if dspy.settings.trace is not None:
            dspy.settings.trace.append((self, inputs, prediction))
        return prediction


class AnswerQuestion(dspy.Module):  # type: ignore[misc]
    """Answers one question of a task, given the text that all questions of the task share."""

    def __init__(self, answer: dspy.Predict):
        self.answer = answer

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answer it."""
        return self.answer(**inputs)


class DspyExample(dspy.Example):  # type: ignore[misc]
    """A sample as an example; the program also gets the sample itself."""

    def inputs(self) -> Mapping[str, Any]:
        """Return the arguments of the program."""
        return {"background": self.background, "question": self.question, "sample": self._sample}


class PrefetchCallback(BaseCallback):  # type: ignore[misc]
    """Makes the rollouts of an evaluation in parallel before DSPy asks for them, within the run's concurrency.

    DSPy's own threads would repeat a rollout that takes more than two minutes.
    """

    def __init__(self, rollouts: ProgramRollouts):
        self._rollouts = rollouts

    def on_evaluate_start(self, call_id: str, instance: dspy.Evaluate, inputs: Mapping[str, Any]) -> None:
        """Make the rollouts of all samples of the evaluation."""
        (predictor,) = inputs["program"].predictors()
        with through_dspy():
            samples = [example._sample for example in inputs["devset"] or instance.devset]
            self._rollouts.prefetch(samples, predictor)


def program(start: Instruction, rollouts: ProgramRollouts) -> dspy.Module:
    """Return the program with its first instruction."""
    signature = dspy.Signature("background: str, question: str -> reasoning: str, answer: str", start.text)
    return AnswerQuestion(Predict(signature, rollouts))


def examples(arena: Arena, split: str) -> list[dspy.Example]:
    """Return the samples of a split; training samples carry their gold answers if ``labels`` shows them."""
    examples_made = []
    for sample in arena.samples(split):
        fields = {name: sample.inputs.get(name, "") for name in ("background", "question")}
        if arena.labels is Labels.GOLD and split == "train":
            fields["answer"] = arena.gold_answer(sample)
        example = DspyExample(**fields)
        example._sample = sample
        examples_made.append(example)
    return examples_made


def score(prediction: dspy.Prediction) -> float:
    """Return the score of a rollout in [0, 1]; a fault scores 0."""
    rollout: Rollout = prediction._rollout
    return 0.0 if rollout.fault is not None else rollout.feedback.score or 0.0


def feedback_text(prediction: dspy.Prediction) -> str:
    """Return the feedback on a rollout as text, with the reference answer if ``labels`` shows it."""
    rollout: Rollout = prediction._rollout
    failure = "" if rollout.fault is None else f"The attempt failed: {rollout.fault.kind}: {rollout.fault.message}"
    gold = "" if rollout.feedback.gold is None else f"Reference answer: {rollout.feedback.gold}"
    return "\n".join(filter(None, (failure, rollout.feedback.message, gold)))
