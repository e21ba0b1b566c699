"""Steps before the first counted call: start servers and environments, probe backbones, estimate the cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ace_bench.core.backbones import (
    GENERATOR,
    Adaptive,
    Backbone,
    CacheReporting,
    Keyed,
    Launching,
    Limited,
    Probing,
    Served,
)
from ace_bench.core.errors import BackboneUnavailable, BudgetExhausted, ConfigError
from ace_bench.core.leakage import find_leakage
from ace_bench.core.method import Method
from ace_bench.core.scratch import scratch_folder
from ace_bench.core.settings import settings_of
from ace_bench.core.task import Confining, Judged, Lifecycle
from ace_bench.core.types import Probe, ProbeReply, Record
from ace_bench.playbook.embeddings import Embedder
from ace_bench.runners.build import RunSpec, build_experiment
from ace_bench.runners.estimate_text import cost_in_words, describe, describe_time
from ace_bench.runners.host import Host
from ace_bench.runners.limits import Stop
from ace_bench.runners.rehearsal import Estimate, rehearse
from ace_bench.runners.settings import place_of
from ace_bench.store.call_log import Account
from ace_bench.store.calls import first_settings
from ace_bench.store.folder import ENDPOINTS, LONGEST, RunFolder, format_json
from ace_bench.store.results import read_object


def check_beginning(spec: RunSpec) -> RunSpec:
    """Make the contexts that the run begins with, in a temporary folder, and check its templates with a sample.

    It also loads the models of the embedders. Return the spec with these contexts, and with the mode's advice among its
    notes. Nothing is sent or started. Raises ``ConfigError`` or ``DataError``.
    """
    check_embedders(spec.method)
    with scratch_folder("plan") as scratch:
        folder = RunFolder(scratch)
        try:
            experiment = build_experiment(folder, spec, Stop())
            samples, advice = experiment.arena.samples(spec.mode.split), spec.mode.advise(experiment)
        finally:
            folder.close()
    for sample in samples[:1]:
        inputs, rendered = frozenset(sample.inputs), frozenset(experiment.beginning.start.render(sample))
        fields = {**spec.agent.prompt_fields(inputs, rendered), **spec.method.prompt_fields(inputs, rendered)}
        if isinstance(spec.task, Judged):
            fields |= spec.task.prompt_fields(inputs, rendered)
        for template, names in fields.items():
            spec.prompt_set.check(template, names)
    notes = spec.notes if advice is None else (*spec.notes, advice)
    return replace(spec, beginning=experiment.beginning, notes=notes)


def check_embedders(method: Method[Any]) -> None:
    """Load the models that a method embeds with; raises ``ConfigError``. An endpoint is probed with the backbones."""
    for embedder in method.embedders:
        if isinstance(embedder, Embedder):
            embedder.embed([])


def check_keys(backbones: Mapping[str, Backbone]) -> None:
    """Check the keys and programs that backbones by configuration key need; raises ``ConfigError``."""
    for key, backbone in backbones.items():
        if isinstance(backbone, Keyed):
            with settings_of(key):
                backbone.check()


def check_results(folder: Path) -> None:
    """Raise ``ConfigError`` if a run folder cannot be made there; nothing is left behind."""
    parent = folder
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    try:
        with tempfile.TemporaryDirectory(dir=parent):
            pass
    except OSError as error:
        raise ConfigError(
            f"{parent} cannot be written ({error.strerror}); choose another folder with results="
        ) from error


def check_endpoint(key: str, backbone: Served) -> Probe:
    """Make the probe of one backbone, close it and return what it found.

    Raises ``ConfigError`` or ``BackboneUnavailable``.
    """
    with ExitStack() as stack, settings_of(key):
        if isinstance(backbone, Lifecycle):
            stack.callback(backbone.close)
            backbone.start(lambda _: None)
        return backbone.probe()


def check_beside(spec: RunSpec) -> Mapping[str, Probe]:
    """Check the results folder, keys and endpoints in a dry run, as a run does before its first call.

    Return the probe of each endpoint, by configuration key. Raises ``ConfigError`` or ``BackboneUnavailable``.
    """
    check_results(spec.folder)
    check_keys(backbones := distinct_backbones(spec))
    return {
        key: check_endpoint(key, backbone)
        for key, backbone in backbones.items()
        if isinstance(backbone, Served) and backbone.probe_key is not None
    }


@contextmanager
def parts_ready(spec: RunSpec, folder: RunFolder, host: Host, stop: Stop) -> Iterator[None]:
    """Start and probe the parts of a run; always close them at the end.

    A probe makes a few tiny calls to a backbone, which belong to no stage and are not in the ledger.
    ``endpoints.json`` keeps the facts that the probes found.
    """
    facts: dict[str, Record] = {}

    def say(line: str) -> None:
        stop.check()  # lets a user interrupt the start of a server, which may take minutes
        host.say(line)

    with ExitStack() as stack:
        for key, part in (("task", spec.task), ("agent", spec.agent)):
            if isinstance(part, Lifecycle):
                stack.callback(part.close)
                with settings_of(key):
                    part.start(say)
        for key, backbone in distinct_backbones(spec).items():
            with settings_of(key):
                if isinstance(backbone, Adaptive) and (settings := _saved_settings(spec, folder, backbone)) is not None:
                    backbone.adopt(settings)
                if spec.unrecorded is not None:
                    continue
                if isinstance(backbone, Launching) and host.servers is not None:
                    backbone.servers = host.servers
                if isinstance(backbone, Lifecycle):
                    stack.callback(backbone.close)
                    backbone.start(say)
                if isinstance(backbone, CacheReporting) and (counters := backbone.cache_counters()) is not None:
                    folder.journal.add_server(backbone.name, counters.queries)  # before the probe warms the cache
                if isinstance(backbone, Probing):
                    probe = _probe_once(backbone, host.probes, continued=folder.calls.made > 0)
                    facts[key] = probe.facts if probe.longest is None else {**probe.facts, LONGEST: probe.longest}
                    say(f"{backbone.name}: " + ", ".join(f"{name} {fact}" for name, fact in probe.facts.items()))
                    for warning in probe.warnings:
                        host.say(warning, "yellow")
        if facts:
            folder.write({ENDPOINTS: format_json(facts)})
        yield


def _probe_once(backbone: Probing, probes: dict[str, Probe], *, continued: bool) -> Probe:
    """Return what the probe of an earlier run with the same server found out, or probe the backbone.

    The first probe is also the fairest: later runs find the server busy.
    """
    if not isinstance(backbone, Served) or (key := backbone.probe_key) is None:
        return _probe(backbone, continued=continued)
    if key in probes:
        backbone.take_probe(probes[key])
    else:
        probes[key] = _probe(backbone, continued=continued)
    return probes[key]


def _probe(backbone: Probing, *, continued: bool) -> Probe:
    """Probe a backbone. One that worked before and fails now stops the run, which can be continued."""
    try:
        return backbone.probe()
    except ConfigError as error:
        if not continued:
            raise
        raise BackboneUnavailable(str(error)) from error


def with_confinement(spec: RunSpec) -> RunSpec:
    """Record the confinement of model-written code, once the parts that run it are ready."""
    parts = (part.confinement for part in (spec.task, spec.agent) if isinstance(part, Confining))
    layers = next((layers for layers in parts if layers is not None), None)
    return spec if layers is None else replace(spec, metadata={**spec.metadata, "confinement": [*layers]})


def with_leakage(spec: RunSpec) -> RunSpec:
    """Record how many prompts of the evaluation hold their reference answer, and note it for the console."""
    split = spec.mode.split
    leakage = find_leakage(spec.task, split, spec.limits.get(split))
    metadata = {**spec.metadata, "answers_in_prompts": asdict(leakage)}
    return replace(spec, metadata=metadata, notes=(*spec.notes, f"{leakage}."))


def check_estimate(spec: RunSpec, spent: Account, host: Host, stop: Stop) -> None:
    """Estimate the cost of a run on real backbones; raise ``BudgetExhausted`` if the budget is certainly too small.

    Raises ``ConfigError`` if a first prompt with its reply is longer than the context. A budget is too small if the
    low end of the estimate exceeds it. If only another end does, the console says so and the run begins. ``spent`` is
    the cost of earlier processes of the run. A continued run is not estimated again.
    """
    if spec.simulated or spent.calls:
        return
    estimate = rehearse(spec, stop)
    host.say(describe(estimate))
    if time := describe_time(estimate, probed_rate(spec.folder)):
        host.say(time)
    _check_room(spec, estimate)
    limit = spec.budget.too_small_for(estimate.low)
    if limit is not None:
        raise BudgetExhausted(
            f"the run takes at least {cost_in_words(estimate.low)}, which exceeds {limit}; raise it, lower limit=, or "
            "pass estimate=false to spend the budget anyway"
        )
    for name, end in (("typical cost", estimate.typical), ("bound", estimate.high)):
        limit = spec.budget.too_small_for(end)
        if limit is not None:
            host.say(f"The {name} of the estimate exceeds {limit}: the run may stop there, unfinished.", "yellow")
            return


def probed_rate(folder: Path) -> float | None:
    """Return how many tokens a second a call of the generator's probe wrote, ``None`` if the run recorded no probe."""
    probes = read_object(folder, ENDPOINTS) if (folder / ENDPOINTS).exists() else {}
    longest = probes.get(place_of(GENERATOR), {}).get(LONGEST)
    return ProbeReply(**longest).tokens_per_s if longest else None


def _check_room(spec: RunSpec, estimate: Estimate) -> None:
    for role, messages in estimate.prompts.items():
        backbone = spec.backbones.get(role) or spec.backbones[GENERATOR]
        length, limit = backbone.context_length, backbone.reply_limit(role) if isinstance(backbone, Limited) else None
        prompt = sum(backbone.count(message.content) for message in messages)
        if length is None or limit is None or limit >= length or prompt + limit <= length:
            continue  # a reply without a limit ends where the context ends
        raise ConfigError(
            f"the first prompt of the {role} has about {prompt:,} tokens; with a reply of up to {limit:,} that is more "
            f"than the context of {length:,}: lower sampling.{role}.max_tokens, take a model with a longer context, or "
            "pass estimate=false to try it anyway"
        )


def _saved_settings(spec: RunSpec, folder: RunFolder, backbone: Backbone) -> Record | None:
    """Return the settings of the first call to a backbone by an earlier process of the run."""
    roles = (role for role, candidate in spec.backbones.items() if candidate is backbone)
    recorded = (first_settings(folder.path, role) for role in roles)
    return next((settings for settings in recorded if settings is not None), None)


def distinct_backbones(spec: RunSpec) -> dict[str, Backbone]:
    """Return each backbone once, by its configuration key."""
    roles = {id(backbone): role for role, backbone in reversed([*spec.backbones.items()])}
    return {place_of(role): spec.backbones[role] for role in reversed([*roles.values()])}
