"""How proposals are asked for and read: in DSPy's formats, by the rules that hold for all replies here.

DSPy's own JSON parser repairs any text, and takes minutes for a few thousand open braces.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import dspy
import msgspec
from dspy.utils.exceptions import AdapterParseError

from ace_bench.core.replies import parse


class JsonFormat(dspy.JSONAdapter):  # type: ignore[misc]
    """DSPy's JSON format."""

    def parse(self, signature: Any, completion: str) -> Mapping[str, str]:
        """Read the fields of a reply, all of them texts; raises ``AdapterParseError`` where they are not there."""
        try:
            return msgspec.structs.asdict(parse(completion, _fields(tuple(signature.output_fields))))
        except ValueError as error:
            raise AdapterParseError(
                adapter_name="JSONAdapter", signature=signature, lm_response=completion, message=str(error)
            ) from error


class ChatFormat(dspy.ChatAdapter):  # type: ignore[misc]
    """DSPy's chat format; a reply that does not have it is asked for once more, as JSON."""

    def _make_json_adapter_fallback(self) -> dspy.Adapter:
        return JsonFormat()


@cache
def _fields(names: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Fields", [(name, str) for name in names])
