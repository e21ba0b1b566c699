"""The commands that the project's pages print: in blocks marked ``bash``, and in code spans.

A comment in a block is prose: only its code spans are commands. A line that ends with a backslash goes on in the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.launching import ROOT

PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    "results/README.md",
    "CONTRIBUTING.md",
)
KINDS = {"bash", "text", "python", "dockerfile", "yaml", "json", "jinja", "toml"}
"""What a block may be marked as; only ``bash`` holds commands."""

_SETTING = re.compile(r"'?\+?[a-z_@]+(\.\w+)*=[^\s=]")
_PLACEHOLDER = re.compile(r"\.\.\.|<|\s[a-z]+\s|,\w+=")  # the last: values of an option such as --base
_SPAN = re.compile(r"`([^`]+)`")
_COMMENT = re.compile(r"(?:^|\s+)# .*$")
_PROGRAM = re.compile(r"(\.venv/bin/[\w-]+|python|pip|make|vllm|ray|wandb|docker|appworld|export) \S")

PLAYS_ENVIRONMENT = re.compile(r"python run\.py task=(inspect|verifiers) ")
"""Starts the commands that tests/tasks/environments/test_page.py runs."""


def commands(page: str) -> list[str]:
    """Return the commands of a page in their order, each once, with its lines joined."""
    return list(dict.fromkeys(_texts(page)))


def settings(page: str) -> list[str]:
    """Return the settings in code spans that are typed as they stand."""
    spans = (child.content for token in _tokens(page) for child in token.children or () if child.type == "code_inline")
    return [span for span in dict.fromkeys(spans) if _SETTING.match(span) and not _PLACEHOLDER.search(span)]


def unmarked(page: str) -> list[str]:
    """Return the blocks of which nothing says whether they hold commands."""
    odd = (token for token in _tokens(page) if token.type in ("code_block", "fence"))
    return [token.content for token in odd if token.info not in KINDS]


@cache  # a page is asked for some thirty times
def _tokens(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text(encoding="utf-8"))


def _texts(page: str) -> Iterator[str]:
    for token in _tokens(page):
        if token.type == "fence" and token.info == "bash":
            for line in re.sub(r"\s*\\\n\s*", " ", token.content).splitlines():
                comment = _COMMENT.search(line)
                if text := line[: comment.start() if comment else None].strip():
                    yield text
                yield from filter(_PROGRAM.match, _SPAN.findall(comment[0] if comment else ""))
        for child in token.children or ():
            if child.type == "code_inline" and _PROGRAM.match(child.content):
                yield child.content
