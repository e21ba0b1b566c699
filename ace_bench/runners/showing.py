"""Prints what a run would do, in place of doing it: its first prompts and its estimated cost."""

from __future__ import annotations

from itertools import chain

from ace_bench.core.backbones import GENERATOR
from ace_bench.runners.build import RunSpec
from ace_bench.runners.estimate_text import describe, describe_time
from ace_bench.runners.host import Host
from ace_bench.runners.preflight import check_beside, with_leakage
from ace_bench.runners.rehearsal import Estimate, rehearse
from ace_bench.runners.settings import place_of
from ace_bench.store.results import METRICS


def show(spec: RunSpec, host: Host) -> None:
    """Print what a dry run shows; a finished run needs no key and no endpoint."""
    estimate = _show_dry_run(with_leakage(spec), host)
    if (spec.folder / METRICS).exists():
        return
    probes = check_beside(spec)
    longest = probes[place].longest if (place := place_of(GENERATOR)) in probes else None
    if longest and (time := describe_time(estimate, longest.tokens_per_s)):
        host.say(time)
    for warning in chain.from_iterable(probe.warnings for probe in probes.values()):
        host.say(warning, "yellow")


def _show_dry_run(spec: RunSpec, host: Host) -> Estimate:
    """Print the notes on the run, the estimate and the first prompt of each role. Return the estimate."""
    estimate = rehearse(spec)
    for role, messages in estimate.prompts.items():
        host.console.rule(f"first prompt of the {role}")
        for message in messages:
            host.say(f"[{message.role}]", style="bold")
            host.say(message.content)
    host.console.rule()
    for line in (*spec.notes, describe(estimate)):
        host.say(line)
    return estimate
