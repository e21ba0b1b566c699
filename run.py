"""Run one experiment: the same as ``ace-bench run``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
