"""What a reader without lessons can think of: statements from the names and the documentation of APIs alone.

It takes a page for the whole list (a large one where it is to count) and the email address for everybody's user name:
that is for lessons to mend. Where a lesson holds a way to read pages, lists are read with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ace_rehearsal.reader.skills.acting.compose import plural, speaks_of
from ace_rehearsal.reader.skills.acting.documentation import Api, Documentation
from ace_rehearsal.reader.skills.acting.statements import Statement, analysed, stems_of
from ace_rehearsal.reader.words import stem

_TRUST = 0.9  # lessons of the same fit come first
_LISTING = ("show", "search")
_COUNTED = re.compile(r"How many (?:of my )?([a-z]+)\b")
_TITLED = re.compile(r"List the ([a-z]+)s of (?:all )?my ([a-z]+)s\b")
_EXTREMES = {"longest": ("max", "duration"), "shortest": ("min", "duration")}
_KNOWN = (
    "profile = apis.supervisor.show_profile()",
    'passwords = {a["account_name"]: a["password"] for a in apis.supervisor.show_account_passwords()}',
)


@dataclass(frozen=True, kw_only=True)
class Improviser:
    """Thinks of statements for a task; ``pager`` is the name of a function that reads all pages, "" for none."""

    question: str
    apps: tuple[str, ...]
    documentation: Documentation
    pager: str

    def statements(self) -> Iterator[Statement]:
        """Yield everything that may be of use."""
        yield from map(analysed, _KNOWN)
        for app in self.apps:
            login = f'apis.{app}.login(username=profile["email"], password=passwords["{app}"])'
            yield analysed(f'{app}_token = {login}["access_token"]')
        asked = stems_of(self.question)
        told = stems_of(self.question.partition(" ")[2])  # without what is to be done
        for app in self.apps:
            for api in self.documentation.descriptions.get(app, ()):
                verb, *nouns = api.split("_")
                if nouns and verb in _LISTING and speaks_of(nouns, told):
                    yield from self._lists(app, api, nouns)
                elif nouns and speaks_of([verb, *nouns], asked):
                    yield from self._acts(app, api, nouns[-1])
        yield from self._answers()

    def _lists(self, app: str, api: str, nouns: list[str]) -> Iterator[Statement]:
        known = self.documentation.apis.get(f"{app}.{api}")
        if known is not None:
            required = {name for name, needed in known.parameters.items() if needed}
            if not known.lists or required - {"access_token"}:
                return
        arguments = [f"access_token={app}_token", *self._named_options(known)]
        paged = known is not None and known.paged
        if paged and not self.pager and _COUNTED.match(self.question):
            arguments.append("page_limit=20")
        reader = f"{self.pager}(apis.{app}.{api}, " if paged and self.pager else f"apis.{app}.{api}("
        call = f"{reader}{', '.join(arguments)})"
        for noun in nouns:
            yield _cued(f"{plural(noun)} = {call}", *nouns, *app.split("_"))

    def _named_options(self, api: Api | None) -> Iterator[str]:
        """Yield options that take a list and that a quoted text of the task is said to be of: tagged "such"."""
        for word, text in re.findall(r'(\w+) "([^"\n]+)"', self.question):
            for name in () if api is None else api.plural_options:
                if word.startswith(stem(name)):
                    yield f"{name}=[{text!r}]"

    def _acts(self, app: str, api: str, noun: str) -> Iterator[Statement]:
        known = self.documentation.apis.get(f"{app}.{api}")
        required = [f"{noun}_id"] if known is None else [name for name, needed in known.parameters.items() if needed]
        values = {
            "access_token": f"{app}_token",
            "user_email": f'{noun}["email"]',
            f"{noun}_id": f'{noun}["{noun}_id"]',
        }
        if all(name in values for name in required):
            arguments = ", ".join(f"{name}={values[name]}" for name in dict.fromkeys([*required, "access_token"]))
            yield _cued(f"for {noun} in {plural(noun)}:\n    apis.{app}.{api}({arguments})", *api.split("_"))

    def _answers(self) -> Iterator[Statement]:
        counted = _COUNTED.match(self.question)
        if counted:
            yield _cued(f"apis.supervisor.complete_task(answer=len({plural(counted[1])}))", "many", counted[1])
        titled = _TITLED.match(self.question)
        if titled:
            shown = f'{titled[2]}["{titled[1]}"] for {titled[2]} in {plural(titled[2])}'
            yield _cued(f'apis.supervisor.complete_task(answer=", ".join(sorted({shown})))', titled[1], titled[2])
        extreme = re.search(r"the (\w+) of the (\w+) ([a-z]+)\b", self.question)
        if extreme and extreme[2] in _EXTREMES:
            (function, measure), noun = _EXTREMES[extreme[2]], extreme[3]
            key = f'key=lambda {noun}: {noun}["{measure}"]'
            yield _cued(f"{noun} = {function}({plural(noun)}, {key})", noun, extreme[2])
            yield _cued(f'apis.supervisor.complete_task(answer={noun}["{extreme[1]}"])', extreme[1], noun)


def _cued(code: str, *words: str) -> Statement:
    return replace(analysed(code), cues=frozenset(map(stem, words)), trust=_TRUST)


def named_apps(question: str, apps: Mapping[str, str]) -> tuple[str, ...]:
    """Apps that a task names or, where it names none, those whose description shares most words with it."""
    lowered = question.lower()
    named = [app for app in apps if app.replace("_", " ") in lowered]
    if named:
        return tuple(named)
    asked = stems_of(question)
    shared = {app: len(asked & stems_of(about)) for app, about in apps.items() if app != "supervisor"}
    most = max(shared.values(), default=0)
    return tuple(app for app, count in shared.items() if count == most > 0)[:1]
