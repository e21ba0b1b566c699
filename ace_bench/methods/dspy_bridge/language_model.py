"""The arena's language models as DSPy sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dspy
from dspy.lm15 import Message as Part
from dspy.lm15 import Request, Response, TextPart, Usage

from ace_bench.core.backbones import Lm
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Message
from ace_bench.methods.dspy_bridge.exceptions import through_dspy


class _Engine:
    """Sends DSPy's requests as counted calls.

    The backbone's own sampling settings apply: DSPy's temperature and rollout ids are not passed on. Usage is not
    reported to DSPy, because the run has counted it.
    """

    def __init__(self, lm: Lm):
        self._lm = lm

    def complete(self, request: Request) -> Response:
        with through_dspy():
            reply = self._ask(request)
        if isinstance(reply, RolloutFault):
            raise reply  # a failed proposal, which the optimiser handles
        message = Part.assistant([TextPart(reply)])
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=Usage())

    def _ask(self, request: Request) -> str | RolloutFault:
        try:
            return self._lm(_messages(request)).text
        except RolloutFault as fault:
            return fault

    def stream(self, request: Request) -> Iterator[Any]:
        raise NotImplementedError

    def close(self) -> None:
        pass


def _messages(request: Request) -> list[Message]:
    system = request.system if isinstance(request.system, str | None) else "".join(p.text for p in request.system)
    head = [Message(role="system", content=system)] if system else []
    return [*head, *(Message(role=part.role, content=part.text or "") for part in request.messages)]


def language_model(role: str, lm: Lm) -> dspy.LM:
    """Return a role's backbone as a DSPy model, without DSPy's cache and retries: the run has its own."""
    return dspy.LM(f"ace-bench/{role}", engine=_Engine(lm), cache=False, num_retries=0)
