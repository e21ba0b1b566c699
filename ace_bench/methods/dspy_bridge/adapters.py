"""DSPy's prompt formats with this project's parser for replies.

DSPy's own JSON parser takes minutes for a text with a few thousand open braces.
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
        """Read the fields of a reply, all of them texts; raises ``AdapterParseError`` if one is missing."""
        try:
            return msgspec.structs.asdict(parse(completion, _fields(tuple(signature.output_fields))))
        except ValueError as error:
            raise AdapterParseError(
                adapter_name="JSONAdapter", signature=signature, lm_response=completion, message=str(error)
            ) from error


class ChatFormat(dspy.ChatAdapter):  # type: ignore[misc]
    """DSPy's chat format; if a reply does not follow it, DSPy asks once more, for JSON."""

    def _make_json_adapter_fallback(self) -> dspy.Adapter:
        return JsonFormat()


@cache
def _fields(names: tuple[str, ...]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Fields", [(name, str) for name in names])
