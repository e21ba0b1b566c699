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
from typing import TYPE_CHECKING, Any, Literal

from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import require
from ace_bench.core.terminal import shown
from ace_bench.report.escaping import latex
from ace_bench.report.tables.results_index import Style, Width
from ace_bench.store.files import write_files

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is hard to see on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo", "--")
_MAX_LINE_WIDTH = 2.2
"""Points."""
MAX_SERIES = len(_COLOURS)
"""Maximum number of distinguishable series in one figure."""

_LEGEND_HANDLE, _LEGEND_LETTER = 0.6, 0.056
"""Inches that an entry of the legend takes beside its text, and for a letter."""
_LEGEND_LINE = 0.15
"""Inches of a line of the legend. Figures have room for two."""

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
"""LaTeX sets the text. A .pgf takes the font of the document that includes it."""
_INPUT = """% needs \\usepackage{{pgf}}
\\begin{{{kind}}}[tp]
\\centering
\\input{{{name}.pgf}}
\\caption{{{caption}}}
\\label{{fig:{name}}}
\\end{{{kind}}}
"""
_FONTS = {"paper": "\\usepackage{ae}", "paper_times": "\\usepackage[T1]{fontenc}\\usepackage{mathptmx}"}
"""These are outlines. Many machines have T1's usual fonts only as bitmaps (Type 3), which publishers refuse."""
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
        """How that title is printed."""
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
    """Return a look for each name. After ``MAX_SERIES`` names they repeat."""
    return {
        name: Look(
            colour=_COLOURS[index % MAX_SERIES],
            line=_LINES[index % len(_LINES)],
            marker=_MARKERS[index % MAX_SERIES],
            hatch=_HATCHES[index % MAX_SERIES],
            width=_MAX_LINE_WIDTH * (1 - 0.06 * (index % MAX_SERIES)),
        )
        for index, name in enumerate(names)
    }


@contextmanager
def styled(sheet: Sheet = SCREEN) -> Iterator[None]:
    """Apply the project's style inside the block. Raises ``ConfigError`` without its packages, or LaTeX for a paper."""
    require("drawing figures", "matplotlib", "pandas")
    if sheet.for_paper and which("pdflatex") is None:
        raise ConfigError(f"style={sheet.style} draws with LaTeX, and there is no pdflatex; install {_LATEX}")
    import matplotlib as mpl

    fonts = {**_PAPER, "pgf.preamble": _FONTS[sheet.style]} if sheet.for_paper else {}
    with mpl.rc_context({**_SETTINGS, **fonts}):
        yield


def new_figure(  # noqa: PLR0913 - what it shows, and its size
    title: str,
    sheet: Sheet = SCREEN,
    panels: int = 1,
    *,
    height: float,
    across: int = 0,
    sharey: bool | Literal["row"] = False,
    wide: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make a figure with ``panels``, ``across`` of them in a line (by default all), and return it with their axes.

    It is ``height`` inches high. In a column of a paper the panels stand below each other, each of that height. A
    ``wide`` figure takes a page of a paper, as a figure with several panels does. The first line of ``title`` says
    what the figure shows, the others are warnings and notes. ``save`` makes the caption of it.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width = sheet.width or ("page" if wide or panels > 1 else "column")
    column = sheet.for_paper and width == "column"
    across = 1 if column else across or panels
    lines = -(-panels // across)
    inches = height * (lines if column else 1) * (0.85 if sheet.for_paper else 1)
    figure = Figure(
        figsize=(sheet.inches(width), inches), layout=ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD), label=title
    )
    axes = list(figure.subplots(lines, across, squeeze=False, sharey=sharey).flat)
    for unused in axes[panels:]:
        unused.remove()
    figure.suptitle(sheet.title(title), wrap=True, **sheet.title_style)
    return figure, axes[:panels]


def add_legend(figure: Figure, note: str = "") -> Figure:
    """Put one legend of all axes' series under a figure and return it. ``note`` says what is not drawn."""
    from matplotlib.lines import Line2D

    handles: dict[str, Artist] = {}
    room = int((figure.get_figwidth() - _LEGEND_HANDLE) / _LEGEND_LETTER)
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault("\n".join(fill(line, room) for line in label.split("\n")), handle)
    if note:
        handles[note] = Line2D([], [], linestyle="")
    if handles:
        widest = max(len(line) for label in handles for line in label.splitlines())
        fitting = max(1, int(figure.get_figwidth() / (_LEGEND_HANDLE + _LEGEND_LETTER * widest)))
        lines = ceil(len(handles) / min(4, fitting))
        columns = ceil(len(handles) / lines)  # lines of similar length
        lines += sum(label.count("\n") for label in handles) // columns
        figure.set_figheight(figure.get_figheight() + _LEGEND_LINE * max(0, lines - 2))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
    return figure


def save(figure: Figure, stem: Path, sheet: Sheet = SCREEN) -> list[Path]:
    """Write a figure as PDF and PNG, or for a paper as PDF and PGF with its caption. Raises ``FileUnwritable``."""
    _change_words(figure, _inert if sheet.for_paper else shown)
    if sheet.for_paper:
        _leave_out_hatches(figure)
    files: dict[Path, str | bytes] = {}
    for suffix in ("pdf", "pgf" if sheet.for_paper else "png"):
        # Without a date the same runs give the same bytes.
        options: dict[str, Any] = {"metadata": {"CreationDate": None}} if suffix == "pdf" else {}
        drawn = StringIO() if suffix == "pgf" else BytesIO()
        figure.savefig(drawn, format=suffix, backend="pgf" if sheet.for_paper else None, **options)
        figure.set_layout_engine("none")  # the layout was computed for the first file
        files[stem.with_name(f"{stem.name}.{suffix}")] = drawn.getvalue()
    if sheet.for_paper:
        files[stem.with_name(f"{stem.name}.tex")] = latex_input(figure, stem.name)
    return write_files(files)


def latex_input(figure: Figure, name: str) -> str:
    """Return the LaTeX that puts a figure into a paper, by the ``name`` of its file. A wide one spans the columns."""
    kind = "figure" if figure.get_figwidth() == _INCHES["column"] else "figure*"
    return _INPUT.format(kind=kind, name=name, caption=latex(str(figure.get_label())))


def _inert(text: str) -> str:
    """Return words that do nothing in LaTeX."""
    return "\n".join(map(latex, text.split("\n")))


def _change_words(figure: Figure, change: Callable[[str], str]) -> None:
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

    for part in figure.findobj(Text):
        assert isinstance(part, Text)
        part.set_text(change(part.get_text()))
    for axis in (axis_of_figure for axes in figure.axes for axis_of_figure in (axes.xaxis, axes.yaxis)):
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FixedFormatter):
            axis.set_major_formatter(FixedFormatter([*map(change, formatter.seq)]))


def _leave_out_hatches(figure: Figure) -> None:
    """Leave out hatches, because LaTeX needs minutes for them."""
    from matplotlib.patches import Patch

    for part in figure.findobj(Patch):
        assert isinstance(part, Patch)
        part.set_hatch("")
