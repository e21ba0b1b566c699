"""What all tasks made of environments share: splits, sessions, grades and metrics."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from ace_bench.core.backbones import Lm
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, DataError, RolloutFault, SettingError
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import TOOLS
from ace_bench.core.settings import NotNegative, Seconds, Seed
from ace_bench.core.types import Grade, Record, Sample
from ace_bench.tasks.answers import percent
from ace_bench.tasks.data import SPLITS
from ace_bench.tasks.environments.episode import ReplyRequest
from ace_bench.tasks.environments.session import EnvironmentItem, EnvironmentSession, make_grade


@dataclass(frozen=True, kw_only=True)
class SplitRatio:
    """Sizes of the splits in proportion to each other; 0 leaves a split empty."""

    train: NotNegative
    val: NotNegative
    test: NotNegative

    def __post_init__(self) -> None:
        if not self.train or not self.test:
            raise SettingError("split_ratio: train and test need a share above 0")


def draw(total: int, ratio: SplitRatio, *, seed: int, with_test: bool) -> Mapping[str, Sequence[int]]:
    """Return the places of the samples of each split in their order; a split with a share gets at least one.

    Without a test split, training and validation divide all samples between them. Raises ``SettingError`` if there
    are too few samples.
    """
    shares = {"train": ratio.train, "val": ratio.val, **({"test": ratio.test} if with_test else {})}
    wanted = {split: share / sum(shares.values()) for split, share in shares.items() if share}
    if total < len(wanted):
        raise SettingError(
            f"split_ratio: {total} samples are too few for {', '.join(wanted)}: change the shares, or load more samples"
        )
    sizes = {split: max(1, round(total * share)) for split, share in wanted.items() if split != "train"}
    sizes = {"train": max(1, total - sum(sizes.values())), **sizes}
    places = list(range(total))
    random.Random(seed).shuffle(places)
    drawn: dict[str, Sequence[int]] = {"val": ()}
    for split, size in sizes.items():
        drawn[split], places = sorted(places[:size]), places[size:]
    return drawn


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """Settings of all environments: ``timeout`` is the most seconds that one takes between two model calls."""

    split_ratio: SplitRatio
    split_seed: Seed
    timeout: Seconds
    sample_allowed: bool
    """Not used: there is no sample set, and the settings say what is read."""


class EnvironmentTask:
    """Base class; a subclass loads the samples.

    ``items`` are samples of the test data, and ``training`` of the training data. ``training`` is ``None`` if
    ``split_ratio`` divides one set. With ``judge`` the scorers' model calls go to the role judge.
    """

    name: str = "environment"  # the folder of prompts; what it does not hold is in prompt_group
    prompt_group: str = "qa"
    headline: str = "score"
    source: str = "real"
    splits: tuple[str, ...] = SPLITS
    sections: tuple[str, ...] = (
        "strategies",
        "tool_use",
        "formats_and_conventions",
        "common_mistakes_to_avoid",
        "others",
    )

    def __init__(
        self,
        items: Sequence[EnvironmentItem],
        training: Sequence[EnvironmentItem] | None,
        *,
        judge: bool = False,
        **common: Annotated[Any, CommonSettings],
    ):
        settings = CommonSettings(**common)
        self._timeout = settings.timeout
        self.judge_template: str | None = "" if judge else None  # no template: the scorers word their own prompts
        self._open_for_judge: dict[tuple[str, int], EnvironmentSession] = {}
        self._items = _by_split(items, training, settings.split_ratio, settings.split_seed)
        self.checksums: Mapping[str, str] = {
            "samples": digest_of(
                {split: [_checked_parts(item) for item in items.values()] for split, items in self._items.items()}
            )
        }
        self._lock = threading.Lock()
        self._background: str | None = None

    def samples(self, split: str) -> Sequence[Sample]:
        """Return the samples of a split; inputs are ``background`` (system text and tools) and ``question``."""
        if split not in self._items:
            raise ConfigError(f"this task has no split {split!r}; it has {', '.join(self._items)}")
        shared = self._shared_text()
        return tuple(
            Sample(id=name, split=split, inputs={"background": shared, "question": item.question})
            for name, item in self._items[split].items()
        )

    @contextmanager
    def open(self, sample: Sample) -> Iterator[EnvironmentSession]:
        """Start an attempt; where a judge is to follow, it ends with ``judge``."""
        judged_later = self.judge_template is not None
        session = EnvironmentSession(self._item(sample), timeout=self._timeout, judged_later=judged_later)
        try:
            yield session
        finally:
            if session.waits_for_judge:
                self._open_for_judge[sample.id, threading.get_ident()] = session
            else:
                session.close()

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return no fields: the judge has no template."""
        return {}

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Score the attempt that this thread made last; its scorers call ``lm``."""
        session = self._open_for_judge.pop((sample.id, threading.get_ident()), None)
        if session is None:
            return grade
        try:
            return session.score(lm)
        finally:
            session.close()

    def close(self) -> None:
        """End attempts whose judge was not reached."""
        while self._open_for_judge:
            _, session = self._open_for_judge.popitem()
            session.close()

    def start(self, say: Callable[[str], None]) -> None:
        """Nothing to start."""

    def failing_grade(self, sample: Sample) -> Grade:
        """Grade a sample that could not be attempted: wrong."""
        return make_grade(self._item(sample), None)

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the mean score and the share of samples that scored 1, both in percent, and the mean of each scorer.

        A score need not lie between 0 and 1: it is what the environment's own scorers give.
        """
        if not grades:
            return {}
        names = dict.fromkeys(name for grade in grades for name in grade.detail)
        means = {name: percent(sum(grade.detail.get(name, 0.0) for grade in grades), len(grades)) for name in names}
        success = percent(sum(grade.correct for grade in grades), len(grades))
        return {"score": means.pop("score"), "success": success, **means}

    def _item(self, sample: Sample) -> EnvironmentItem:
        items = self._items.get(sample.split, {})
        if sample.id not in items:
            raise DataError(f"this task has no sample {sample.id} in its split {sample.split!r}")
        return items[sample.id]

    def _shared_text(self) -> str:
        """Return the system text and the tools, from the first request of the first sample.

        It makes no model call. Raises ``ConfigError`` if the environment cannot be started.
        """
        with self._lock:
            if self._background is None:
                item = next(iter(self._items["train"].values()))
                session = EnvironmentSession(item, timeout=self._timeout)
                try:
                    request = session.next_request()
                except RolloutFault as error:
                    raise ConfigError(f"the environment cannot be started: {error.fault.message}") from error
                finally:
                    session.close()
                if request is None:
                    raise ConfigError("the environment ends without asking a model, so there is nothing to learn in it")
                self._background = background_of(request)
            return self._background


def _checked_parts(item: EnvironmentItem) -> Sequence[str]:
    return (item.question, item.gold, *filter(None, [item.digest]))


def background_of(request: ReplyRequest) -> str:
    """Return what all samples share: the system text and a line for each tool."""
    system = [message.content.strip() for message in request.messages if message.role == "system"]
    tools = [_line(tool["function"]) for tool in (request.schema or {}).get(TOOLS, ())]
    return "\n\n".join(filter(None, [*system, "\n".join(["Tools:", *tools]) if tools else ""]))


def _line(function: Record) -> str:
    names = ", ".join((function.get("parameters") or {}).get("properties", {}))
    return f"- {function['name']}({names}): {' '.join(str(function.get('description', '')).split())}"


def _by_split(
    items: Sequence[EnvironmentItem], training: Sequence[EnvironmentItem] | None, ratio: SplitRatio, seed: int
) -> Mapping[str, Mapping[str, EnvironmentItem]]:
    if not items:
        raise SettingError("args: the environment has no samples with these arguments; change them")
    drawn_from = items if training is None else training
    drawn = draw(len(drawn_from), ratio, seed=seed, with_test=training is None)
    by_split = {split: _name_items(split, drawn_from, places) for split, places in drawn.items()}
    return by_split if training is None else {**by_split, "test": _name_items("test", items, range(len(items)))}


def _name_items(split: str, items: Sequence[EnvironmentItem], places: Sequence[int]) -> Mapping[str, EnvironmentItem]:
    return {f"environment-{split}-{index + 1:04d}": items[index] for index in places}
