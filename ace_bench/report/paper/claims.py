"""The paper's claims as differences of cells, and where its numbers contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ace_bench.core.errors import DataError
from ace_bench.report.experiments import Experiments
from ace_bench.report.paper.rows import YamlModel, read_yaml
from ace_bench.report.paper.tables import DATA, Claim


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Cells by reference with their coefficients, which add up to 0."""

    cells: Mapping[str, float]
    relative_to: str = ""

    def value(self, numbers: Mapping[str, float]) -> float:
        """Compute it from the numbers of its cells."""
        total = sum(coefficient * numbers[ref] for ref, coefficient in self.cells.items())
        return 100 * total / numbers[self.relative_to] if self.relative_to else total


class PaperClaim(YamlModel, frozen=True, kw_only=True):
    """A row of the claims table: a ``claim`` of the text, or a difference of cells as in ``Claim``.

    ``primary`` claims are the family that is tested together. With ``within`` the claim is that the difference lies
    within that many points of 0. ``paper_claims`` adds the paper's number (``value``), the ``model`` whose runs it is
    about, and ``differences``: it is their mean, each the sum of ``cells`` times their coefficients. With
    ``relative_to`` in percent of that cell. Without differences it is a share: the ``metric`` of a cell's ``run``, in
    percent.
    """

    label: str
    than: str
    claim: str = ""
    section: str = ""
    gain: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    relative_to: str = ""
    primary: bool = False
    within: float | None = None
    run: str = ""
    metric: str = ""
    value: float = 0.0
    unit: str = ""
    model: str = ""
    differences: tuple[Difference, ...] = ()

    @property
    def family(self) -> str:
        """Which tests it is corrected with."""
        return "primary" if self.primary else "exploratory"


class Contradiction(YamlModel, frozen=True, kw_only=True):
    """A printed number that differs from the value recomputed by its ``rule`` by more than rounding.

    ``rule`` is ``mean``, ``ratio``, ``sum``, ``repeated`` (the same result is in another table), ``change`` (against
    the reference row), ``text`` (a claim of the text), ``highest`` (the text says so) or ``unit`` (``printed`` compares
    rollouts with calls, so that nothing can be recomputed).
    """

    cell: str
    rule: str
    printed: float
    recomputed: float | None = None

    def __str__(self) -> str:
        """The sentence for a table's notes."""
        if self.rule == "unit":
            return f"{self.cell}: its change, {self.printed:+g}%, compares calls with rollouts"
        if self.rule == "highest":
            return f"{self.cell}: by its text {self.printed:g} is the highest, and there is {self.recomputed:g}"
        return (
            f"{self.cell}: it prints {self.printed:.10g}, its other numbers give {self.recomputed:.10g} ({self.rule})"
        )


def known_contradictions() -> list[Contradiction]:
    """Read the contradictions that tables mention in their notes (``data/contradictions.yaml``)."""
    contradictions: list[Contradiction] = read_yaml(DATA.joinpath("contradictions.yaml"), list[Contradiction])
    return contradictions


def paper_claims(paper: Experiments) -> list[PaperClaim]:
    """Read the rows of the claims table (``data/claims_table.yaml``). Raises ``DataError``."""
    rows: list[PaperClaim] = read_yaml(DATA.joinpath("claims_table.yaml"), list[PaperClaim])
    return [_with_number(paper, row) for row in rows]


def _with_number(paper: Experiments, row: PaperClaim) -> PaperClaim:
    if row.claim:
        claim = paper.claim(row.claim)
        differences = [] if row.run else _differences(paper, claim)
        value, section, unit = claim.value, claim.section, claim.unit
    else:
        differences = [_difference(row.gain, row.over, row.relative_to)]
        numbers = {ref: paper.cell(ref).value or 0.0 for ref in (*row.gain, *row.over)}
        value, section = round(differences[0].value(numbers), 1), row.section
        unit = "percent" if row.relative_to else "points"
    cells = [row.run] if row.run else [ref for part in differences for ref in part.cells]
    models = {model for ref in cells if (model := paper.table(ref.split("/")[0]).model)}
    if len(models) != 1:
        raise DataError(f"claims_table.yaml: {row.than} is about the models {', '.join(sorted(models))}; give one")
    numbers_of_claim = {"value": value, "section": section, "unit": unit, "model": models.pop()}
    return replace(row, **numbers_of_claim, differences=tuple(differences))


def _differences(paper: Experiments, claim: Claim) -> list[Difference]:
    """Return the differences that a claim is the mean of. Those in points are joined to one."""
    if not claim.mean:
        return [_difference(claim.gain, claim.over, claim.relative_to)]
    parts = [part for ref in claim.mean for part in _differences(paper, paper.claim(ref))]
    if any(part.relative_to for part in parts):
        return parts
    joined: dict[str, float] = {}
    for part in parts:
        for ref, coefficient in part.cells.items():
            joined[ref] = joined.get(ref, 0.0) + coefficient / len(parts)
    return [Difference(cells=joined)]


def _difference(gain: Sequence[str], base: Sequence[str], relative_to: str) -> Difference:
    cells = {ref: 1 / len(gain) for ref in gain} | {ref: -1 / len(base) for ref in base}
    return Difference(cells=cells, relative_to=relative_to)
