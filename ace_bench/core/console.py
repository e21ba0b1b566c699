"""The console that everything is printed to: rich's, which obeys no text that it prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import console
from rich.segment import Segment
from rich.text import Text

from ace_bench.core.terminal import COMMANDS, shown


class Console(console.Console):  # noqa: TID251 - it is what others use in its place
    """A console that neither obeys what it prints nor reads markup and emoji in it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **settings})

    def render_str(self, text: str, **settings: Any) -> Text:
        """Return a text that holds no command; cells of tables are measured after this."""
        return super().render_str(shown(text), **settings)

    def render(
        self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield segments without commands but rich's own."""
        for segment in super().render(renderable, options):
            is_safe = segment.control or not COMMANDS.search(segment.text)
            yield segment if is_safe else segment._replace(text=shown(segment.text))
