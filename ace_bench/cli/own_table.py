"""Looks at a table of a user's own and proposes how ``task=qa`` reads it: columns, splits, grader and instruction."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_bench.cli.arguments import print_line
from ace_bench.core.errors import ConfigError
from ace_bench.tasks.qa.files import TextForm, read_file
from ace_bench.tasks.qa.graders import are_labels
from ace_bench.tasks.qa.loading import NAMES

NONE = "none"
"""What a user types where no column fits."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_ESCAPED = re.compile(r'["\\]|\$\{')
_SHOWN_LABELS = 8
_QUESTIONS = ("question", "query", "message", "prompt", "text", "body", "input", "ticket", "description", "title")
_ANSWERS = ("answer", "label", "target", "gold", "expected", "output", "category", "class", "team", "solution")
_OPTIONS = ("choices", "options")
_GROUPS = ("customer", "client", "user", "patient", "account", "group", "author", "document", "thread")

Table = Mapping[str, Sequence[object]]
"""The values of each column, in the order of the rows."""
Ask = Callable[[str, str], str]
"""Asks a question with a default and returns the answer."""


def read_table(path: Path) -> Table:
    """Read all rows. A column that a row lacks holds ``None`` there. Raises ``AceBenchError`` as a run does."""
    rows = [row for _, row in read_file(path, TextForm(encoding="utf-8", delimiter=","))]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Names of columns, "" where none fits."""

    question: str
    answer: str
    id: str
    split: str
    group: str
    choices: str


def propose(table: Table) -> Proposal:
    """Propose how to read a table, by the names of its columns and by what they hold."""
    split = next((name for name, values in table.items() if _is_split(values)), "")
    unique = [name for name, values in table.items() if _distinct(values) == len(values)]
    identity = next((name for name in unique if name.lower() in ("id", "uuid", "key") or _ends_with_id(name)), "")
    choices = _named(table, _OPTIONS)
    free = [name for name in table if name not in (split, identity, choices)]
    answer = _named(free, _ANSWERS) or min(free, key=lambda name: _distinct(table[name]), default="")
    free = [name for name in free if name != answer]
    question = _named(free, _QUESTIONS) or max(free, key=lambda name: _length(table[name]), default="")
    repeated = [name for name in free if name != question and name not in unique]
    return Proposal(
        question=question,
        answer=answer,
        id=identity,
        split=split,
        group=_named(repeated, _GROUPS),
        choices=choices,
    )


def suggest_grader(answers: Sequence[object], *, has_choices: bool) -> str:
    """Return the grader that suits the answers: ``choice``, ``numeric``, ``exact`` or ``f1``."""
    if has_choices:
        return "choice"
    if answers and all(map(_is_number, answers)):
        return "numeric"
    return "exact" if are_labels(answers) or _length(answers) <= 40 else "f1"


def describe(table: Table, path: Path, *, answer: str, split: str) -> Iterator[str]:
    """Yield lines about a table: its size, how often each answer stands, and what a majority guess would score."""
    rows = len(table[answer])
    yield f"{path.name}: {rows} rows; columns {', '.join(table)}"
    yield f"answers in {answer}: {balance(table[answer])}"
    tested = [
        str(label)
        for label, name in zip(table[answer], table[split] if split else ["test"] * rows, strict=True)
        if NAMES.get(str(name).strip().lower()) == "test"
    ]
    if tested:
        yield f"{majority(tested)} of the {len(tested)} {'test rows' if split else 'rows'}"


def balance(answers: Iterable[object]) -> str:
    """Say how many different answers there are, and how often the most frequent ones stand."""
    counts = Counter(map(str, answers))
    most = ", ".join(f"{label} {count}" for label, count in counts.most_common(_SHOWN_LABELS))
    further = f" and {len(counts) - _SHOWN_LABELS} more" if len(counts) > _SHOWN_LABELS else ""
    return f"{len(counts)} different ones: {most}{further}"


def majority(answers: Sequence[str]) -> str:
    """Say what the most frequent of some answers would score."""
    ((label, count),) = Counter(answers).most_common(1)
    return f"always answering {label!r} is right on {100 * count / len(answers):.1f}%"


def default_instruction(table: Table, *, question: str, answer: str, grader: str) -> str:
    """Return a first instruction that lists the answers, "" if they are no labels or no setting can hold them."""
    answers = table[answer]
    labels = ", ".join(sorted(set(map(str, answers))))
    instruction = f"Sort each {question} into its {answer}. Answer with one of these: {labels}."
    fits = grader == "exact" and are_labels(answers) and not _ESCAPED.search(instruction)
    return instruction if fits else ""


def settings_of(path: Path, given: Mapping[str, str | None], ask: Ask) -> list[str]:
    """Ask what no option says, and return the settings of ``task=qa``. Prints what the table holds.

    ``given`` maps ``question``, ``answer``, ``split``, ``grader`` and ``instruction`` to what the user said.
    """
    table = read_table(path)
    proposal = propose(table)

    def column(name: str, words: str, default: str) -> str:
        chosen = given[name] or ask(words, default or NONE)
        if chosen == NONE:
            chosen = ""
        if chosen and chosen not in table:
            raise ConfigError(f"--{name} {chosen} is not a column of {path}; there are {', '.join(table)}")
        return chosen

    question = column("question", "column with the question", proposal.question)
    answer = column("answer", "column with the right answer", proposal.answer)
    if not question or not answer or question == answer:
        raise ConfigError(f"{path} needs one column with the question and another with the right answer")
    split = column("split", "column that says train, val or test; none: drawn", proposal.split)
    for line in describe(table, path, answer=answer, split=split):
        print_line(line)
    grader = given["grader"] or ask(
        "grader: exact, numeric, choice, contains, f1 or judge",
        suggest_grader(table[answer], has_choices=bool(proposal.choices)),
    )
    default = default_instruction(table, question=question, answer=answer, grader=grader)
    instruction = given["instruction"] or ask("what the model shall do, in a sentence", default or NONE)
    chosen = {
        "data": str(path),
        "question": question,
        "answer": answer,
        "split": split,
        "id": proposal.id if proposal.id not in (question, answer) else "",
        "group": proposal.group if proposal.group not in (question, answer) else "",
        "choices": proposal.choices if grader == "choice" else "",
        "grader": grader,
        "instruction": "" if instruction == NONE else instruction,
    }
    return [f"task.{name}={_quoted(name, value)}" for name, value in chosen.items() if value]


def _quoted(name: str, value: str) -> str:
    """Quote a value that the grammar of settings would read as something else."""
    if _PLAIN.fullmatch(value):
        return value
    if _ESCAPED.search(value):
        raise ConfigError(f'--{name} holds \\, " or ${{: write it into a file that ends in .txt, and name that')
    return f'"{value}"'


def _named(names: Sequence[str] | Table, wanted: Sequence[str]) -> str:
    """Return the first column whose name is, or contains, one of the wanted words, "" without one."""
    lower = {name: name.lower() for name in names}
    exact = (name for word in wanted for name, text in lower.items() if text == word)
    within = (name for word in wanted for name, text in lower.items() if word in text)
    return next(exact, None) or next(within, "")


def _is_split(values: Sequence[object]) -> bool:
    named = {NAMES.get(str(value).strip().lower()) for value in values}
    return None not in named and len(named) > 1


def _ends_with_id(name: str) -> bool:
    return name.lower().endswith(("_id", " id")) or name.endswith("Id")


def _distinct(values: Sequence[object]) -> int:
    return len(set(map(str, values)))


def _length(values: Sequence[object]) -> float:
    """Return the mean number of characters."""
    return sum(len(str(value)) for value in values) / max(1, len(values))


def _is_number(value: object) -> bool:
    try:
        float(str(value).replace(",", "").strip("$€% "))
    except ValueError:
        return False
    return True
