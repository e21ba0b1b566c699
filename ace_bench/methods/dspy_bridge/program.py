"""A task as a DSPy program: one predictor, whose calls are rollouts by the task's own agent.

An optimiser changes the predictor's instruction and demonstrations; what it runs is an ``Instruction`` context. So a
multi-turn agent is a program like any other, and its steps are the reasoning that the optimiser sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ace_bench.contexts.demonstrations import Demonstration
from ace_bench.contexts.instruction import Instruction
from ace_bench.core.arena import Arena
from ace_bench.core.transcript import Transcript
from ace_bench.core.types import Labels, Rollout, Sample
from ace_bench.methods.dspy_bridge.exceptions import passing_through

PROPOSER = "proposer"
NO_ANSWER = "(no answer)"
_STEPS_SHARE = 5
"""A transcript takes at most a fifth of the proposer's context: GEPA shows three of them."""


class Attempts:
    """The rollouts an optimiser asks for; ``keys`` names those it got, each once however often it was asked for."""

    def __init__(self, arena: Arena):
        self._arena = arena
        self._count = arena.counter("generator")
        self._measured = lru_cache(maxsize=4)(self._measure)  # a backbone may have to ask a server to count
        self.keys: set[str] = set()

    def __deepcopy__(self, memo: object) -> Attempts:
        """Be shared: optimisers copy programs."""
        return self

    def context(self, predictor: dspy.Predict) -> Instruction:
        """Return the context that stands for a predictor as an optimiser left it."""
        shown = tuple((demo["question"], demo["answer"], demo.get("reasoning", "")) for demo in predictor.demos)
        return self._measured(predictor.signature.instructions, shown)

    def _measure(self, text: str, shown: tuple[tuple[str, str, str], ...]) -> Instruction:
        examples = tuple(
            Demonstration.measured(question=question, answer=answer, reasoning=reasoning, count=self._count)
            for question, answer, reasoning in shown
        )
        return Instruction.measured(text, count=self._count, demonstrations=examples)

    def one(self, sample: Sample, predictor: dspy.Predict) -> Rollout:
        """Attempt a sample."""
        rollout = self._arena.rollout(sample, self.context(predictor))
        self.keys.add(rollout.key)
        return rollout

    def ahead(self, samples: Sequence[Sample], predictor: dspy.Predict) -> None:
        """Attempt samples in parallel, for ``one`` to find them recorded."""
        self._arena.rollouts(list({sample.id: sample for sample in samples}.values()), self.context(predictor))

    def fields(self, rollout: Rollout) -> Mapping[str, str]:
        """Return what a rollout did, as the outputs of the predictor."""
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
    """A predictor that attempts samples. Named like its base: MIPROv2 shows its model the code of other classes."""

    def __init__(self, signature: type[dspy.Signature], attempts: Attempts):
        super().__init__(signature)
        self.attempts = attempts

    def forward(self, sample: Sample, **inputs: str) -> dspy.Prediction:
        """Attempt a sample; DSPy's trace gets what a model was shown and what came of it."""
        with passing_through():
            rollout = self.attempts.one(sample, self)
            prediction = dspy.Prediction(**self.attempts.fields(rollout))
        prediction._rollout = rollout  # for the metric; no field, so that no prompt shows it
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
    """A sample as an example; the program is given the sample itself besides its fields."""

    def inputs(self) -> Mapping[str, Any]:
        """Return what the program is called with."""
        return {"background": self.background, "question": self.question, "sample": self._sample}


class PrefetchCallback(BaseCallback):  # type: ignore[misc]
    """Attempts what an evaluation will ask for, within the run's concurrency.

    DSPy's own threads would send an attempt of more than two minutes a second time.
    """

    def __init__(self, attempts: Attempts):
        self._attempts = attempts

    def on_evaluate_start(self, call_id: str, instance: dspy.Evaluate, inputs: Mapping[str, Any]) -> None:
        """Attempt all samples of an evaluation that is about to start."""
        (predictor,) = inputs["program"].predictors()
        with passing_through():
            samples = [example._sample for example in inputs["devset"] or instance.devset]
            self._attempts.ahead(samples, predictor)


def program(start: Instruction, attempts: Attempts) -> dspy.Module:
    """Return the program with the instruction to start from."""
    signature = dspy.Signature("background: str, question: str -> reasoning: str, answer: str", start.text)
    return AnswerQuestion(Predict(signature, attempts))


def examples(arena: Arena, split: str) -> list[dspy.Example]:
    """Return the samples of a split; those of the training split have their answers where ``labels`` shows them."""
    made = []
    for sample in arena.samples(split):
        fields = {name: sample.inputs.get(name, "") for name in ("background", "question")}
        if arena.labels is Labels.GOLD and split == "train":
            fields["answer"] = arena.reference(sample)
        example = DspyExample(**fields)
        example._sample = sample
        made.append(example)
    return made


def score(prediction: dspy.Prediction) -> float:
    """Return the score of a rollout in [0, 1]; a fault scores 0."""
    rollout: Rollout = prediction._rollout
    return 0.0 if rollout.fault is not None else rollout.feedback.score or 0.0


def feedback_text(prediction: dspy.Prediction) -> str:
    """Return what the environment says of a rollout, with the reference answer where ``labels`` shows it."""
    rollout: Rollout = prediction._rollout
    failure = "" if rollout.fault is None else f"The attempt failed: {rollout.fault.kind}: {rollout.fault.message}"
    gold = "" if rollout.feedback.gold is None else f"Reference answer: {rollout.feedback.gold}"
    return "\n".join(filter(None, (failure, rollout.feedback.message, gold)))
