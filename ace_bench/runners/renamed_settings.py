"""Settings of earlier versions, each with what replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "method.playbook": "is gone: protocol=official learns the authors' text",
        "method.tags": "is gone: protocol=official counts tags round by round",
        "method.tagged": "is gone: protocol=official counts all tags",
        "method.curate": "is gone: protocol=official curates after every attempt on task=appworld",
        "method.replies": "is gone: protocol=official reads replies by the authors' rules",
        "method.step_number": "is gone: protocol=official counts the steps of the epoch",
        "method.after_curation": "is now method.measure_post_update, with protocol=official",
    }
)
"""Of keys that no chosen option has any more."""
