"""Workflows as a context: reusable routines with their steps (Agent Workflow Memory, arXiv 2409.07429)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from ace_bench.core.backbones import TokenCounter
from ace_bench.core.types import GeneratorSpec, Sample
from ace_bench.methods.field.attempts import MemoryValue
from ace_bench.playbook.bullets import clean, comparable

NO_WORKFLOWS = "(none)"
_SEPARATOR = "\n\n"


class Workflow(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A routine: its purpose and its steps in order, at least two. ``tokens`` is its length in a prompt.

    The bounds keep a reply that runs on from filling every later prompt.
    """

    title: Annotated[str, Meta(min_length=1, max_length=200)]
    description: Annotated[str, Meta(max_length=1_000)] = ""
    steps: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=8_000)], ...], Meta(min_length=2, max_length=30)
    ]
    tokens: int = 0

    @property
    def text(self) -> str:
        """The workflow as a prompt shows it."""
        steps = (f"{number}. {indent(step, '   ').lstrip()}" for number, step in enumerate(self.steps, start=1))
        return "\n".join(filter(None, (f"## {self.title}", self.description, *steps)))

    @cached_property
    def routine(self) -> tuple[str, ...]:
        """The steps without case and white space: workflows with equal ones are the same."""
        return tuple(map(comparable, self.steps))

    def measured(self, count: TokenCounter) -> Workflow:
        """Return the workflow with cleaned texts and its length in tokens, including the blank line after it."""
        cleaned = msgspec.structs.replace(
            self, title=clean(self.title), description=clean(self.description), steps=tuple(map(clean, self.steps))
        )
        return msgspec.structs.replace(cleaned, tokens=count(cleaned.text + _SEPARATOR))


@dataclass(frozen=True, kw_only=True)
class Workflows(MemoryValue):
    """All workflows in order of induction; every prompt shows all of them.

    ``solved`` are the successes so far as the inducer is shown them, where it is shown all of them each time.
    """

    items: tuple[Workflow, ...] = ()
    solved: tuple[str, ...] = ()

    kind = "workflows"
    generator = GeneratorSpec(template="workflows", answer_format="json")
    uses = MappingProxyType(
        {
            "workflows": "Routines from earlier work on similar tasks follow. Follow the steps of those that fit, with "
            "the task's own values for the names in curly braces."
        }
    )
    grows = "items"
    optional = "solved"

    def with_new(self, workflows: Iterable[Workflow]) -> Workflows:
        """Return the memory with the workflows added whose steps it does not have yet."""
        routines = {workflow.routine for workflow in self.items}
        added: dict[tuple[str, ...], Workflow] = {}
        for workflow in workflows:
            if workflow.routine not in routines:
                added.setdefault(workflow.routine, workflow)
        return self.changed(items=(*self.items, *added.values()))

    def render(self, sample: Sample) -> Mapping[str, str]:
        """Return the field ``workflows``, the same for every sample."""
        return {"workflows": _SEPARATOR.join(workflow.text for workflow in self.items) or NO_WORKFLOWS}
