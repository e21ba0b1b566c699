"""The curator of a cheatsheet: it writes a whole new cheatsheet between tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.core.errors import RolloutFault
from ace_bench.core.method import Arena, ContextUpdate
from ace_bench.core.prompts import Sized, send_within_limit

ROLE = "curator"
_OPEN, _CLOSE = "<cheatsheet>", "</cheatsheet>"

Shown = TypeVar("Shown", bound=Sized)


def rewrite(  # noqa: PLR0913 - who asks whom for what
    cheatsheet: Cheatsheet,
    arena: Arena,
    *,
    template: str,
    session: str,
    shown: Shown,
    fields: Callable[[Shown], Mapping[str, Any]],
) -> ContextUpdate[Cheatsheet]:
    """Ask for a whole new cheatsheet; if there is none in the reply, the old one stays and an event says so.

    ``fields`` are the prompt's besides the cheatsheet; where a prompt is too long, they show less of ``shown``.
    """

    def send(part: Shown) -> str:
        own = {"cheatsheet": cheatsheet.text, "labels": arena.labels.value}
        return arena.lm(ROLE, session)(arena.prompts.render(template, {**own, **fields(part)})).text

    try:
        reply, dropped = send_within_limit(shown, send)
    except RolloutFault as error:
        fault = {"owner": error.fault.owner, "kind": error.fault.kind, "message": error.fault.message}
        return ContextUpdate(context=cheatsheet, events=({"event": "fault", "role": ROLE, **fault},))
    left_out = ({"event": "dropped_from_prompt", "role": ROLE, "items": dropped},) if dropped else ()
    text = between_tags(reply)
    if text is None:
        return ContextUpdate(
            context=cheatsheet, events=(*left_out, {"event": "kept", "reason": "no cheatsheet in the reply"})
        )
    new = cheatsheet.rewritten(text, count=arena.counter("generator"))
    return ContextUpdate(context=new, events=(*left_out, {"event": "rewritten", "tokens": new.tokens}))


def between_tags(reply: str) -> str | None:
    """Return what stands between the last pair of tags; ``None`` where a tag is missing or nothing is between them.

    A reply that was cut off lacks its closing tag, and would lose the end of the cheatsheet for good.
    """
    before, closed, _ = reply.rpartition(_CLOSE)
    _, opened, text = before.rpartition(_OPEN)
    return text.strip() or None if closed and opened else None
