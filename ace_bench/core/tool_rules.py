"""What an environment's tools do: rules that a task declares in its configuration (``configs/tools``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Text

Access = Literal["constant", "read", "open", "write"]


@dataclass(frozen=True, kw_only=True)
class ToolRule:
    """What the calls of some tools do and what is noted of them.

    ``call`` is the pattern of a dotted name in Python code, part by part: ``apis.*.show_*``, ``open().read``.
    ``action`` is a regular expression for a whole action in another language, such as SQL. A rule has one of the two.
    ``query`` is a regular expression that the arguments (or the action) must match as well; what its group ``query``
    matches, if it has one, is shown as the query. ``tool`` is the name to show, by default the name as called.

    ``access``: a ``constant`` call always gives the same output, a ``read`` until something is changed;
    ``open`` (a login) changes nothing and is not looked up; ``write`` may change anything.

    Findings are listed under ``category``, ``null`` for none. ``fact`` is a regular expression whose first groups are
    listed as what was found, after ``label``; without a match, the start of the output is.
    """

    access: Access
    category: Text | None
    call: Text | None = None
    action: Text | None = None
    query: Text | None = None
    tool: Text | None = None
    fact: Text | None = None
    label: Text | None = None

    def __post_init__(self) -> None:
        """Raise ``SettingError`` if the rule cannot be used."""
        if (self.call is None) == (self.action is None):
            raise SettingError("call must be set, or else action: a rule has one of the two")
        for name in ("action", "query", "fact"):
            pattern = getattr(self, name)
            try:
                groups = re.compile(pattern or "").groups
            except re.error as error:
                raise SettingError(f"{name}={pattern} must be a regular expression: {error}") from error
            if name == "fact" and pattern is not None and not groups:
                raise SettingError(f"fact={pattern} must have a group in round brackets: what is to be listed")

    @property
    def holds(self) -> bool:
        """Whether what such a call showed is worth remembering as known."""
        return self.access in ("constant", "read")

    def shown_query(self, text: str) -> str | None:
        """Return the query to show; ``None`` if the rule is not about such arguments."""
        if self.query is None:
            return text
        match = re.fullmatch(self.query, text, re.DOTALL)
        return None if match is None else match.groupdict().get("query") or text

    @cached_property
    def _parts(self) -> list[str]:
        return (self.call or "").split(".")

    def names(self, path: str) -> bool:
        """Whether a dotted name fits ``call``; ``*`` matches one name."""
        parts = path.split(".")
        return self.call is not None and len(parts) == len(self._parts) and all(map(fnmatchcase, parts, self._parts))


@dataclass(frozen=True, kw_only=True)
class ToolRules:
    """The tools of an environment. Of several rules that fit a call, the first counts.

    Shown names leave out ``prefix`` and shown queries the arguments ``hidden`` (an access token). An output that
    begins with ``failed`` is an error. One of more than ``whole_chars`` characters may have been cut by the environment
    and is not shown again. A call that fits no rule and is not plain Python may change anything.
    """

    prefix: Text | None
    hidden: Sequence[Text]
    failed: Text | None
    whole_chars: Count
    rules: Mapping[str, ToolRule]

    def rule_for(self, path: str, query: str) -> tuple[ToolRule, str] | None:
        """Return the rule of a call in Python and the query to show."""
        for rule in self.rules.values():
            shown_query = rule.shown_query(query) if rule.names(path) else None
            if shown_query is not None:
                return rule, shown_query
        return None

    def rule_of_action(self, action: str) -> tuple[str, ToolRule, str] | None:
        """Return the rule of an action that is not Python, with its name and the query to show."""
        for name, rule in self.rules.items():
            if rule.action is not None and re.fullmatch(rule.action, action, re.DOTALL):
                shown_query = rule.shown_query(action)
                if shown_query is not None:
                    return name, rule, shown_query
        return None

    def named(self, path: str) -> ToolRule | None:
        """Return the first rule whose pattern matches a dotted name. Arguments do not matter."""
        return next((rule for rule in self.rules.values() if rule.names(path)), None)

    @cached_property
    def roots(self) -> frozenset[str]:
        """Names in code through which tools are reached."""
        firsts = {(rule.call or "*").split(".")[0].removesuffix("()") for rule in self.rules.values()}
        return frozenset(name for name in firsts if not set(name) & set("*?["))

    def succeeded(self, output: str) -> bool:
        """Whether an output does not show that its action failed."""
        return self.failed is None or not output.lstrip().startswith(self.failed)
