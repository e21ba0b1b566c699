"""Makes one run in its folder: starts it, runs the loop, and writes its result and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

from ace_bench.contexts.loading import encode_context, official_text
from ace_bench.core.backbones import EMBEDDER
from ace_bench.core.console import Console
from ace_bench.core.errors import AceBenchError, DataError, Interrupted, Stopped, StoreError
from ace_bench.core.redaction import redact
from ace_bench.core.types import Record
from ace_bench.runners.build import NO_RESOURCES, Resources, RunSpec, build_experiment, check_reply_limits
from ace_bench.runners.call_slots import queue_kept_here
from ace_bench.runners.host import Host
from ace_bench.runners.limits import Stop
from ace_bench.runners.loop import RunOutcome, run_loop
from ace_bench.runners.metrics import run_metrics
from ace_bench.runners.preflight import check_estimate, parts_ready, with_confinement
from ace_bench.runners.progress import Observer, make_display
from ace_bench.runners.shared_limits import SharedLimits
from ace_bench.runners.stopping import stop_on_signals
from ace_bench.runners.summary import summary_table, summary_text, title
from ace_bench.store.environment import describe_environment
from ace_bench.store.folder import SAMPLES, RunFolder, format_json, pack_samples, unpack_samples
from ace_bench.store.notes import change_notes
from ace_bench.store.responses import Responses
from ace_bench.store.results import ENVIRONMENT, IDENTITY, METRICS, SETTINGS, SUMMARY, read_object
from ace_bench.store.vectors import VectorStore


@contextmanager
def open_resources(spec: RunSpec, host: Host) -> Iterator[Resources]:
    """Open the resources that the settings of a run name, before its folder is created."""
    with ExitStack() as stack:
        cache, store, limits = spec.response_cache, spec.vector_store, host.limits or SharedLimits()
        yield Resources(
            responses=None if cache is None else stack.enter_context(closing(Responses(Path(cache), spec.folder_mode))),
            vectors=None if store is None else stack.enter_context(closing(VectorStore(Path(store), spec.folder_mode))),
            slots=limits.slots(spec.max_calls_in_flight),
            spending=limits.spending(spec.folder, spec.budget),
        )


def execute(folder: RunFolder, spec: RunSpec, host: Host, resources: Resources = NO_RESOURCES) -> Record:
    """Make or continue a run in its open folder and return its metrics; its folder says how it ended.

    The run is described in its folder, its parts are started, its loop runs, and its result is recorded.
    """
    try:
        environment = _describe_run(folder, spec, host)
        with _parts_started(folder, spec, host, resources) as stop:
            check_reply_limits(spec.budget, spec.backbones)  # a server has said by now how long its context is
            spec = with_confinement(spec)
            folder.write({ENVIRONMENT: format_json({**environment, **spec.metadata})})
            if spec.estimate:
                check_estimate(spec, folder.calls.ledger.total, host, stop)
            with _observers(spec, host) as observers:
                experiment = build_experiment(folder, spec, stop, observers, resources)
                outcome = run_loop(experiment, spec.mode)
                metrics = run_metrics(experiment, outcome, spec.metadata)
                _record_result(folder, outcome, metrics)
                for tracker in spec.trackers:
                    tracker.finish(metrics)
    except BaseException as error:
        if not folder.discard():
            _record_end(folder, error)
        raise
    host.console.print(summary_table(metrics, folder.processes.processes))
    return metrics


def _describe_run(folder: RunFolder, spec: RunSpec, host: Host) -> Record:
    """Record the run and its environment, report what differs from earlier processes, and return the environment."""
    save_questions(folder, spec)
    for line in (title(spec.metadata), *spec.notes):
        host.say(line)
    environment = describe_environment()
    described = format_json({**environment, **spec.metadata})
    folder.write({SETTINGS: spec.text, IDENTITY: format_json(spec.identity.dump()), ENVIRONMENT: described})
    change_notes(folder.path, tags=spec.tags, note=spec.note)
    folder.set_status("running")
    changes = folder.processes.begin(host.command, {**environment, "code": spec.code.modules}, sweep=host.sweep)
    if changes:
        host.say(f"This run continues with other software than before: {', '.join(changes)}.", style="yellow")
    return environment


@contextmanager
def _parts_started(folder: RunFolder, spec: RunSpec, host: Host, resources: Resources) -> Iterator[Stop]:
    """Start the parts of a run and close them at the end; yield the stop that signals request."""

    def abandon(error: Interrupted) -> None:
        kept = not folder.discard()
        if kept:
            _record_end(folder, error)
        host.say_stopped(error)
        if kept:
            host.say(str(folder.path))

    served = [backbone for role, backbone in spec.backbones.items() if role != EMBEDDER]
    with (
        stop_on_signals(host, spec.backbones.values(), abandon) as stop,
        parts_ready(spec, folder, host, stop),
        queue_kept_here(resources.slots, served),
    ):
        yield stop


def _record_result(folder: RunFolder, outcome: RunOutcome, metrics: Record) -> None:
    """Write the contexts, the summary and the metrics of a finished run."""
    folder.processes.end("finished")
    summary = summary_text(metrics, folder.processes.processes)
    folder.write_in_parts(chain(files_of_contexts(outcome), [(SUMMARY, summary.encode())]))
    folder.set_status("finished")
    folder.write_json(METRICS, metrics)


def replay(folder: RunFolder, spec: RunSpec, host: Host) -> Record:
    """Make a run again in a folder that holds its calls, without output and trackers."""
    quiet = replace(host, console=Console(quiet=True))
    return execute(folder, replace(spec, trackers=(), estimate=False), quiet)


def _record_end(folder: RunFolder, error: BaseException) -> None:
    if isinstance(error, Stopped):
        folder.try_set_status("stopped", error.reason)
        folder.processes.try_end("interrupted" if isinstance(error, Interrupted) else "stopped", error.reason)
        return
    reason = str(error) if isinstance(error, AceBenchError) else redact(f"{type(error).__name__}: {error}")
    folder.try_set_status("failed", reason)
    folder.processes.try_end("failed", reason)


@contextmanager
def _observers(spec: RunSpec, host: Host) -> Iterator[tuple[Observer, ...]]:
    with ExitStack() as stack:
        for tracker in spec.trackers:
            tracker.begin(spec.folder, spec.metadata, spec.text)
            stack.callback(tracker.close)
        display = stack.enter_context(closing(host.display() if host.display else make_display(host.console)))
        yield (*spec.trackers, display)


def save_questions(folder: RunFolder, spec: RunSpec) -> None:
    """Save the templates and samples that are missing in the folder.

    A continued run has the same templates and samples, because its digest covers them.
    """
    contents = {f"prompts/{name}": text.encode() for name, text in spec.prompt_set.files.items()}
    files: dict[str, str | bytes] = {
        name: content for name, content in contents.items() if not folder.holds(name, content)
    }
    try:
        unpack_samples(read_object(folder.path, SAMPLES))
    except (StoreError, DataError):
        used = (spec.task.samples(split)[: spec.limits.get(split)] for split in spec.mode.reads(spec.method))
        files[SAMPLES] = format_json(pack_samples(chain.from_iterable(used)))
    if files:
        folder.write(files)


def files_of_contexts(outcome: RunOutcome) -> Iterator[tuple[str, bytes]]:
    """Yield the contexts as JSON, playbooks also in the text format of the published ones, with their file names."""
    contexts = [*outcome.contexts.items(), ("tested", outcome.context)]
    for _, equal in groupby(contexts, key=lambda named: named[1].digest):
        entries = list(equal)
        context = entries[0][1]
        encoded = encode_context(context)
        yield from ((f"contexts/{name}.json", encoded) for name, _ in entries)
        del encoded  # before the text is made
        if (text := official_text(context)) is not None:
            yield from ((f"contexts/{name}.txt", text.encode()) for name, _ in entries)
        del text  # before the next one is made
