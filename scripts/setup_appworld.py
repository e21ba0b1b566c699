"""Set up AppWorld's engine and data: the same as ``ace-bench appworld``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["appworld", *sys.argv[1:]]))
