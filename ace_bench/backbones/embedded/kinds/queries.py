"""Kinds of question: write an SQL query (BIRD-SQL), or act on apps by code (AppWorld).

The query or code of a lesson is used again with this question's values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent

from ace_bench.backbones.embedded.items import Index, Item
from ace_bench.backbones.embedded.lessons import QUERY, RUN, Lesson, one_line
from ace_bench.backbones.embedded.slots import fill_slots
from ace_bench.backbones.embedded.words import content_stems, stem, tokens

_TABLE = re.compile(r"\bCREATE TABLE (?:IF NOT EXISTS )?[\"`\[]?(\w+(?: \w+)*)", re.IGNORECASE)
_FROM = re.compile(r"\b(?:FROM|JOIN)\s+(?:\"([^\"]+)\"|(\w+))", re.IGNORECASE)
_ASKED = re.compile(r"(?:\A|\n)[ \t]*(?:User )?[Qq]uestion:[ \t]*")
_FENCED = re.compile(r"```(?:sql)?\s*(.*?)```", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\w+|[^\w\s\"`;]")


@dataclass(frozen=True, kw_only=True)
class QueryItem(Item):
    """A question about a database with these tables."""

    verb = QUERY

    tables: frozenset[str]

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        used = {(quoted or bare).lower() for quoted, bare in _FROM.findall(lesson.payload)}
        return fill_slots(lesson.cue, lesson.payload, self.cue, index) if used <= self.tables else None

    def guesses(self) -> Mapping[str, float]:
        """Count the rows of the table that the question names."""
        cue_stems = set(content_stems(tokens(self.cue)))
        ranked = sorted(self.tables, key=lambda name: (-len({stem(w) for w in name.split("_")} & cue_stems), name))
        return {f'SELECT COUNT(*) FROM "{ranked[0]}"': 0.0}

    def payload(self, answer: str) -> str:
        fenced = _FENCED.search(answer)
        return one_line(fenced[1] if fenced else answer).replace("`", '"').rstrip("; ")

    def is_same(self, first: str, second: str) -> bool:
        return same_query(first, second)


def read_query(background: str, question: str) -> Sequence[QueryItem]:
    """Recognise a question below the statements that create a database's tables."""
    tables = frozenset(name.lower() for name in _TABLE.findall(f"{background}\n{question}"))
    request = _ASKED.split(question)[-1] if tables else ""
    return [QueryItem(cue=one_line(request).replace('"', "'"), tables=tables)] if request.strip() else []


def same_query(query: str, other_query: str) -> bool:
    """Whether queries are the same apart from white space, case, quoting of names and the order of conditions."""
    first, second = (
        Counter(t if t[0] == "'" else t.lower() for t in _TOKEN.findall(text)) for text in (query, other_query)
    )
    return bool(first) and first == second


DONE = "apis.supervisor.complete_task()"
_APPS = re.compile(r"^- supervisor: ", re.MULTILINE)
_CODE = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
_FUNCTION = re.compile(r"\A\s*def solution\([^)\n]*\):[^\n]*\n")
API = re.compile(r"\bapis\.(\w+)\.(\w+)")
_DESCRIBED = re.compile(r"show_api_descriptions\(app_name='(\w+)'\)")
_NAMED = re.compile(r'"name": "(\w+)"')
_LISTED = re.compile(r"answer=.* for \w+ in (\w+)\)\)(?=\))")
_COMPLETION = "complete_task("
_FAILED = ("Execution failed", "Traceback", "Error")
_READING = ("show", "search")
_COMMON = ("supervisor", "api_docs", "phone")
Steps = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class CodeItem(Item):
    """A task on apps; ``apis`` are the known names of APIs by app."""

    verb = RUN

    apis: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def fill(self, lesson: Lesson, index: Index) -> tuple[str, float] | None:
        code, fit = fill_slots(lesson.cue, lesson.payload, self.cue, index)
        wanted, taught = (set(content_stems(tokens(cue))) for cue in (self.cue, lesson.cue))
        if self.cue.startswith("How many"):
            code = _LISTED.sub(r"answer=len(\1)", code)
        return API.sub(lambda call: self._fit_api(call, wanted, taught), code), fit

    def _fit_api(self, call: re.Match[str], wanted: set[str], taught: set[str]) -> str:
        """Replace a list-reading API that the lesson's task named by one that this task names."""
        app, api = call[1], call[2]
        verb, *nouns = api.split("_")
        missing = {stem(noun) for noun in nouns} & taught - wanted
        if verb in _READING and missing:
            for candidate in self.apis.get(app, ()):
                other_verb, *api_nouns = candidate.split("_")
                if (
                    other_verb in _READING
                    and len(api_nouns) >= len(nouns)
                    and {stem(noun) for noun in api_nouns} <= wanted
                ):
                    return f"apis.{app}.{candidate}"
        return call[0]

    def guesses(self) -> Mapping[str, float]:
        """Complete the task without doing anything."""
        return {DONE: 0.0}

    def payload(self, answer: str) -> str:
        """The code of a reference solution, or of the step of a trajectory that completed the task."""
        steps = [code for code, _ in read_steps(answer) if _COMPLETION in code]
        code = steps[-1] if steps else "" if "### Step" in answer else answer
        return dedent(_FUNCTION.sub("", code)).strip().replace("```", "")

    def is_same(self, first: str, second: str) -> bool:
        return self.payload(first) == self.payload(second)


def read_task(background: str, question: str) -> Sequence[CodeItem]:
    """Recognise the list of apps."""
    return [CodeItem(cue=one_line(question))] if _APPS.search(background) else []


def read_steps(trajectory: str) -> tuple[tuple[str, str], ...]:
    """Code and output of each step of a trajectory."""
    return tuple(read_step(text) for text in re.split(r"^### Step \d+$", trajectory, flags=re.MULTILINE)[1:])


def read_step(text: str) -> tuple[str, str]:
    """The code of a reply and the output that follows it, "" if absent."""
    code, _, output = text.partition("Output:\n```\n")
    match = _CODE.search(code)
    return match[1] if match else "", output.rpartition("\n```")[0]


def described_apis(steps: Steps) -> Mapping[str, tuple[str, ...]]:
    """The APIs that steps have listed, by app."""
    apis: dict[str, tuple[str, ...]] = {}
    for code, output in steps:
        for app in _DESCRIBED.findall(code):
            apis[app] = tuple(_NAMED.findall(output))
    return apis


def next_code(code: str, steps: Steps) -> tuple[str, str]:
    """A thought and the code of the next step: look up the apps of ``code``, run it, give up where it fails."""
    if any(_COMPLETION in ran or output.startswith(_FAILED) for ran, output in steps) or code == DONE:
        return "I do not know how to do this.", DONE
    apps = list(dict.fromkeys(app for app, _ in API.findall(code) if app not in _COMMON))
    if apps and not steps:
        calls = (f"print(apis.api_docs.show_api_descriptions(app_name='{app}'))" for app in apps)
        return "I look at what there is.", "\n".join(calls)
    return "I do what worked for a similar task.", code
