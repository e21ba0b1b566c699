"""Before the first call that counts: servers and environments made ready, backbones probed, the cost estimated."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from ace_bench.core.backbones import Backbone, CacheReporting, Probing
from ace_bench.core.errors import BudgetExhausted, Interrupted
from ace_bench.core.protocols import Managed
from ace_bench.runners.assemble import Plan
from ace_bench.runners.observers import compact
from ace_bench.runners.rehearsal import Rehearsed, rehearse
from ace_bench.store.journal import Journal
from ace_bench.store.ledger import Account


@contextmanager
def parts_ready(plan: Plan, journal: Journal, console: Console, stop: threading.Event) -> Iterator[None]:
    """Start what has to be started and probe what can be; put everything away at the end, whatever happens.

    A probe is one tiny call a backbone; it belongs to no stage and is not in the ledger.
    """

    def say(line: str) -> None:
        if stop.is_set():  # a server may take minutes to start: do not make a user wait for it
            raise Interrupted("interrupted by the user")
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with ExitStack() as stack:
        for part in (plan.task, plan.agent):
            if isinstance(part, Managed):
                stack.callback(part.close)
                part.start(say)
        for backbone in _distinct(plan):
            if isinstance(backbone, Managed):
                stack.callback(backbone.close)
                backbone.start(say)
            if isinstance(backbone, CacheReporting) and (counters := backbone.cache_counters()) is not None:
                journal.add_server(backbone.name, counters.queries)  # before the probe warms the cache
            if isinstance(backbone, Probing):
                facts = backbone.probe().facts
                say(f"{backbone.name}: " + ", ".join(f"{name} {fact}" for name, fact in facts.items()))
        yield


def check_estimate(plan: Plan, spent: Account, console: Console) -> None:
    """Estimate what a run on real backbones takes; raise ``BudgetExhausted`` where that is more than its budget.

    ``spent`` is what earlier processes of the run paid: a run that is continued is not estimated again.
    """
    if plan.simulated or spent.calls:
        return
    estimate = rehearse(plan)
    console.print(describe(estimate), markup=False, highlight=False, soft_wrap=True)
    needed = Account(calls=estimate.calls, usage=estimate.usage)
    reason = plan.budget.exceeded(needed, under_way=0, wall=0.0)
    if reason is not None and estimate.calls:
        raise BudgetExhausted(
            f"the estimate passes the budget ({reason} before the end); raise it, lower limit=, or pass "
            "estimate=false to spend the budget anyway"
        )


def describe(estimate: Rehearsed) -> str:
    """Say an estimate in one line."""
    prompt, completion, usd = estimate.usage.prompt, estimate.usage.completion, estimate.usage.usd
    tokens = "tokens n/a" if prompt is None or completion is None else f"{compact(prompt)} prompt tokens"
    out = "" if completion is None else f", {compact(completion)} completion tokens"
    dollars = "dollars n/a (the backbone has no prices)" if usd is None else f"${usd:,.2f} without cache discounts"
    return (
        f"Estimate, if replies are like the embedded reader's: {estimate.calls:,} calls; with the context it starts "
        f"from {tokens}{out}, {dollars}. Prompts grow with the context."
    )


def show_dry_run(plan: Plan, console: Console) -> None:
    """Print the estimate and the first prompt of each role."""
    estimate = rehearse(plan)
    for role, messages in estimate.prompts.items():
        console.rule(f"first prompt of the {role}")
        for message in messages:
            console.print(f"[{message.role}]", style="bold", markup=False)
            console.print(message.content, markup=False, highlight=False, soft_wrap=True)
    console.rule()
    console.print(describe(estimate), markup=False, highlight=False, soft_wrap=True)


def _distinct(plan: Plan) -> list[Backbone]:
    return list({id(backbone): backbone for backbone in plan.backbones.values()}.values())
