"""Finds the data that the settings name, and reads it as questions by split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.settings import Text
from ace_bench.tasks.data import SPLITS, DataSettings, find_folder, sha256_of
from ace_bench.tasks.qa.columns import Columns, Question, read_questions
from ace_bench.tasks.qa.files import TextForm, read_file
from ace_bench.tasks.qa.splitting import NAMES, Draw, Questions, by_column, by_shares

HUB = "hub://"
_SAMPLE = Columns(question="message", answer="team", id="id", group="customer", split="split")
_SAMPLE_INSTRUCTION = (
    "Which team answers this message to a furniture shop? Answer with one of these teams: "
    "billing, company desk, delivery, workshop, returns, safety."
)
_UTF_8 = TextForm(encoding="utf-8", delimiter=",")


@dataclass(frozen=True, kw_only=True)
class Hub:
    """Which version of a data set of the hub: the name of its configuration, and a commit, tag or branch."""

    config: Text | None
    revision: Text | None


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The questions by split, the SHA-256 of the data by file name, and the instruction that comes with the data."""

    questions: Questions
    checksums: Mapping[str, str]
    instruction: str | None = None


def sample_set(columns: Columns, *, source: str, sample_data: str | None, allowed: bool) -> Loaded:
    """Read a sample set: with ``source=sample`` by the columns that are named, else that of the project's own tickets.

    Raises ``SettingError`` where data of one's own is meant.
    """
    named = any(any(names) for names in columns.named.values())
    if (named and source != "sample") or source == "real" or not (allowed or source == "sample"):
        raise SettingError("data=null leaves nothing to read: name your file, such as task.data=questions.csv")
    settings = DataSettings(data_dir=None, source="sample", sample_data=sample_data, sample_allowed=allowed)
    folder, _ = find_folder("qa", settings)
    path = next(
        (path for path in sorted(folder.iterdir()) if path.suffix in (".csv", ".jsonl")), folder / "questions.csv"
    )
    questions = by_column(read_questions(read_file(path, _UTF_8), columns if named else _SAMPLE), "split")
    instruction = None if named else _SAMPLE_INSTRUCTION
    return Loaded(questions=questions, checksums={path.name: sha256_of(path)}, instruction=instruction)


def load(data: str | Mapping[str, str], columns: Columns, *, form: TextForm, hub: Hub, draw: Draw) -> Loaded:
    """Read a user's data. Raises ``SettingError`` or ``DataError``."""
    for setting, name in (("question", columns.question), ("answer", columns.answer)):
        if not name:
            raise SettingError(f"{setting}=null must name a column of task.data; write task.{setting}=COLUMN")
    if not isinstance(data, str):
        return _by_file(data, columns, form)
    if data.startswith(HUB):
        from ace_bench.tasks.qa.hub import hub_splits

        found = hub_splits(data.removeprefix(HUB), hub.config, hub.revision, columns)
        return Loaded(questions=_split(found.questions, columns, draw), checksums=found.checksums)
    path = Path(data).expanduser()
    questions = read_questions(read_file(path, form), columns)
    return Loaded(questions=_split({"": questions}, columns, draw), checksums={path.name: sha256_of(path)})


def _by_file(data: Mapping[str, str], columns: Columns, form: TextForm) -> Loaded:
    unknown = [name for name in data if name not in SPLITS]
    if unknown or not data:
        raise SettingError(f"data has no split {', '.join(unknown) or 'at all'}; write {{train: FILE, test: FILE}}")
    if columns.split is not None:
        raise SettingError(f"split={columns.split} needs one file for all splits; task.data already names one for each")
    paths = {split: Path(name).expanduser() for split, name in data.items()}
    return Loaded(
        questions={split: read_questions(read_file(path, form), columns) for split, path in paths.items()},
        checksums={f"{split}: {path.name}": sha256_of(path) for split, path in paths.items()},
    )


def _split(found: Mapping[str, Sequence[Question]], columns: Columns, draw: Draw) -> Questions:
    """Split what was read: by the publisher's splits if there are several, by a column, or by shares."""
    if len(found) > 1 and columns.split is None:
        known = {NAMES[name.lower()]: rows for name, rows in found.items() if name.lower() in NAMES}
        if len(known) < 2:
            raise DataError(f"task.data has the splits {', '.join(found)}, of which none or one has a known name")
        return known
    rows = [one for questions in found.values() for one in questions]
    return by_shares(rows, draw) if columns.split is None else by_column(rows, columns.split)
