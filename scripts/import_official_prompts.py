"""Make a prompt set from a checkout of the authors' code: the same as ``ace-bench prompts``."""

import sys

from ace_bench.cli.entry import main

if __name__ == "__main__":
    sys.exit(main(["prompts", *sys.argv[1:]]))
