"""In-context learning: which examples are shown, and when none may be."""

from dataclasses import replace

import pytest

from ace_bench.contexts.instruction import Demonstration
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.methods.icl import Icl
from tests.launching import launch
from tests.methods.playing import context_of, play_optimiser
from tests.runners.scripted import Scripted, Toy, events, gold

TOKENS = Demonstration.measure(question="ask toy-train-0?", answer=gold("toy-train-0"), count=estimate_tokens).tokens


class Short(Scripted):
    """A backbone with room for ``context_length`` tokens."""

    def __init__(self, context_length):
        super().__init__(generator=lambda call: gold(call.sample))
        self.context_length = context_length
        self.identity = {"name": "short", "context_length": context_length}


def shown(ran):
    return [(one["question"], one["answer"]) for one in context_of(ran)["items"]]


def everything(size):
    return {(f"ask toy-train-{n}?", gold(f"toy-train-{n}")) for n in range(size)}


def test_all_training_samples_are_shown_with_their_answers_and_no_call_is_made(tmp_path):
    script = Short(None)
    ran = play_optimiser(tmp_path, "icl", script=script, train=9)
    assert set(shown(ran)) == everything(9)
    assert ran.metrics["rollouts"] == {"adapt": 0, "evaluate": 4}
    assert {call.sample.split("-")[1] for call in script.of("generator")} == {"test"}
    for question, answer in shown(ran):
        assert all(f"Question: {question}\nAnswer: {answer}" in call.prompt for call in script.of("generator"))


def test_the_order_is_drawn_by_the_seed(tmp_path):
    orders = [shown(play_optimiser(tmp_path, "icl", f"seed={seed}", script=Short(None), train=9)) for seed in (0, 1)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    few = play_optimiser(tmp_path / "few", "icl", "method.shots=3", script=Short(None), train=9)
    assert shown(few) == orders[0][:3]


@pytest.mark.parametrize(("length", "fill", "size"), [(10 * TOKENS, 0.5, 5), (10 * TOKENS, 1, 9), (TOKENS - 1, 1, 0)])
def test_as_many_as_fit_are_shown(length, fill, size, tmp_path):
    ran = play_optimiser(tmp_path, "icl", f"method.fill={fill}", script=Short(length), train=9)
    assert len(shown(ran)) == size
    assert ran.metrics["context"]["tokens"] == size * TOKENS
    assert {"event": "demonstrated", "shown": size, "of": 9} in events(ran)


def test_examples_teach(tmp_path):
    ran = launch(tmp_path, "task=finer", "task.source=sample", "method=icl", "limit=40")
    assert ran.metrics["headline"]["after"] > ran.metrics["headline"]["before"] + 10


class Curious(Icl):
    """Asks for the reference answers of every split, and keeps the reply to each."""

    def __init__(self):
        super().__init__(shots=1, fill=1)
        self.seen = {}

    def check(self, arena):
        for split in ("train", "val", "test"):
            try:
                self.seen[split] = arena.gold_answer(arena.samples(split)[0])
            except ConfigError as error:
                self.seen[split] = str(error)
        raise ConfigError("enough")


@pytest.mark.parametrize("labels", ["gold", "correctness", "none"])
def test_reference_answers_are_shown_with_gold_labels_and_never_those_of_the_test_split(labels, tmp_path):
    method = Curious()
    settings = ("task=formula", "task.source=sample", "method=icl", f"labels={labels}")
    launch(tmp_path, *settings, task=lambda _: Toy(), spec=lambda spec: replace(spec, method=method))
    shown = [split for split, said in method.seen.items() if said == gold(f"toy-{split}-0")]
    assert shown == (["train", "val"] if labels == "gold" else [])
    assert "is hidden with labels=" in method.seen["test"]
