"""Count the capitals of a split."""

from collections.abc import Sequence
from importlib.resources import files


def main(arguments: Sequence[str]) -> int:
    """Print how many there are."""
    lines = (files("capital_cities") / "samples" / f"{arguments[0]}.jsonl").read_text(encoding="utf-8").splitlines()
    print(f"{len(lines)} capitals")  # noqa: T201
    return 0
