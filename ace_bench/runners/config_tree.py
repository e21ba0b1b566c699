"""The composed configuration on the console, as a tree with a branch for each group."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.syntax import Syntax
from rich.tree import Tree

from ace_bench.runners.assemble import RunSpec


def show_config(plan: RunSpec, console: Console) -> None:
    """Print the contents of a run's ``config.yaml``. It cannot hold secrets, because ``assemble`` rejects them."""
    settings = msgspec.yaml.decode(plan.config)
    tree = Tree(f"configuration of {plan.folder}", guide_style="dim")
    single = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    tree.add(_yaml(single))
    for name, group in settings.items():
        if isinstance(group, Mapping) and group:
            tree.add(name, style="bold").add(_yaml(group))
    console.print(tree)


def _yaml(value: object) -> Syntax:
    text = msgspec.yaml.encode(value).decode().rstrip()
    return Syntax(text, "yaml", background_color="default", word_wrap=True)
