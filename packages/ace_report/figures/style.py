"""The style of figures: colours for colour-blind readers, markers and hatches for black-and-white print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, StringIO
from math import ceil
from pathlib import Path
from shutil import which
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_bench.core.terminal import shown
from ace_bench.report.escaping import latex
from ace_bench.store.files import write_files
from ace_report.tables.results_index import Style, Width

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

# Okabe and Ito's palette without its yellow, which is hard to see on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "--")
_MAX_LINE_WIDTH = 2.2
"""Points."""
MAX_SERIES = len(_COLOURS)
"""Maximum number of distinguishable series in one figure."""

_MIN_Y_RANGE = 10.0
"""Smallest y-range of scores, in percentage points."""

_LOG_SPAN, _NARROW, _MAX_TICKS, _LARGE = 30, 5, 8, 10_000
_LEGEND_HANDLE, _LEGEND_LETTER = 0.6, 0.056
"""Inches that an entry of the legend takes beside its text, and for a letter."""
_LEGEND_LINE = 0.15
"""Inches of a line of the legend; figures have room for two."""

GREY = "#666666"
_PAD = 0.06
_INCHES = {"": 6.75, "page": 6.8, "column": 3.3}
"""The width of a figure on a screen, and of text in a paper."""

_SETTINGS: Mapping[Any, Any] = MappingProxyType(
    {
        "font.size": 8,
        "axes.titlesize": 8,
        "figure.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.4,
        "lines.markersize": 5,
        "hatch.linewidth": 0.5,
        "legend.frameon": False,
        "legend.fontsize": 7,
        "pdf.fonttype": 42,
        "savefig.dpi": 200,
        "text.parse_math": False,  # names of models and settings are not formulas
    }
)


_PAPER: Mapping[Any, Any] = MappingProxyType(
    {"font.family": "serif", "pgf.texsystem": "pdflatex", "pgf.rcfonts": False, "lines.linewidth": 1.0}
)
"""LaTeX sets the text; a .pgf takes the font of the document that includes it."""
_INPUT = """% needs \\usepackage{{pgf}}
\\begin{{{kind}}}[tp]
\\centering
\\input{{{name}.pgf}}
\\caption{{{caption}}}
\\label{{fig:{name}}}
\\end{{{kind}}}
"""
_TIMES = "\\usepackage{mathptmx}"
_LATEX = "texlive-latex-base, texlive-latex-recommended, texlive-pictures and, for Times, texlive-fonts-recommended"


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What figures are drawn for: a screen, or a ``width`` of a paper ("" is what fits) in one of two fonts."""

    style: Style = "screen"
    width: Width = ""

    @property
    def for_paper(self) -> bool:
        """Whether LaTeX sets the text, and a caption takes the place of the title."""
        return self.style != "screen"

    def inches(self, width: Width) -> float:
        """Return the width of a figure."""
        return _INCHES[width if self.for_paper else ""]

    def title(self, title: str) -> str:
        """Return what stands above a figure: in a paper only a warning in brackets."""
        return "\n".join(line for line in title.split("\n") if not self.for_paper or line.startswith("["))

    @property
    def title_style(self) -> dict[str, Any]:
        """How that is printed."""
        return {"fontsize": 6, "color": GREY} if self.for_paper else {}


SCREEN = Sheet()


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one series is drawn. Later series are thinner, so that a series below them stays visible."""

    colour: str
    line: str
    marker: str
    hatch: str
    width: float


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look for each name; after ``MAX_SERIES`` names they repeat."""
    return {
        name: Look(
            colour=_COLOURS[place % MAX_SERIES],
            line=_LINES[place % len(_LINES)],
            marker=_MARKERS[place % MAX_SERIES],
            hatch=_HATCHES[place % MAX_SERIES],
            width=_MAX_LINE_WIDTH * (1 - 0.06 * (place % MAX_SERIES)),
        )
        for place, name in enumerate(names)
    }


@contextmanager
def styled(sheet: Sheet = SCREEN) -> Iterator[None]:
    """Apply the project's style inside the block; raises ``ConfigError`` without matplotlib, or LaTeX for a paper."""
    require("drawing figures", "matplotlib")
    if sheet.for_paper and which("pdflatex") is None:
        raise ConfigError(f"style={sheet.style} draws with LaTeX, and there is no pdflatex; install {_LATEX}")
    import matplotlib as mpl

    preamble = "\\usepackage[T1]{fontenc}" + _TIMES * (sheet.style == "paper_times")
    with mpl.rc_context({**_SETTINGS, **(_PAPER if sheet.for_paper else {}), "pgf.preamble": preamble}):
        yield


def canvas(rows: int, columns: int, size: tuple[float, float], **kwargs: Any) -> tuple[Figure, list[Axes]]:
    """Make a figure of a width and height in inches, and its axes, line by line."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD))
    return figure, list(figure.subplots(rows, columns, squeeze=False, **kwargs).flat)


def percent_axis(axis: Axes) -> None:
    """Enforce a minimum y-range, so that noise is not exaggerated where all scores are close."""
    low, high = axis.get_ylim()
    if high - low < _MIN_Y_RANGE:
        bottom = max((low + high - _MIN_Y_RANGE) / 2, -0.05 * _MIN_Y_RANGE)
        axis.set_ylim(bottom, bottom + _MIN_Y_RANGE)


def count_axis(axis: Axes) -> None:
    """Tick whole numbers along x."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))


def number_axis(axis: Axes, values: Sequence[float]) -> None:
    """Tick the values of x, sorted, with a logarithmic scale if they span more than a factor of 30."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if _spans_much(values):
        axis.set_xscale("log")
        axis.xaxis.set_minor_locator(NullLocator())
    every = max(1, ceil(len(values) / _MAX_TICKS))
    axis.xaxis.set_major_locator(FixedLocator(list(values[::every])))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _spans_much(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LOG_SPAN


def cost_axis(axis: Axes, smallest: float) -> None:
    """Scale x logarithmically, but linearly up to the smallest cost, so that zero can be shown; label 1, 2, 5, 10."""
    from matplotlib.ticker import NullLocator, SymmetricalLogLocator

    axis.set_xscale("symlog", linthresh=smallest)
    high = axis.get_xlim()[1]
    subs = [1.0, 2.0, 5.0] if high / smallest < _LOG_SPAN else [1.0]
    axis.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=smallest, subs=subs))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(_amounts(high))


def log_axis(axis: Axes) -> None:
    """Scale x logarithmically, without room for zero; label 1, 2, 5, 10."""
    axis.set_xscale("log")
    _tick_decades(axis.xaxis, axis.get_xlim())


def amount_axis(axis: Axes, values: Sequence[float]) -> None:
    """Scale y logarithmically if its values span more than a factor of 30; write large ones with a unit: 50k, 1.5M."""
    if _spans_much(values):
        axis.set_yscale("log")
        _tick_decades(axis.yaxis, values)
    axis.yaxis.set_major_formatter(_amounts(max(values)))


def _tick_decades(axis: Axis, values: Sequence[float]) -> None:
    """Label 1, 2, 5, 10 of few decades, 1, 10 of many, and even steps where the span holds too few of these."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    span = max(values) / min(values)
    decades = LogLocator(base=10, subs=(1.0, 2.0, 5.0) if span < _LOG_SPAN**2 else (1.0,))
    axis.set_major_locator(MaxNLocator(nbins=4) if span < _NARROW else decades)
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(_amounts(max(values)))


def _amounts(largest: float) -> Formatter:
    from matplotlib.ticker import EngFormatter, FuncFormatter

    return EngFormatter(sep="") if largest >= _LARGE else FuncFormatter(lambda value, _: f"{value:,.10g}")


def size_axis(axis: Axes) -> None:
    """Start y just below 0, so that markers at 0 are visible, and reach at least 1."""
    top = max(1.0, axis.get_ylim()[1])
    axis.set_ylim(-0.03 * top, top)


def legend_below(figure: Figure, axes: Sequence[Axes], more: str = "") -> None:
    """Put one legend of all axes' series under the figure; it ends with ``more``, what is not drawn."""
    from matplotlib.lines import Line2D

    found: dict[str, Artist] = {}
    room = int((figure.get_figwidth() - _LEGEND_HANDLE) / _LEGEND_LETTER)
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault("\n".join(fill(line, room) for line in label.split("\n")), handle)
    if more:
        found[more] = Line2D([], [], linestyle="")
    if found:
        widest = max(len(line) for label in found for line in label.splitlines())
        fitting = max(1, int(figure.get_figwidth() / (_LEGEND_HANDLE + _LEGEND_LETTER * widest)))
        lines = ceil(len(found) / min(4, fitting))
        columns = ceil(len(found) / lines)  # lines of similar length
        lines += sum(label.count("\n") for label in found) // columns
        figure.set_figheight(figure.get_figheight() + _LEGEND_LINE * max(0, lines - 2))
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def save(figure: Figure, stem: Path, sheet: Sheet = SCREEN, caption: str = "") -> list[Path]:
    """Write a figure as PDF and PNG, for a paper as PDF and PGF with its ``caption``; raises ``FileUnwritable``."""
    _change_words(figure, _inert if sheet.for_paper else shown)
    if sheet.for_paper:
        _leave_out_hatches(figure)
    files: dict[Path, str | bytes] = {}
    for suffix in ("pdf", "pgf" if sheet.for_paper else "png"):
        # Without a date the same runs give the same bytes.
        how: dict[str, Any] = {"metadata": {"CreationDate": None}} if suffix == "pdf" else {}
        drawn = StringIO() if suffix == "pgf" else BytesIO()
        figure.savefig(drawn, format=suffix, backend="pgf" if sheet.for_paper else None, **how)
        figure.set_layout_engine("none")  # the layout was computed for the first file
        files[stem.with_name(f"{stem.name}.{suffix}")] = drawn.getvalue()
    if sheet.for_paper:
        files[stem.with_name(f"{stem.name}.tex")] = latex_input(figure, stem.name, caption)
    return write_files(files)


def latex_input(figure: Figure, name: str, caption: str) -> str:
    """Return what a paper takes a figure with, by the ``name`` of its file; one as wide as a page spans the columns."""
    kind = "figure" if figure.get_figwidth() == _INCHES["column"] else "figure*"
    return _INPUT.format(kind=kind, name=name, caption=latex(caption))


def _inert(words: str) -> str:
    """Return words that do nothing in LaTeX."""
    return "\n".join(map(latex, words.split("\n")))


def _change_words(figure: Figure, change: Callable[[str], str]) -> None:
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    for part in figure.findobj(Text):
        assert isinstance(part, Text)
        part.set_text(change(part.get_text()))
    for axis in (one for axes in figure.axes for one in (axes.xaxis, axes.yaxis)):
        named = axis.get_major_formatter()
        if isinstance(named, FixedFormatter):
            axis.set_major_formatter(FixedFormatter([*map(change, named.seq)]))


def _leave_out_hatches(figure: Figure) -> None:
    """Leave out hatches, which take LaTeX minutes."""
    from matplotlib.patches import Patch

    for part in figure.findobj(Patch):
        assert isinstance(part, Patch)
        part.set_hatch("")
