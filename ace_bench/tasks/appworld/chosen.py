"""Tasks that a user chose instead of a whole split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Text


@dataclass(frozen=True, kw_only=True)
class ChosenTasks:
    """Ids by split: a list, or a file with one id a line; ``None`` for the whole split."""

    train: Sequence[Text] | Text | None
    val: Sequence[Text] | Text | None
    test: Sequence[Text] | Text | None

    def of(self, split: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of a split in the order given; raises ``SettingError`` for one that is not in ``known``."""
        given: Sequence[str] | str | None = getattr(self, split)
        if given is None:
            return tuple(known)
        place = f"ids.{split}"
        ids = tuple(_lines(given, place) if isinstance(given, str) else given)
        if not ids:
            raise SettingError(f"{place} holds no ids: give some, or null for the whole split")
        wrong = next((one for place, one in enumerate(ids) if one not in known or one in ids[:place]), None)
        if wrong is not None:
            problem = "twice" if wrong in known else "which is not a task of this split"
            raise SettingError(f"{place} holds {wrong}, {problem}; the split has {', '.join(known[:3])} and so on")
        return ids


def _lines(path: str, place: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{place}={path} cannot be read ({error}): give a list of ids or a file of them") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
