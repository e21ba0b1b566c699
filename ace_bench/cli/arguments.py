"""The command lines of all commands but ``run``, which is Hydra's, and the lines and columns that they print."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from ace_bench.core.program import command_line
from ace_bench.core.terminal import write

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

_MISTAKE, _MOST_DIGITS = 2, 9
DIFFERENCES = "compare all numbers with the paper's, even those measured in another setting"
LOOKS = "looks at the results in all, while seeds are added"
"""Help of options that several commands have."""


class HelpFormatter(argparse.HelpFormatter):
    """Keeps a description's paragraphs and lists, within the terminal's width."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.strip().split("\n\n")
        filled = ("\n".join(_fill_block(block.splitlines(), width)) for block in blocks)
        return textwrap.indent("\n\n".join(filled), indent)


def _fill_block(lines: list[str], width: int) -> Iterator[str]:
    """Yield the lines of a paragraph, or of a list of commands, which is indented and has no prose."""
    if not lines[0].startswith(" "):
        yield from textwrap.wrap(" ".join(lines), width)
    elif all(len(line) <= width for line in lines):
        yield from lines
    else:
        for line in lines:
            yield from _fold_command(line, width)


def _fold_command(line: str, width: int) -> Iterator[str]:
    """Yield a command over several lines, as a shell takes it, and below it the comment that stood beside it."""
    command, *comments = re.split(r" {3,}", line.strip())
    folded = textwrap.wrap(command, width - 6, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    yield textwrap.indent(" \\\n".join(folded), "    ")
    yield from textwrap.wrap(" ".join(comments), width, initial_indent=" " * 8, subsequent_indent=" " * 8)


class Parser(argparse.ArgumentParser):
    """Prints a long description; an error is one sentence, with the closest option if there is one."""

    def __init__(self, command: str, description: str | None) -> None:
        super().__init__(
            prog=command_line(command),
            description=(description or "").replace(f"ace-bench {command}", command_line(command)),
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Exit with one sentence."""
        unknown = re.search(r"unrecognized arguments: (-[^\s=]+)", message)
        hint = ""
        if unknown is not None:
            close = get_close_matches(unknown[1], self._option_string_actions, n=1)
            message = f"there is no option {unknown[1]}"
            hint = f"; did you mean {close[0]}?" if close else ""
        write(f"error: {message}{hint or f'; `{self.prog} --help` lists the options'}\n", sys.stderr)
        sys.exit(_MISTAKE)


def count(text: str) -> int:
    """Read an argument that is a whole number, 1 or more."""
    if not text.isdecimal() or not text.strip("0"):
        raise argparse.ArgumentTypeError(f"{text} must be a whole number, 1 or more")
    if len(text.lstrip("0")) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f"{text[:80]} must be at most {'9' * _MOST_DIGITS}")
    return int(text)


def print_line(text: object, style: str = "") -> None:
    """Print a text as it is; one with a ``style``, such as a warning, goes to the standard error output."""
    from ace_bench.core.console import Console

    Console(stderr=bool(style)).print(str(text), style=style, markup=False, highlight=False, soft_wrap=True)


def add_column(table: Table, heading: str, *, justify: JustifyMethod = "left") -> None:
    """Add a column that is at least as wide as the longest word of its heading; long cells are folded."""
    longest = max(map(len, heading.split()), default=1)
    table.add_column(heading, justify=justify, overflow="fold", min_width=longest)
