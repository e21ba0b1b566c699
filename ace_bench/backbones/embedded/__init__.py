"""The embedded backbone: a deterministic in-context reader."""

from ace_bench.backbones.embedded.backbone import EmbeddedBackbone

__all__ = ["EmbeddedBackbone"]
