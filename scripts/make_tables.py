"""Fill the paper's tables from finished runs: the same as ``ace-bench tables``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["tables", *sys.argv[1:]]))
