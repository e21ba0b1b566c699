"""The summary of a finished run, for the console and for ``summary.txt``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import pairwise
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from ace_bench.core.backbones import backbone_name, explain_all_reasoning, explain_blanks
from ace_bench.core.console import Console
from ace_bench.core.leakage import Leakage
from ace_bench.core.model_names import describe_other_models
from ace_bench.store.fidelity import certificate_text
from ace_bench.store.gains import (
    Gain,
    adapted,
    advice_on_gain,
    command_of_base,
    describe_cost,
    limits_of_one_run,
    marks_of_number,
    score_name,
    subject_of,
)
from ace_bench.store.processes import CHECKS, KILLED, Process, accepted_code, without_checks
from ace_bench.store.roles import advice_on_roles, roles_of
from ace_bench.store.speed import Speed, advice_on_speed

_SHOWN_WAIT_S = 1.0


def title(metadata: Mapping[str, Any]) -> str:
    """Name a run in one line, marking simulated runs and sample data."""
    backbone = backbone_name(metadata["backbone"], metadata.get("roles", {}).get("generator"))
    name = f"{metadata['task']} · {metadata['method']} · {backbone} · {metadata['mode']}"
    protocol = f" · protocol={metadata['protocol']}" if "protocol" in metadata else ""
    marks = {"simulated": metadata["simulated"], "sample data": metadata["source"] == "sample"}
    kinds = [mark for mark, applies in marks.items() if applies]
    suffix = f" [{', '.join(kinds)}: not comparable with published numbers]" if kinds else ""
    return f"{name} · labels={metadata['labels']}{protocol} · seed {metadata['seed']}{suffix}"


def summary_table(metrics: Mapping[str, Any], processes: Sequence[Process]) -> Table:
    """Return a run's result and records as a table of two columns."""
    table = Table(title=Text(title(metrics)), title_justify="left", show_header=False, title_style="bold")
    table.add_column(style="dim")
    table.add_column(overflow="fold")  # a setting that is longer than the column is still whole
    for name, value in (
        *_answer(metrics, processes),
        *_tested(metrics),
        *_context(metrics),
        *((stage, _stage(metrics, stage)) for stage in ("adapt", "evaluate")),
        *_roles(metrics),
        *{**_speed(metrics), **_faults(metrics), **_replies(metrics)}.items(),
        *_prompts(metrics),
        *_conditions(metrics),
        *_records(processes).items(),
    ):
        table.add_row(name, value)
    return table


def summary_text(metrics: Mapping[str, Any], processes: Sequence[Process]) -> str:
    """Return the summary as plain text."""
    buffer = StringIO()
    # Rich would show the table in a notebook instead of writing it.
    Console(file=buffer, width=140, force_jupyter=False, emoji=False).print(summary_table(metrics, processes))
    return buffer.getvalue()


def _records(processes: Sequence[Process]) -> Mapping[str, str]:
    """Return when a run was made, with which code and, if it was continued, by how many processes."""
    workers = without_checks(processes)
    if not workers:  # made by an older version
        return {}
    first, last = workers[0], workers[-1]
    ended = "n/a" if last.ended is None else f"{last.ended:%Y-%m-%d %H:%M:%S} UTC"
    rows = {"code": last.commit or "commit n/a", "time": f"{first.at:%Y-%m-%d %H:%M:%S} to {ended}"}
    if len(workers) > 1:
        after = ("" if worker.seconds is None else f" after {duration(worker.seconds)}" for worker in workers)
        ends = (f"{worker.how or KILLED}{text}" for worker, text in zip(workers, after, strict=True))
        rows["processes"] = f"{len(workers)}: {', '.join(ends)}"
    changes = [change for worker, later in pairwise(workers) for change in worker.changes_to(later)]
    if changes:
        rows["software changed"] = ", ".join(changes)
    checks = [process for process in processes if process.how in CHECKS]
    if checks:
        rows["code changed"] = accepted_code(processes) or f"{checks[-1].reason} ({checks[-1].at:%Y-%m-%d})"
    return rows


def _answer(metrics: Mapping[str, Any], processes: Sequence[Process]) -> Iterator[tuple[str, str]]:
    """Say what the score is, whether adaptation helped, what it cost, and what one run cannot say."""
    headline = metrics["headline"]
    yield score_name(metrics), _headline(headline)
    if gain := metrics.get("gain"):
        measured = msgspec.convert(gain, Gain)
        yield "gain", measured.describe(subject_of(metrics), score_name(metrics), marks=marks_of_number(metrics))
        changed = f"samples with a higher score than before: {measured.better:,}; with a lower one: {measured.worse:,}"
        yield "fixed and broken", f"{changed}. ace-bench report FOLDER shows them with the bullets cited"
        if advice := advice_on_gain(metrics):
            yield "advice", advice
    elif headline["before"] is None and adapted(metrics):
        base = command_of_base(processes[-1].command if processes else None)
        yield "gain", f"not measured, as nothing was tested without what was learnt; for a comparison run {base}"
    if (gain or headline["before"] is None) and adapted(metrics):
        yield "one run", limits_of_one_run(metrics)
    if query := metrics.get("query"):  # older versions did not count it
        yield "cost", describe_cost(metrics, query)


def _tested(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the other scores, and how the samples were tested."""
    headline = metrics["headline"]
    after = metrics["splits"][headline["split"]]["after"]
    for name, value in after.items():
        if name not in ("n", "faults", headline["metric"]):
            yield f"{headline['split']} {name}", f"{value:.2f}"
    yield "samples", f"{headline['n']}, faults {after['faults']}"
    if "trials" in metrics:
        judge = "the model itself" if metrics["labels"] == "none" else f"labels={metrics['labels']}"
        rule = f"the last counts, {judge} said which failed"
        if metrics["operations"].get("voted"):
            rule = "the answer of most of them counts"
        yield "trials", f"{metrics['trials']['mean']:.2f} a sample; {rule}"
    if (leaked := metrics.get("answers_in_prompts")) is not None:
        yield "leakage", str(Leakage(**leaked))


def _context(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    context = metrics["context"]
    if "embedder" in metrics:
        yield "embedder", metrics["embedder"]
    yield "context", f"{context['kind']}, {context['items']} items, {compact(context['tokens'])} tokens"


def _prompts(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return how much of the prompts the servers had cached, and what did not fit into them."""
    yield "cached prompt tokens", _reuse(metrics["cache"]["total"])
    for server, counters in metrics["cache"]["servers"].items():
        yield "cached, by server", f"{server}: {_server_share(counters)}"
    if dropped := sum(metrics["dropped_items"].values()):
        yield "dropped from prompts", f"{dropped:,} context items: prompts were too long for the backbone"


def _conditions(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return what confined code, what the run cost, and whether it ran as the authors' code."""
    if (layers := metrics.get("confinement")) is not None:
        from ace_bench.core.confine import describe_layers  # few runs confine code

        yield "code confined by", describe_layers(layers)
    usd = metrics["usd"]["total"]
    lists = f" at the prices of {', '.join(metrics['price_lists'])}" if metrics.get("price_lists") else ""
    yield "dollars", "n/a" if usd is None else f"{usd:,.2f}{lists}"
    if certified := metrics.get("as_authors"):  # runs of older versions have none
        yield "as the authors'", certificate_text([certified], simulated=metrics["simulated"])


def _headline(headline: Mapping[str, Any]) -> str:
    text = f"{headline['after']:.2f}"
    if headline["ci95"] is not None:
        low, high = headline["ci95"]
        text += f"  (95% interval {low:.2f} to {high:.2f})"
    if headline["before"] is not None:
        text += f", before {headline['before']:.2f} ({headline['after'] - headline['before']:+.2f})"
    return text


def _roles(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return how well each role did, with advice where one is far off."""
    roles = roles_of(metrics) or {}  # older versions did not count it
    rows = [(role, "; ".join(quality.describe())) for role, quality in roles.items()]
    return rows + [("advice", advice) for advice in advice_on_roles(roles)]


def _speed(metrics: Mapping[str, Any]) -> Mapping[str, str]:
    """Return how fast the model wrote, with advice where its calls were slow; nothing where no model wrote."""
    timing = metrics["timing"]
    total, advice = timing.get("total"), advice_on_speed(timing)
    if total is None or metrics["simulated"]:  # made by an older version, or by a stand-in
        return {}
    speed = Speed(all=total["tokens_per_s"], call=total["call_tokens_per_s"], in_flight=total["calls_in_flight"])
    in_flight = "" if speed.in_flight is None else f", {speed.in_flight:,.1f} calls in flight"
    return {"generated": f"{speed}{in_flight}", **({} if advice is None else {"advice on speed": advice})}


def _faults(metrics: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the faults of all stages by role and kind."""
    kinds: Counter[str] = Counter()
    for name, number in _by_role(metrics["faults"]).items():
        role, _, kind = name.split("/")
        kinds[f"{role} {kind}"] += number
    return {"faults": ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items()))} if kinds else {}


def _replies(metrics: Mapping[str, Any]) -> Mapping[str, str]:
    """Return which other models replied, and how many replies of each role were odd in another way."""
    calls, rows = _by_role(metrics["calls"]), dict[str, str]()
    if other_models := describe_other_models(metrics.get("models", {})):
        rows["another model"] = other_models
    reasoning = _by_role(metrics.get("all_reasoning_replies", {}))
    if reasoning:
        rows["replies without text"] = f"{_shares(reasoning, calls)}: {explain_all_reasoning()}"
    if blank := _by_role(metrics.get("blank_replies", {})):
        rows["replies cut in blanks"] = f"{_shares(blank, calls)}: {explain_blanks()}"
    if many_objects := _by_role(metrics.get("several_objects", {})):
        rows["several objects"] = f"{_shares(many_objects, calls)} replies: the last one that fits was read"
    thoughts = [*metrics.get("thoughts", {}).values()]
    replies, length = (
        sum((Counter({role: counts[figure] for role, counts in roles.items()}) for roles in thoughts), Counter[str]())
        for figure in ("replies", "characters")
    )
    if replies:
        rows["replies with thoughts"] = (
            f"{_shares(replies, calls)}; {compact(length.total())} characters of thoughts, which nobody was shown"
        )
    return rows


def _shares(numbers: Mapping[str, int], calls: Mapping[str, int]) -> str:
    return ", ".join(f"{role} {number:,} of {calls[role]:,}" for role, number in numbers.items())


def _by_role(stages: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    return sum((Counter(roles) for roles in stages.values()), Counter())


def _reuse(cache: Mapping[str, Any]) -> str:
    source = " by the server's counters" if "counted_by" in cache else ""
    share = "n/a" if cache["share"] is None else f"{cache['share']:.1%}{source}"
    saved = cache.get("saved")
    return share if saved is None else f"{share}, which makes input {saved:.1%} cheaper"


def _server_share(counters: Mapping[str, Any]) -> str:
    stages = [sums for sums in counters.values() if isinstance(sums, dict)]
    queries, hits = sum(sums["queries"] for sums in stages), sum(sums["hits"] for sums in stages)
    return f"{hits / queries:.1%}, {counters['start']} start" if queries else "n/a"


def _stage(metrics: Mapping[str, Any], stage: str) -> str:
    calls = metrics["calls"][stage]
    tokens, timing = metrics["tokens"][stage], metrics["timing"][stage]
    by_role = ", ".join(f"{role} {count:,}" for role, count in calls.items())
    counted = tokens["in"] is not None and tokens["out"] is not None
    size = f"{compact(tokens['in'])} in / {compact(tokens['out'])} out" if counted else "tokens n/a"
    faults = sum(metrics["faults"][stage].values())
    repeated = f", {timing['retries']:,} retries" if timing["retries"] else ""
    waited = f", calls waited {duration(timing['waited_s'])}" if timing["waited_s"] >= _SHOWN_WAIT_S else ""
    asked_again = (
        f", {timing['asked_again']:,} replies paid for and asked for again" if timing.get("asked_again") else ""
    )
    replayed = f", {metrics['replayed'][stage]:,} from earlier runs" if metrics["replayed"][stage] else ""
    return (
        f"{metrics['rollouts'][stage]:,} rollouts, {sum(calls.values()):,} calls"
        f"{f' ({by_role})' if by_role else ''}, {size}{repeated}{asked_again}{waited}{replayed}, {faults} faults, "
        f"{duration(timing['wall_s'])} (model time {duration(timing['model_s'])})"
    )


def compact(number: float) -> str:
    """Format a count in about three digits: 950, 12.3k, 4.5M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f}{unit}"
    return f"{number:.0f}"


def duration(seconds: float) -> str:
    """Format a duration: 42s, 3m05s, 2h10m."""
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{remainder:02d}s" if minutes else f"{remainder}s"
