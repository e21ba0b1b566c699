"""Prints what a run would do, in place of doing it: its first prompts and its estimated cost."""

from __future__ import annotations

from ace_bench.runners.build import RunSpec
from ace_bench.runners.host import Host
from ace_bench.runners.preflight import check_beside, describe, with_leakage
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.results import METRICS


def show(spec: RunSpec, host: Host) -> None:
    """Print what a dry run shows; a finished run needs no key and no endpoint."""
    _show_dry_run(with_leakage(spec), host)
    if not (spec.folder / METRICS).exists():
        for warning in check_beside(spec):
            host.say(warning, "yellow")


def _show_dry_run(spec: RunSpec, host: Host) -> None:
    """Print the notes on the run, the estimate and the first prompt of each role."""
    estimate = rehearse(spec)
    for role, messages in estimate.prompts.items():
        host.console.rule(f"first prompt of the {role}")
        for message in messages:
            host.say(f"[{message.role}]", style="bold")
            host.say(message.content)
    host.console.rule()
    for line in (*spec.notes, describe(estimate)):
        host.say(line)
