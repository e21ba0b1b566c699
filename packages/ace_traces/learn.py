"""Learn a playbook from traces of agents: logs of Inspect AI, OpenTelemetry spans, chats as JSONL.

    ace-bench learn logs/ --out playbook.json
    ace-bench learn chats.jsonl backbone=openai_compatible backbone.model=MODEL budget.usd=2 --dry-run
    ace-bench learn spans.jsonl method.initial=playbook.json task.score=Relevance

Nothing is attempted again: the Reflector and the Curator learn from what the agents did, and from the scores and
feedback in the files. The run is an ordinary one in results/learn (task=traces mode=online), and KEY=VALUE are its
settings. The same command again continues it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.contexts.loading import load, save_context
from ace_bench.core.errors import ConfigError
from ace_bench.report.planned import override_value
from ace_bench.runners.host import reporting
from ace_bench.runners.identifying import compose_run
from ace_bench.runners.run import run
from ace_bench.store.processes import command_of

_STREAM = {"mode": "online", "mode.shuffle": "false", "mode.before": "false"}  # each attempt once, in its order
_SETTINGS = {"task": "traces", "method": "ace", "name": "learn", **_STREAM}


def main(arguments: Sequence[str]) -> int:
    """Make or continue the run; return the exit status of ``runners.run.RunEnd``."""
    parser = Parser("learn", __doc__)
    parser.add_argument("words", nargs="+", metavar="TRACES|KEY=VALUE", help="files or folders of traces, and settings")
    parser.add_argument("--dry-run", "--estimate", action="store_true", help="print the cost and the prompts, and stop")
    parser.add_argument("--out", type=Path, help="write the playbook here, too (.json)")
    options = parser.parse_intermixed_args(arguments)
    traces = [word for word in options.words if "=" not in word or Path(word).exists()]
    given = {key: value for key, _, value in (word.partition("=") for word in options.words if word not in traces)}
    if not traces:
        raise ConfigError("name the traces: files of .eval, .json, .jsonl or .ndjson, or folders of them")
    if options.out is not None and options.out.suffix != ".json":
        raise ConfigError(f"--out {options.out} must be a .json file, which keeps counters and sources")
    files = override_value([str(Path(trace).expanduser()) for trace in traces])
    settings = {**_SETTINGS, "task.files": files, **given, **({"dry_run": "true"} if options.dry_run else {})}
    words = [f"{key}={value}" for key, value in settings.items()]
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with reporting(command_of(words)) as report:
        run(compose_run(words), report.host)
    if options.out is not None and report.status == 0 and report.folders:
        context = load(report.folders[-1] / "contexts" / "final.json")
        save_context(context, options.out)
        print_line(f"{options.out}: {context.size} bullets")
    return report.status
