"""Starts the command."""

import sys

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
