"""Design rule 1: gold answers and verdicts are where ``labels`` lets them be, and nowhere else."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.launching import Recording, launch, needs_verdicts, optimises, pairs, quick, retries

SMALL = ("limit={train: 5, val: 3, test: 5}", "task.source=sample", "concurrency=2")
VERDICTS = ("The answer is correct", "The answer is not correct")


class Planted:
    """A task whose golds are unmistakable: one marker a sample, so that any leak can be found in a prompt."""

    def __init__(self, task):
        self._task = task

    def __getattr__(self, name):
        return getattr(self._task, name)

    @contextmanager
    def open(self, sample):
        if self._task.prompt_group == "agent":  # what matters here is who is shown what, not what a real world does
            yield ActedSession(self._task.forfeit(sample), marker(sample.id))
            return
        with self._task.open(sample) as session:
            yield PlantedSession(session, marker(sample.id))

    def start(self, say):
        pass

    def close(self):
        pass

    def forfeit(self, sample):
        return replace(self._task.forfeit(sample), gold=marker(sample.id))


class PlantedSession:
    def __init__(self, session, gold):
        self._session = session
        self._gold = gold

    def __getattr__(self, name):
        return getattr(self._session, name)

    def grade(self, answer):
        return replace(self._session.grade(answer), gold=self._gold)


class ActedSession:
    """A world in which every action is followed by the same words, and the second ends the attempt."""

    def __init__(self, grade, gold):
        self._grade, self._gold = grade, gold
        self._steps = 0

    @property
    def finished(self):
        return self._steps >= 2

    def step(self, action):
        self._steps += 1
        return "done"

    def grade(self, answer):
        return replace(self._grade, gold=self._gold)


def marker(sample_id):
    return f"planted<{sample_id}>"


def prompts_of(tmp_path, method, *overrides):
    recorders = []

    def record(backbone):
        recorders.append(Recording(backbone))
        return recorders[-1]

    settings = (f"method={method}", *overrides, *SMALL, *quick(method))
    ran = launch(tmp_path, *settings, backbone=record, task=Planted)
    asked = [call for recorder in recorders for call in recorder.asked]
    if ran.status == 2 and any(refuses(method) for refuses in (optimises, needs_verdicts, retries)):
        assert asked == []
        pytest.skip(f"{method} refuses this mode or these labels")
    assert ran.status == 0
    return ran, asked


def sample_of(session):
    return next(part for part in session.split("/") if "-train-" in part or "-val-" in part or "-test-" in part)


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize(("task", "method"), pairs())
def test_without_labels_no_gold_and_no_verdict_reaches_a_model(task, method, mode, tmp_path):
    _, asked = prompts_of(tmp_path, method, f"task={task}", f"mode={mode}", "labels=none")
    text = "\n".join(prompt for _, _, prompt in asked)
    assert "planted<" not in text
    assert not any(verdict in text for verdict in VERDICTS)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize(("task", "method"), pairs())
def test_correctness_shows_verdicts_but_no_gold(task, method, mode, tmp_path):
    ran, asked = prompts_of(tmp_path, method, f"task={task}", f"mode={mode}", "labels=correctness")
    text = "\n".join(prompt for _, _, prompt in asked)
    assert "planted<" not in text
    if "reflector" in ran.metrics["calls"]["adapt"]:
        assert any(verdict in text for verdict in VERDICTS)


@pytest.mark.parametrize("method", ["self_stream_icl", "mem_prompt", "grow_prompt"])
def test_a_memory_of_answers_holds_no_gold_whatever_labels_reveal(method, tmp_path):
    ran, asked = prompts_of(tmp_path, method, "task=ddxplus", "mode=online", "labels=gold")
    assert not any("planted<" in prompt for _, _, prompt in asked)
    assert "planted<" not in (ran.folder / "contexts" / "final.json").read_text()


@pytest.mark.parametrize(("task", "method"), pairs())
def test_offline_gold_is_that_of_training_samples_and_not_before_their_attempt(task, method, tmp_path):
    _, asked = prompts_of(tmp_path, method, f"task={task}", "mode.epochs=1", "labels=gold")
    first_tries = set()
    for role, session, prompt in asked:
        assert "-test-" not in "".join(prompt.split("planted<")[1:])
        if role == "generator" and session.endswith("/0"):
            sample = sample_of(session)
            if (session.split("/")[0], sample) not in first_tries:
                assert marker(sample) not in prompt
            first_tries.add((session.split("/")[0], sample))


@pytest.mark.parametrize(("task", "method"), pairs())
def test_online_gold_of_a_sample_comes_after_its_prediction(task, method, tmp_path):
    _, asked = prompts_of(tmp_path, method, f"task={task}", "mode=online", "labels=gold")
    predicted = set()
    for role, session, prompt in asked:
        if role == "generator" and session.endswith("/0"):
            predicted.add(sample_of(session))
            assert marker(sample_of(session)) not in prompt
        for gold in (part.split(">")[0] for part in prompt.split("planted<")[1:]):
            assert gold in predicted


@pytest.mark.parametrize("labels", ["correctness", "gold"])
@pytest.mark.parametrize("task", ["finer", "appworld"])
def test_reflections_on_earlier_samples_bring_gold_as_labels_say_and_never_to_an_evaluation(task, labels, tmp_path):
    settings = (f"task={task}", f"labels={labels}", "mode.epochs=1", "method.generator_reflections=3")
    _, asked = prompts_of(tmp_path, "ace", *settings)
    generated = [(session, prompt) for role, session, prompt in asked if role == "generator"]
    assert any("planted<" in prompt for _, _, prompt in asked) is (labels == "gold")
    for session, prompt in generated:
        assert ("<recent_reflections>" in prompt) is session.startswith("adapt/")
        if session.startswith("adapt/") and session.endswith("/0"):
            assert marker(sample_of(session)) not in prompt


def test_rules_that_learn_from_executions_repeat_no_gold(tmp_path):
    ran, asked = prompts_of(tmp_path, "ace", "task=appworld", "labels=gold", "method.reflector=rules")
    assert set(ran.metrics["calls"]["adapt"]) == {"generator"}
    assert not any("planted<" in prompt for _, _, prompt in asked)
    assert "planted<" not in (ran.folder / "contexts" / "final.json").read_text()
