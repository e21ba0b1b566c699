"""llama.cpp's server as the package xllamacpp has it, with the options of ``llama-server`` that a launch uses.

    python llama_server.py --model FILE.gguf --port 8080

The package brings a compiled llama.cpp with the same HTTP API, but no program. This file runs without ace_bench.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> None:
    """Serve until the process is ended."""
    options = _read(arguments)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias or options.model}
    params.n_ctx = options.ctx_size
    params.n_parallel = options.parallel
    params.hostnames = [options.host]
    params.port = options.port
    params.endpoint_metrics = options.metrics
    if options.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    try:
        server = xllamacpp.Server(params)  # it serves from threads of its own as long as it is referred to
    except RuntimeError as error:  # its cause is in the log
        sys.exit(f"error: {error}")
    threading.Event().wait()
    del server


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="llama_server.py", allow_abbrev=False, description=__doc__)
    parser.add_argument("-hf", "--hf-repo")
    parser.add_argument("-m", "--model")
    parser.add_argument("-a", "--alias")
    parser.add_argument("-c", "--ctx-size", type=int, default=0)
    parser.add_argument("-np", "--parallel", type=int, default=1)
    parser.add_argument("-t", "--threads", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--metrics", action="store_true")
    options = parser.parse_args(arguments)
    if options.model is None:
        parser.error("unsupported option: -hf; this server reads GGUF files only, so give --model")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
