"""Saved contexts as text for system prompts of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ace_bench.contexts.base import ContextValue
from ace_bench.contexts.demonstrations import Demonstrations
from ace_bench.contexts.instruction import Instruction
from ace_bench.contexts.loading import load_context
from ace_bench.core.context import Context, HasBullets
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Sample

_NO_SAMPLE = Sample(id="", split="", inputs={"question": ""})


def load(path: str | Path) -> Context:
    """Load a saved context: a file in ``contexts/`` of a run, or a playbook in the official text format.

    Raises ``DataError`` that names the file and, if known, the line.
    """
    return load_context(path, sections=(), count=estimate_tokens)


def official_text(context: Context) -> str | None:
    """Return a playbook in the text format of the authors' code, with counters; ``None`` for other contexts."""
    return context.official_text() if isinstance(context, HasBullets) else None


def system_prompt(context: Context) -> str:
    """Return a context as part of a system prompt, between tags of its kind; "" if it is empty.

    A playbook is written by sections and without counters; one of text keeps its headings, also those without bullets.
    """
    if not context.size:
        return ""
    uses = _uses(context)
    return "\n\n".join(
        f"{uses[name]}\n\n<{name}>\n{text.strip()}\n</{name}>" for name, text in _parts(context).items() if text
    )


_USES = {
    "playbook": "Lessons from earlier work on similar tasks follow. Use the entries that fit the task; where an entry "
    "warns of a mistake, avoid it; leave the others aside.",
    "cheatsheet": "Notes from earlier work on similar tasks follow. Use what fits the task and leave the rest aside.",
    "instruction": "Follow this instruction.",
    "demonstrations": "Similar questions follow with their right answers. Learn from them.",
}


def _parts(context: Context) -> dict[str, str]:
    if isinstance(context, HasBullets):
        return {"playbook": context.prompt_text()}
    if isinstance(context, Instruction):
        examples = Demonstrations(items=context.demonstrations)
        return {"instruction": context.text, **(_parts(examples) if examples.size else {})}
    uses = _uses(context)
    return {name: text for name, text in context.render(_NO_SAMPLE).items() if name in uses}


def _uses(context: Context) -> Mapping[str, str]:
    return {**_USES, **context.uses} if isinstance(context, ContextValue) else _USES
