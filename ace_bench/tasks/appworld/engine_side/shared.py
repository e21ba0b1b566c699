"""What the engine's interpreter shares with the harness: modules of ``ace_bench.core`` without dependencies."""

import os
import sys

_PACKAGES = os.environ["ACE_BENCH_PACKAGES"]

sys.path.append(_PACKAGES)  # last, and for these imports only: what lies there was not installed for the engine
try:
    from ace_bench.core.confine import Bounds, adopt_orphans, confine, die_with_parent, libraries
    from ace_bench.core.scratch import clear
finally:
    sys.path.remove(_PACKAGES)

__all__ = ["Bounds", "adopt_orphans", "clear", "confine", "die_with_parent", "libraries"]
