"""Check a task's data and grade its gold answers: the same as ``ace-bench check``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
