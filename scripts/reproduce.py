"""Make the runs behind a table or figure of the paper: the same as ``ace-bench reproduce``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
