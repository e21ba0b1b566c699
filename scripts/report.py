"""Write runs as one HTML page: the same as ``ace-bench report``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["report", *sys.argv[1:]]))
