"""The modules of ``ace_bench.core`` that the engine's interpreter uses, too: they need the standard library only."""

import os
import sys

_PACKAGES = os.environ["ACE_BENCH_PACKAGES"]

sys.path.append(_PACKAGES)  # for these imports only: the folder's other packages are not for the engine
try:
    from ace_bench.core.confine import Bounds, adopt_orphans, confine, die_with_parent, libraries
    from ace_bench.core.scratch import clear
finally:
    sys.path.remove(_PACKAGES)

__all__ = ["Bounds", "adopt_orphans", "clear", "confine", "die_with_parent", "libraries"]
