"""Draw the paper's figures from finished runs: the same as ``ace-bench figures``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["figures", *sys.argv[1:]]))
