"""Prepare a run for AppWorld's leaderboard: the same as ``ace-bench leaderboard``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["leaderboard", *sys.argv[1:]]))
