"""Finds the data that the settings name, and reads it as questions by split.

Splits come from a file for each, from a column, or from seeded shares. A data set of the Hugging Face hub is read with
the ``datasets`` library.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path

from ace_bench.core.encoding import digest_of, digest_of_text
from ace_bench.core.errors import DataError, SettingError
from ace_bench.core.settings import NotNegative, Text
from ace_bench.tasks.data import SPLITS, DataSettings, find_folder, load_from_hub, sha256_of
from ace_bench.tasks.qa.columns import Columns, Question, read_questions
from ace_bench.tasks.qa.files import TextForm, read_file

NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing", "eval"), "test"),
}
"""What a split may be called, in any case."""

Questions = Mapping[str, Sequence[Question]]
"""Questions by split, in the order of their rows."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Sizes of the splits in proportion to each other; 0 leaves a split empty."""

    train: NotNegative
    val: NotNegative
    test: NotNegative

    def __post_init__(self) -> None:
        if not self.train + self.val + self.test:
            raise SettingError("train, val and test are 0; give at least train and test a share")


def by_column(questions: Sequence[Question], column: str) -> Questions:
    """Split by the values of a column; raises ``DataError`` for a value that names no split."""
    by_split: dict[str, list[Question]] = {split: [] for split in SPLITS}
    for question in questions:
        name = NAMES.get(question.split.lower())
        if name is None:
            names = ", ".join(sorted(NAMES))
            raise DataError(
                f"{question.where}: column {column} (task.split) says {question.split!r}, not one of {names}"
            )
        by_split[name].append(question)
    return by_split


def by_shares(questions: Sequence[Question], *, shares: Shares, seed: int) -> Questions:
    """Split by seed. Rows of a group, and repeated questions, stay together.

    Units (groups, or questions) are ranked by a hash of the seed and their text. So the order of the rows does not
    matter, and rows that are added move only units near a border. Within a split the order of the rows is kept.
    """
    unit_of = {
        question.where: f"group {question.group}" if question.group else question.digest for question in questions
    }
    units = Counter(unit_of.values())
    ranked = sorted(units, key=lambda unit: hashlib.sha256(f"{seed}/{unit}".encode()).digest())
    reached = list(accumulate(getattr(shares, split) for split in SPLITS))
    ends = [round(len(questions) * share / reached[-1]) for share in reached]
    position, split_of = 0, dict[str, str]()
    for unit in ranked:
        split_of[unit] = SPLITS[bisect_left(ends, position + units[unit] / 2)]  # where the unit's middle lies
        position += units[unit]
    return {
        split: [question for question in questions if split_of[unit_of[question.where]] == split] for split in SPLITS
    }


def repeats(questions: Questions) -> list[str]:
    """Describe in a sentence each what is repeated: questions within a split and between splits."""
    digests = {split: Counter(question.digest for question in rows) for split, rows in questions.items()}
    findings = []
    for index, split in enumerate(SPLITS):
        repeated = sum(digests[split].values()) - len(digests[split])
        if repeated:
            findings.append(
                f"{repeated} of {len(questions[split])} questions of {split} repeat an earlier one of {split}"
            )
        for earlier in SPLITS[:index]:
            shared = [row for row in questions[split] if row.digest in digests[earlier]]
            if shared:
                findings.append(
                    f"{len(shared)} of {len(questions[split])} questions of {split} are also in {earlier}, "
                    f"such as {shared[0].where}"
                )
    return findings


_SUFFIXES = (".txt", ".md")


def read_instruction(setting: str | None, default: str) -> tuple[str, Mapping[str, str]]:
    """Return the instruction with a line break at its end, and its checksum; a name in .txt or .md is a file."""
    if setting is None:
        return f"{default}\n", {}
    text = setting
    if setting.endswith(_SUFFIXES) and "\n" not in setting:
        try:
            text = Path(setting).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"instruction={setting} cannot be read: {error}; name a text file in UTF-8") from error
    if not text.strip():
        raise SettingError(f"instruction={setting} is empty; write what the model shall do, or set it to null")
    return f"{text.strip()}\n", {"instruction": digest_of_text(text.strip())}


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
    """Read a sample set: with ``source=sample`` by the columns that are named, else the project's own tickets.

    Raises ``SettingError`` if data of one's own is meant.
    """
    has_columns = any(columns.named.values())
    if has_columns:
        columns.check_named()
    if source != "sample" and (has_columns or source == "real" or not allowed):
        raise SettingError("data=null leaves nothing to read: name your file, such as task.data=questions.csv")
    settings = DataSettings(data_dir=None, source="sample", sample_data=sample_data, sample_allowed=allowed)
    folder, _ = find_folder("qa", settings)
    path = next(
        (path for path in sorted(folder.iterdir()) if path.suffix in (".csv", ".jsonl")), folder / "questions.csv"
    )
    questions = by_column(read_questions(read_file(path, _UTF_8), columns if has_columns else _SAMPLE), "split")
    instruction = None if has_columns else _SAMPLE_INSTRUCTION
    return Loaded(questions=questions, checksums={path.name: sha256_of(path)}, instruction=instruction)


def load(
    data: str | Mapping[str, str],
    columns: Columns,
    *,
    form: TextForm,
    hub: Hub,
    draw: Callable[[Sequence[Question]], Questions],
) -> Loaded:
    """Read a user's data; ``draw`` splits what neither files nor a column split.

    Raises ``ConfigError`` or ``DataError``.
    """
    columns.check_named()
    if not isinstance(data, str):
        return _by_file(data, columns, form)
    if data.startswith(HUB):
        by_name, checksums = _read_hub(data.removeprefix(HUB), hub, columns)
    else:
        path = Path(data).expanduser()
        by_name, checksums = {"": read_questions(read_file(path, form), columns)}, {path.name: sha256_of(path)}
    if len(by_name) > 1 and columns.split is None:
        questions: Questions = {NAMES[name.lower()]: rows for name, rows in by_name.items() if name.lower() in NAMES}
        if len(questions) < 2:
            raise DataError(f"task.data has the splits {', '.join(by_name)}, of which none or one has a known name")
    else:
        rows = list(chain.from_iterable(by_name.values()))
        questions = draw(rows) if columns.split is None else by_column(rows, columns.split)
    return Loaded(questions=questions, checksums=checksums)


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


def _read_hub(path: str, hub: Hub, columns: Columns) -> tuple[Questions, Mapping[str, str]]:
    """Download a data set; return its questions by the publisher's names of splits, and a checksum of all of them.

    Raises ``ConfigError`` without the library, ``DataError`` where the data cannot be loaded or lacks a column.
    """
    name = "/".join(filter(None, (path, hub.config))) + (f" at {hub.revision}" if hub.revision else "")
    fix = "check the name, task.hub and the network"
    loaded = load_from_hub(path, hub.config, hub.revision, called=f"task.data=hub://{name}", fix=fix)
    questions = dict[str, Sequence[Question]]()
    for split, rows in loaded.items():
        records = ((f"hub://{name}, {split}, row {number}", row) for number, row in enumerate(rows, start=1))
        questions[str(split)] = read_questions(records, columns)
    content = [[row.key, row.text, str(row.answer), row.group] for rows in questions.values() for row in rows]
    return questions, {f"hub://{name}": digest_of(content)}
