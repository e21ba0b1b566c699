"""Prints what a run would do, in place of doing it: its configuration, or its first prompts and its estimated cost."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ace_bench.core.console import Console
from ace_bench.runners.build import RunSpec
from ace_bench.runners.host import Host
from ace_bench.runners.preflight import check_beside, describe, with_leakage
from ace_bench.runners.rehearsal import rehearse
from ace_bench.store.results import METRICS


def show(spec: RunSpec, host: Host) -> None:
    """Print the configuration of a run, or what a dry run shows; a finished run needs no key and no endpoint."""
    if spec.print_config:
        _show_config(spec, host.console)
        return
    _show_dry_run(with_leakage(spec), host)
    if not (spec.folder / METRICS).exists():
        for warning in check_beside(spec):
            host.say(warning, "yellow")


def _show_config(spec: RunSpec, console: Console) -> None:
    """Print the contents of a run's ``config.yaml``. It cannot hold secrets, because ``assemble`` rejects them."""
    from rich.syntax import Syntax
    from rich.tree import Tree

    def written(value: object) -> Syntax:
        text = msgspec.yaml.encode(value).decode().rstrip()
        return Syntax(text, "yaml", background_color="default", word_wrap=True)

    settings = msgspec.yaml.decode(spec.text)
    tree = Tree(f"configuration of {spec.folder}", guide_style="dim")
    tree.add(written({name: value for name, value in settings.items() if not isinstance(value, Mapping)}))
    for name, group in settings.items():
        if isinstance(group, Mapping) and group:
            tree.add(name, style="bold").add(written(group))
    console.print(tree)


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
