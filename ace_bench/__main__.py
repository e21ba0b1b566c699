"""``python -m ace_bench`` is the same as ``ace-bench``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
