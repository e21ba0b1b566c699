"""The embedded backbone: a deterministic in-context reader, in process or served over HTTP."""

from ace_rehearsal.reader.backbone import EmbeddedBackbone

__all__ = ["EmbeddedBackbone"]
