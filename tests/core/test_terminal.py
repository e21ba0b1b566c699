"""What others wrote is shown on a terminal, and commands nothing there."""

import io
import logging

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ace_bench.core.console import Console
from ace_bench.core.terminal import LogFormatter, shown, write

HARMFUL = {
    "\x1b]52;c;eA==\x07": "\\x1b]52;c;eA==\\x07",
    "\x1b]8;;http://evil\x1b\\here": "\\x1b]8;;http://evil\\x1b\\here",
    "\x9b2J": "\\x9b2J",
    "a\rb\x08\x7f\0": "a\\rb\\x08\\x7f\\x00",
    "\u202eevil\u2066": "\\u202eevil\\u2066",
    "\u061c\u200f\u2028": "\\u061c\\u200f\\u2028",
    "\ud800": "\\ud800",
    "line\n\ttab": "line\n\ttab",
    "Zürich 東京 👩‍👩‍👧": "Zürich 東京 👩‍👩‍👧",
    "[red]no markup[/] :smile:": "[red]no markup[/] :smile:",
}


def printed(*renderables, **settings):
    file = io.StringIO()
    Console(file=file, width=100, **settings).print(*renderables)
    return file.getvalue()


@pytest.mark.parametrize("text", HARMFUL)
def test_a_text_is_shown_whatever_prints_it(text):
    expected, file = HARMFUL[text], io.StringIO()
    write(text, file)
    assert file.getvalue() == shown(text) == expected
    assert LogFormatter("%(message)s").format(logging.makeLogRecord({"msg": text})) == expected
    line = expected.replace("\t", " " * 8)
    assert printed(text).rstrip("\n") == line
    for dropped in ("\\x07", "\\x08", "\\r"):  # by rich, from texts of its own
        line = line.replace(dropped, "")
    assert printed(Text(text)).rstrip("\n") == line


def test_tables_stay_even_and_colours_stay():
    table = Table("name", title="[b]title\x1b[2J")
    table.add_row("\x1b[2J\u202e")
    table.add_row("plain")
    lines = printed(table).splitlines()
    assert "[b]title\\x1b[2J" in lines[0]
    assert len({len(line) for line in lines[1:]}) == 1
    assert "\x1b[31m" in printed("x", force_terminal=True) + printed(Text("red", style="red"), force_terminal=True)


def test_the_live_line_obeys_nothing():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    with Progress(TextColumn("{task.description}", markup=False), console=console) as bars:
        bars.add_task("\x1b]0;evil\x07[red]x")
    assert "\x1b]0;" not in file.getvalue()
    assert "\\x1b]0;evil[r" in file.getvalue()
