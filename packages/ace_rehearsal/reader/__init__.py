"""The embedded backbone: a deterministic in-context reader."""

from ace_rehearsal.reader.backbone import EmbeddedBackbone

__all__ = ["EmbeddedBackbone"]
