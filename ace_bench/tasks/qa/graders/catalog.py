"""The graders by name, each with the metric that heads tables and what a model is asked to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ace_bench.core.errors import SettingError
from ace_bench.tasks.qa.graders.functions import PREFIX, by_function, load_function
from ace_bench.tasks.qa.graders.judge import judged
from ace_bench.tasks.qa.graders.key import MakeKey
from ace_bench.tasks.qa.graders.numbers import Tolerance, numeric
from ace_bench.tasks.qa.graders.options import choice
from ace_bench.tasks.qa.graders.structures import json_equal
from ace_bench.tasks.qa.graders.texts import Ignore, contains, exact, f1, regex

JUDGE = "judge"

_ASKED = "Answer the question. Give the answer alone."
_FORMS = {
    "numeric": "Answer the question with one number.",
    "choice": "Choose the right option. Answer with its letter.",
    "json": "Answer the question with JSON and nothing else.",
}


@dataclass(frozen=True, kw_only=True)
class GraderKind:
    """``make`` makes the key of a question; ``checksums`` are those of the code that grades, if it is the user's."""

    make: MakeKey
    headline: str
    instruction: str
    checksums: Mapping[str, str] = field(default_factory=dict)


def grader_named(name: str, *, ignore: Ignore, tolerance: Tolerance) -> GraderKind:
    """Return a grader; raises ``SettingError`` for an unknown one, or for a function that cannot be imported."""
    if name.startswith(PREFIX):
        function, checksums = load_function(name)
        return GraderKind(make=by_function(function, name), headline="score", instruction=_ASKED, checksums=checksums)
    kinds: Mapping[str, MakeKey] = {
        "exact": exact(ignore),
        "numeric": numeric(tolerance),
        "choice": choice(ignore),
        "contains": contains(ignore),
        "regex": regex,
        "f1": f1,
        "json": json_equal,
        JUDGE: judged,
    }
    if name not in kinds:
        raise SettingError(f"grader={name} must be one of {', '.join(kinds)}, or {PREFIX}MODULE.FUNCTION")
    return GraderKind(
        make=kinds[name], headline="f1" if name == "f1" else "accuracy", instruction=_FORMS.get(name, _ASKED)
    )
