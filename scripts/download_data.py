"""Download a task's official data: the same as ``ace-bench data``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["data", *sys.argv[1:]]))
