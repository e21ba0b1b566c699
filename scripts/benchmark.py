"""Measure the harness itself: the same as ``ace-bench benchmark``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
