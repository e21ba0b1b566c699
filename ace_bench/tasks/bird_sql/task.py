"""BIRD-SQL: answer a question about a database by one SQLite query (paper, sections 4.1 and A.2; StreamBench).

Four metrics run prediction and gold query and compare the results as sets of rows, so that neither order nor repetition
of rows counts:

* ``execution`` is ours: the query is found in any usual form of reply and run unchanged; an empty result gets no point.
* ``streambench_ex`` is StreamBench's rule (stream-bench/stream-bench, text2sql_utils): a reply that does not begin with
  SELECT in capitals gets one in front, which breaks ``WITH`` and ``select``; where either result is empty its code
  fails on the first row, so that no answer is right for a question whose gold query returns nothing; text that is not
  UTF-8 fails.
* ``bird_ex`` is BIRD's own execution accuracy of the query that ``execution`` reads: empty equals empty, and text that
  is not UTF-8 fails.
* ``execution_corrected`` is ``execution`` where an empty result equals an empty one, rows must come in the gold's order
  where the gold query has an outer ORDER BY (ties too), and reals are compared at 12 significant digits.

Three differences from the code of both benchmarks do not matter for a plain query: their 30 seconds are for both
queries together, here they are for the prediction, as gold results are cached; queries can only read, within limits;
``now`` is one fixed time (``task.clock``).

``judge`` is the paper's metric, LLM-as-a-judge (see ``questions``), and the headline where a run sets up a judge. An
answer without a verdict counts as wrong.
Each metric is also given by difficulty: simple, moderate, challenging.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from ace_bench.core.backbones import Lm
from ace_bench.core.confine import describe_layers
from ace_bench.core.errors import ConfigError, RolloutFault, SettingError
from ace_bench.core.prompts import Prompts
from ace_bench.core.settings import Seconds, Text
from ace_bench.core.types import Grade, Sample
from ace_bench.store.files import cache_folder
from ace_bench.tasks.answers import JUDGE_TEMPLATE, AnswerTask, Grader, ask_judge, percent
from ace_bench.tasks.bird_sql.databases import Archive, DatabaseFinder, gold_result
from ace_bench.tasks.bird_sql.pool import NO_QUERY, ExecutionResult, Limits, Workers
from ace_bench.tasks.bird_sql.questions import (
    INSTRUCTION,
    LEVELS,
    Draw,
    format_question,
    orders,
    parts_of,
    read_folder,
    sql_by_stream_bench,
    sql_of,
)
from ace_bench.tasks.data import DataSettings, HubDataset, RemoteFile, Row, files_in, find_folder, sha256_of

_PUBLISHER = "https://bird-bench.oss-cn-beijing.aliyuncs.com"

Metric = Literal["execution", "streambench_ex", "bird_ex", "execution_corrected", "judge"]
METRICS: tuple[Metric, ...] = get_args(Metric)


class BirdSql(AnswerTask):
    """The BIRD-SQL task; the module docstring describes its metrics.

    ``data_dir`` holds StreamBench's questions or BIRD's mini-dev (see ``questions``) and the databases; ``sample_data``
    is the sample set. ``evidence`` adds BIRD's hint to each question. ``metric`` is the headline and decides what
    adaptation sees as correct. A run replaces ``auto`` by ``choose_metric``; elsewhere it is ``execution``. ``judge``
    is ``auto`` (ask where ``metric`` is judge), ``always`` or ``never``.
    ``stream_bench`` and ``mini_dev`` say how splits are drawn where the data has none. ``clock`` is the time (UTC) that
    all SQL sees, ``timeout`` is in seconds a query, ``workers`` is the number of queries run at a time.

    Raises ``ConfigError`` or ``DataError`` at construction for wrong settings, missing files and bad rows.
    """

    draws_from_seed = False
    name: str = "bird_sql"
    hub: HubDataset = HubDataset(
        config="bird",
        splits={"train": "train", "test": "test"},
        fields=("question", "SQL", "db_id", "evidence", "difficulty"),
    )
    archives: tuple[Archive, ...] = (
        Archive(file=RemoteFile(name="dev.zip", url=f"{_PUBLISHER}/dev.zip"), split="test"),
        Archive(file=RemoteFile(name="train.zip", url=f"{_PUBLISHER}/train.zip"), split="train"),
    )
    sections: tuple[str, ...] = (
        "schema_and_joins",
        "business_terms_and_conventions",
        "formulas_and_calculations",
        "query_templates",
        "common_mistakes_to_avoid",
        "others",
    )

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        evidence: bool,
        metric: Metric | Literal["auto"],
        judge: Literal["auto", "always", "never"],
        stream_bench: Draw,
        mini_dev: Draw,
        clock: Text,
        timeout: Seconds,
        workers: Annotated[int, Meta(ge=1, le=256)],
        **data: Annotated[Any, DataSettings],
    ) -> None:
        self.headline: str = "execution" if metric == "auto" else metric
        if judge == "never" and metric == "judge":
            raise SettingError("metric=judge needs its judge: set judge=auto, or choose another metric")
        self.judge_template: str | None = JUDGE_TEMPLATE if judge == "always" or metric == "judge" else None
        self._evidence = evidence
        limits = self._limits = Limits(timeout=timeout)
        now = _moment(clock)
        folder, self.source = find_folder(self.name, DataSettings(**data))
        rows = read_folder(folder, stream_bench=stream_bench, mini_dev=mini_dev)
        self.files: Mapping[str, Path] = files_in(folder, rows.files, task=self.name)
        cache = cache_folder(self.name)
        names = sorted({row.fields["db_id"] for split in rows.splits.values() for row in split})
        finder = DatabaseFinder(folder=folder, cache=cache, limits=limits, clock=now)
        self._databases = {name: finder.find(name) for name in names}
        paths = [database.path for database in self._databases.values()]
        self._workers = Workers(count=workers, limits=limits, clock=now, databases=paths)
        self.checksums: Mapping[str, str] = {
            **{name: sha256_of(path) for name, path in self.files.items()},
            **{database.file.name: database.checksum for database in self._databases.values()},
        }
        self._gold_result = functools.cache(
            partial(gold_result, workers=self._workers, clock=now, folder=cache / "golds")
        )
        self.use_rows(rows.splits.__getitem__)

    @staticmethod
    def choose_metric(judge: str, *, names_judge: bool) -> Metric:
        """Return the metric that ``auto`` stands for; ``names_judge`` says that the run names a judge's backbone."""
        return "judge" if judge == "always" or (names_judge and judge != "never") else "execution"

    def start(self, say: Callable[[str], None]) -> None:
        """Check that queries can be run, before the first answer is paid for."""
        try:
            self._workers.check()
        except RolloutFault as error:
            raise ConfigError(error.fault.message) from error
        layers = describe_layers(self.confinement or ())
        say(f"bird_sql: up to {self._limits.timeout:g} s a query; confined by: {layers}")
        published = "as in the paper" if self.headline == "judge" else "not the paper's, which is task.metric=judge"
        say(f"bird_sql: the headline is {self.headline}, {published}")

    @property
    def confinement(self) -> Sequence[str] | None:
        """The layers that confined the processes that run queries; ``None`` if none was started."""
        return self._workers.layers

    def close(self) -> None:
        """End the processes that run queries."""
        self._workers.close()

    def prompt_fields(self, inputs: frozenset[str], context_fields: frozenset[str]) -> Mapping[str, frozenset[str]]:
        """Return the fields of the judge's template."""
        del inputs, context_fields
        fields = frozenset(("schema", "question", "gold", "predicted"))
        return {} if self.judge_template is None else {self.judge_template: fields}

    def judge(self, sample: Sample, answer: str | None, grade: Grade, prompts: Prompts, lm: Lm) -> Grade:
        """Add the judge's verdict, unless the grade has one already or nothing would use it."""
        if "judge" in grade.detail or (sample.split == "train" and self.headline != "judge"):
            return grade
        schema, question = parts_of(sample.inputs["question"])
        fields = {"schema": schema, "question": question, "gold": grade.gold, "predicted": sql_of(answer)}
        right = ask_judge(fields, prompts, lm)
        return self._make_grade(grade.observed, grade.gold, {**grade.detail, "judge": float(right)}, grade.group)

    def expected_loss(self, grade: Grade) -> str | None:
        """Say why the metric gives a gold query no point, ``None`` if nothing explains it."""
        if grade.detail.get("execution_corrected") != 1.0 or self.headline not in ("execution", "streambench_ex"):
            return None
        begins = "" if self.headline == "execution" else ", or does not begin with SELECT"
        return f"its query returns no row{begins}: {self.headline} never gives a point for that"

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return right answers in percent by each metric, overall and by difficulty; without grades, no metrics."""
        metrics = METRICS if self.judge_template else METRICS[:-1]
        groups = {"": grades, **{f"_{level}": [g for g in grades if level in g.detail] for level in LEVELS}}
        return {
            f"{metric}{suffix}": percent(sum(grade.detail.get(metric, 0.0) for grade in group), len(group))
            for suffix, group in groups.items()
            if group
            for metric in metrics
        }

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Ask the question about its database."""
        fields = row.fields
        schema = self._databases[fields["db_id"]].schema
        question = format_question(schema, fields["evidence"] if self._evidence else "", fields["question"].strip())
        inputs = {"background": INSTRUCTION, "question": question, "schema": schema, "asked": parts_of(question)[1]}
        return inputs, partial(self._grade, row)

    def _grade(self, row: Row, answer: str | None) -> Grade:
        gold, sql = row.fields["SQL"].strip(), sql_of(answer)
        detail = {row.fields["difficulty"]: 1.0} if row.fields["difficulty"] else {}
        if answer is None or not answer.strip():
            return self._make_grade(NO_QUERY, gold, dict.fromkeys((*detail, *METRICS), 0.0), row.fields["db_id"])
        database = self._databases[row.fields["db_id"]]
        wanted = self._gold_result(database, gold)
        outcomes = {gold: wanted}

        def run(query: str) -> ExecutionResult:
            if query not in outcomes:
                outcomes[query] = self._workers.run(database.path, query)
            return outcomes[query]

        outcome, by_stream_bench = run(sql), run(sql_by_stream_bench(answer))
        detail["execution"] = float(outcome.same(wanted))
        detail["streambench_ex"] = float(by_stream_bench.rows > 0 and by_stream_bench.same_python(wanted))
        detail["bird_ex"] = float(outcome.same_python(wanted))
        detail["execution_corrected"] = float(outcome.same_corrected(wanted, ordered=orders(gold)))
        if not sql or sql == gold:  # no judge needs to be asked
            detail["judge"] = float(bool(sql))
        return self._make_grade(outcome.observed(self._limits), gold, detail, row.fields["db_id"])

    def _make_grade(self, observed: str, gold: str, detail: Mapping[str, float], database: str) -> Grade:
        """Return a grade. Questions about one database are a group: what helps with its tables helps them all."""
        right = detail.get(self.headline, 0.0)
        return Grade(score=right, correct=right == 1.0, observed=observed, gold=gold, group=database, detail=detail)


def _moment(clock: str) -> str:
    try:
        moment = datetime.fromisoformat(clock)
    except ValueError as error:
        raise SettingError(f"clock={clock} must be a time such as 2025-10-06T00:00:00 (UTC)") from error
    utc = moment if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.strftime("%Y-%m-%d %H:%M:%S")
