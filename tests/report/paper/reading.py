"""What tables and figures show: the cells of written tables, and the points, bars and words of drawn figures."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Report:
    """A table as Markdown has it: the rows of its grids by the title of a grid, its notes and its commands."""

    grids: dict[str, list[list[str]]]
    notes: list[str]
    commands: list[str]

    def cells(self, *row: str) -> dict[str, str]:
        """Return the results of a row by column, each with what stands beside it: ``70.0 [60.1, 78.3] | 78.3 | -8.3``.

        Cells without a run are left out.
        """
        header, *rows = self.grids["Results"]
        (found,) = [one for one in rows if tuple(one[: len(row)]) == row]
        cells = dict[str, str]()
        for name, text in [*zip(header, found, strict=True)][len(row) :]:
            if name in ("paper", "ours - paper"):
                last = [*cells][-1]
                cells[last] += f" | {text}"
            else:
                cells[name] = text
        return {name: text for name, text in cells.items() if text.partition(" |")[0] not in ("-", "missing")}

    def line(self, grid: str, *row: str) -> str:
        """Return the rest of the line of a grid that begins with these words."""
        _, *rows = self.grids[grid]
        (found,) = [one for one in rows if tuple(one[: len(row)]) == row]
        return " | ".join(found[len(row) :])

    def statistics(self, *row: str) -> str:
        """Return what is behind a cell: samples, seeds, faults, spread, change, detectable, p-values, notes."""
        return self.line("Statistics behind the results", *row)

    def noted(self, text: str) -> bool:
        """Whether a note contains a text."""
        return any(text in note for note in self.notes)


def read_reports(text: str) -> dict[str, Report]:
    """Read tables in Markdown by their titles."""
    found = {}
    for part in f"\n{text}".split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        body, _, commands = rest.partition("\n```\n")
        grids = {}
        for grid in body.split("\n### ")[1:]:
            name, _, lines = grid.partition("\n")
            rows = [
                [cell.strip() for cell in line[2:-2].split(" | ")] for line in lines.splitlines() if line[:1] == "|"
            ]
            grids[name] = [rows[0], *rows[2:]]
        notes = [line[2:] for line in body.splitlines() if line.startswith("- ")]
        found[title] = Report(grids, notes, commands.partition("\n```")[0].splitlines())
    return found


def points(axis: Axes) -> dict[str, list[list[float]]]:
    """Return the points of the named lines, bars and error bars of an axis, rounded."""
    found = {line.get_label(): line.get_xydata() for line in axis.lines if not line.get_label().startswith("_")}
    found |= {bars.get_label(): bars[0].get_xydata() for bars in axis.containers if hasattr(bars, "lines")}
    return {name: [[round(float(value), 1) for value in point] for point in some] for name, some in found.items()}


def bars(axis: Axes) -> dict[str, list[float]]:
    """Return the heights of the bars of an axis by name."""
    found = {}
    for one in axis.containers:
        if not hasattr(one, "lines"):
            found.setdefault(one.get_label(), []).extend(round(float(bar.get_height()), 1) for bar in one)
    return found


def texts(figure: Figure) -> list[str]:
    """Return the title, the legend and the words in a figure."""
    legend = [text.get_text() for one in figure.legends for text in one.get_texts()]
    return [figure.get_suptitle(), *legend, *(text.get_text() for axis in figure.axes for text in axis.texts)]
