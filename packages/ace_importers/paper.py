"""Say which words of an imported prompt set are in the paper's appendix, figure by figure.

    ace-bench prompts check my_prompts --paper paper.txt --at-least 95

The paper's text is yours, such as pdftotext makes of its PDF. Words are compared in order, without signs, case and
places to fill. Where a figure leaves a part out, by a line in brackets, the prompt's words are counted apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from jinja2 import ChainableUndefined, Environment
from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.core.errors import DataError
from ace_bench.store.authors_code import read_imported

FIGURES: Mapping[int, str] = MappingProxyType(
    {6: "agent/base.j2", 7: "qa/cheatsheet.j2", 8: "", 9: "agent/generator.j2", 10: "agent/reflector.j2"}
    | {11: "agent/curator.j2", 12: "qa/generator.j2", 13: "qa/reflector.j2", 14: "qa/curator.j2"}
)
"""The file of each figure: of figure 7 its part about the cheatsheet; figure 8 was written by GEPA."""
_START = re.compile(r"^\W*(?:F\W+)?P\s?ROMPTS\W*$", re.MULTILINE)
_CAPTION = re.compile(r"^\W*Figure\s+(\d+)\s*[:.].*", re.MULTILINE)
_MARKS = re.compile(r"\{+\s*[\w.\\]*\s*\}+|^```\w+$|^(?:USER|ASSISTANT):$|(?<=[a-z])[-\u00ad]\n(?=[a-z])", re.MULTILINE)
_LEFT_OUT = re.compile(r"^\s*\[[^\]\n]+\]\s*$", re.MULTILINE)
_GAP = "…"
_WORD = re.compile(rf"[^\W_]+|{_GAP}")


class Comparison(NamedTuple):
    """How many words are ``equal``, of how many of the ``prompt`` and the ``figure``, and both sides' differences.

    ``left_out`` further words of the prompt stand where the figure leaves a part out.
    """

    equal: int
    prompt: int
    figure: int
    left_out: int
    differences: Sequence[tuple[str, str]]


class _Empty(ChainableUndefined):
    def __call__(self, *_: Any, **__: Any) -> str:  # type: ignore[override]
        return ""


def read_figures(paper: Path) -> Mapping[int, str]:
    """Return the text before each caption of the appendix; raises ``DataError`` if there is none."""
    try:
        text = unicodedata.normalize("NFKC", paper.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{paper} cannot be read as a text: {error}") from error
    parts = _CAPTION.split(_START.split(text)[-1])  # what stands before each caption, and its number
    found = {int(number): before for before, number in zip(parts[::2], parts[1::2], strict=False)}
    if not found.keys() & FIGURES.keys():
        raise DataError(f"{paper} has no line that begins with 'Figure 9:' or the like; is it the text of the paper?")
    return found


def compare(template: str, figure: str) -> Comparison:
    """Compare a template, with empty fields and as with ground truth, with the text of a figure."""
    filled = Environment(undefined=_Empty, autoescape=False).from_string(template)  # plain text, not HTML
    ours, theirs = _words(filled.render(gold="{}", labels="gold", correct=None)), _words(_LEFT_OUT.sub(_GAP, figure))
    equal, left_out, differences = 0, 0, []
    for what, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        equal += (b - a) * (what == "equal")
        left_out += (b - a) * (_GAP in theirs[c:d])
        if what != "equal" and _GAP not in theirs[c:d]:
            differences.append((" ".join(ours[a:b]), " ".join(theirs[c:d])))
    return Comparison(equal, len(ours) - left_out, len(theirs) - theirs.count(_GAP), left_out, differences)


def _words(text: str) -> list[str]:
    return _WORD.findall(_MARKS.sub("", text).casefold())


def main(arguments: Sequence[str]) -> int:
    """Print the comparison; the exit code is 1 if a prompt has a smaller share of the paper's words than asked for."""
    parser = Parser("prompts check", __doc__)
    parser.add_argument("folder", type=Path, help="an imported set")
    parser.add_argument("--paper", type=Path, required=True, metavar="FILE", help="the paper as a text file")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="the smallest share to accept")
    parser.add_argument("--differences", type=int, default=3, metavar="N", help="differences to list (default: 3)")
    options = parser.parse_args(arguments)
    if (imported := read_imported(options.folder)) is None:
        raise DataError(f"{options.folder} was not made by `ace-bench prompts`: name a folder that was")
    figures = read_figures(options.paper)
    say = partial(Console().print, markup=False, highlight=False, soft_wrap=True)
    shares = []
    for number, name in FIGURES.items():
        if name not in imported.files or number not in figures:
            missing = f"{name} was not imported" if name else "written by GEPA, in no checkout"
            say(f"figure {number}: {missing if number in figures else 'not in the text'}")
            continue
        equal, prompt, figure, left_out, differences = compare(
            (options.folder / name).read_text("utf-8"), figures[number]
        )
        shares.append(100 * equal / max(1, prompt))
        apart = f" and {left_out:,} that the figure leaves out" * bool(left_out)
        say(f"figure {number}: {shares[-1]:5.1f}% of {name} is the paper's ({equal:,} of {prompt:,} words{apart}), "
            f"{100 * equal / max(1, figure):5.1f}% of the figure is in it")  # fmt: skip
        for ours, theirs in differences[: options.differences]:
            say(f"    prompt: {ours or '-'}\n    paper:  {theirs or '-'}")
    return int(min(shares, default=-1.0) < options.at_least)
