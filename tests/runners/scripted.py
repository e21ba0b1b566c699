"""A toy task and a backbone with scripted replies, for tests that need exact replies."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ace_bench.core.errors import RolloutFault
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Completion, Fault, Grade, Message, Sample, Usage
from ace_bench.runners.build import RunSpec
from tests.launching import Ran, launch

USAGE = Usage(prompt=10, completion=2, cached=None, usd=None)


class Toy:
    """Samples ``toy-<split>-<n>``; the right answer to each is ``gold of <id>``."""

    name, family, headline, source = "toy", "qa", "accuracy", "sample"
    checksums: dict[str, str] = {}  # noqa: RUF012 - the protocol's attribute
    sections = ("strategies", "others")

    def __init__(self, **sizes: int):
        self._sizes = {"train": 4, "val": 2, "test": 4, **sizes}

    def samples(self, split: str) -> Sequence[Sample]:
        return [
            Sample(
                id=f"toy-{split}-{n}", split=split, inputs={"background": "Toy.", "question": f"ask toy-{split}-{n}?"}
            )
            for n in range(self._sizes[split])
        ]

    @contextmanager
    def open(self, sample: Sample):
        yield ToySession(sample)

    def failing_grade(self, sample: Sample) -> Grade:
        return ToySession(sample).grade(None)

    def score(self, grades: Sequence[Grade]) -> dict[str, float]:
        return {"accuracy": 100 * sum(grade.correct for grade in grades) / len(grades)} if grades else {}


class ToySession:
    finished = False

    def __init__(self, sample: Sample):
        self._gold = gold(sample.id)

    def grade(self, answer: str | None) -> Grade:
        correct = answer == self._gold
        return Grade(score=float(correct), correct=correct, observed="", gold=self._gold)


def gold(sample_id: str) -> str:
    return f"gold of {sample_id}"


class Call:
    """One request as a script sees it; ``nth`` counts the calls of its role in its session from 0.

    A call that is about no sample in particular has ``sample`` "".
    """

    def __init__(self, messages: Sequence[Message], session: str, nth: int, schema: Any = None):
        self.schema = schema
        self.prompt = "\n".join(message.content for message in messages)
        self.session = session
        self.nth = nth
        self.sample = next((part for part in session.split("/") if part.startswith("toy-")), "")
        last = session.rpartition("/")[2]
        self.trial = int(last) if last.isdecimal() else 0  # a judge's session ends with a digest


Script = Callable[[Call], Any]


class Scripted:
    """A backbone of scripts by role: each makes of a call a text, a value to be sent as JSON, or a ``Fault``.

    A script may also return the whole ``Completion``.
    """

    name = "scripted"
    simulated = True
    context_length = None
    identity = {"name": "scripted"}  # noqa: RUF012 - the protocol's attribute

    def __init__(self, usage: Usage = USAGE, **scripts: Script):
        self._usage = usage
        self._scripts = {
            "generator": right,
            "reflector": lambda _: reflection(),
            "curator": lambda _: delta(),
        } | scripts
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self.calls: list[tuple[str, Call]] = []

    def count(self, text: str) -> int:
        return estimate_tokens(text)

    def complete(self, messages, *, role, session, schema=None) -> Completion:
        with self._lock:
            call = Call(messages, session, self._counts[role, session], schema)
            self._counts[role, session] += 1
            self.calls.append((role, call))
        said = self._scripts[role](call)
        if isinstance(said, Fault):
            raise RolloutFault(said)
        if isinstance(said, Completion):
            return said
        text = said if isinstance(said, str) else json.dumps(said)
        return Completion(text=text, usage=self._usage, seconds=0.0)

    def of(self, role: str) -> list[Call]:
        return [call for name, call in self.calls if name == role]


def answer(text: Any, *cited: str) -> dict[str, Any]:
    return {"reasoning": f"thought of {text}", "bullet_ids": list(cited), "final_answer": text}


def right(call: Call) -> dict[str, Any]:
    return answer(gold(call.sample))


def wrong(call: Call) -> dict[str, Any]:
    return answer(f"wrong on {call.sample}")


def reflection(insight: str = "insight", **tags: str) -> dict[str, Any]:
    """Tags by bullet id, whose hyphens are written as underscores."""
    listed = [{"id": name.replace("_", "-"), "tag": tag} for name, tag in tags.items()]
    return {"key_insight": insight, "bullet_tags": listed}


def delta(*contents: str) -> dict[str, Any]:
    return {"operations": [{"type": "ADD", "section": "others", "content": content} for content in contents]}


def lesson(call: Call) -> dict[str, Any]:
    """A curator that adds one bullet a session, like no other."""
    return delta(f"lesson {hashlib.sha256(call.session.encode()).hexdigest()}")


def bullets_in(prompt: str) -> int:
    return sum(line.startswith("[others-") for line in prompt.splitlines())


def play(
    results: Path,
    *overrides: str,
    script: Scripted,
    method: str = "ace",
    task: Callable[..., Toy] = Toy,
    spec: Callable[[RunSpec], RunSpec] = lambda spec: spec,
    **sizes: int,
) -> Ran:
    """Run a toy task; by default one epoch of ACE without the evaluation before it."""
    settings = ["mode.epochs=1", "mode.before=false", *overrides]
    return launch(
        results,
        "task=formula",
        "task.source=sample",
        f"method={method}",
        *settings,
        backbone=lambda _: script,
        task=lambda _: task(**sizes),
        spec=spec,
    )


def kept(ran: Ran, name: str = "final") -> list[dict[str, Any]]:
    """The bullets of a saved playbook."""
    return json.loads((ran.folder / "contexts" / f"{name}.json").read_text())["bullets"]


def events(ran: Ran) -> list[dict[str, Any]]:
    return [event for line in ran.lines("journal") if line["kind"] == "step" for event in line["events"]]


def steps(ran: Ran) -> list[dict[str, Any]]:
    return [line for line in ran.lines("journal") if line["kind"] == "step"]


def rollouts(ran: Ran, stage: str) -> list[dict[str, Any]]:
    return [line for line in ran.lines("journal") if line["kind"] == "rollout" and line["stage"] == stage]
