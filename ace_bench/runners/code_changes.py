"""Decides whether a run still stands after code that decides its result has changed.

The recorded calls are replayed with the new code, which costs nothing. If the new code sends the same prompts and gets
the same rollouts, steps and scores, the run stands and is continued. Otherwise the user decides.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from ace_bench.core.backbones import EMBEDDER
from ace_bench.core.errors import BackboneUnavailable, ConfigError, FolderUnwritable, Interrupted, RolloutFault
from ace_bench.core.types import Fault, Record
from ace_bench.runners.build import RunSpec
from ace_bench.runners.executing import replay
from ace_bench.runners.gateway import Caller
from ace_bench.runners.host import Host
from ace_bench.runners.limits import Budget
from ace_bench.store.call_log import FILE as CALLS
from ace_bench.store.code import asks_a_server, modules_in_words
from ace_bench.store.environment import describe_environment
from ace_bench.store.folder import RunFolder
from ace_bench.store.journal import Journal, RolloutRecord
from ace_bench.store.processes import How
from ace_bench.store.results import METRICS, read_metrics

_STANDS = {"replayed": "and a replay gave the same result", "accepted": "and accept_code=true accepted it"}
_RESULTS = (
    "splits",
    "validation",
    "learning",
    "trials",
    "verification",
    "context",
    "rollouts",
    "steps",
    "operations",
    "counters",
)
"""Parts of the metrics that prompts, replies and grades decide; intervals can be computed again at any time."""


def settle_code(folder: RunFolder, spec: RunSpec, changed: list[str], host: Host) -> None:
    """Raise ``ConfigError`` if the result changed with the ``changed`` modules; else record that the run stands."""
    modules = modules_in_words(changed)
    how: How = "accepted"
    if not spec.accept_code:
        host.say(
            f"The code of {modules} changed since this run was made: its recorded calls are replayed with the new "
            "code, which costs nothing; accept_code=true skips this."
        )
        difference = _difference(folder, spec, changed, host)
        if difference is not None:
            raise ConfigError(refusal(folder.path, changed, difference))
        how = "replayed"
    reason = f"{modules} changed, {_STANDS[how]}"
    host.say(f"{reason}.")
    folder.processes.add_check(how, reason, host.command, {**describe_environment(), "code": spec.code.modules})


def refusal(folder: Path, changed: list[str], difference: str) -> str:
    """Explain why a run is not shown or continued after modules changed, and what the user can do."""
    modules, finished = modules_in_words(changed), (folder / METRICS).exists()
    keeps = "keeps this result" if finished else "continues this one with the new code"
    return (
        f"{folder} was {'made' if finished else 'begun'} by other code: {modules} changed, and {difference}. "
        f"resume=false makes a new run beside it, accept_code=true {keeps}"
    )


def _difference(recorded: RunFolder, spec: RunSpec, changed: list[str], host: Host) -> str | None:
    """Replay a run and return what differs, ``None`` if nothing does."""
    backbones = spec.backbones.values()
    free = all(backbone.simulated and not asks_a_server(type(backbone).__module__) for backbone in backbones)
    answering = [name for name in changed if name in spec.code.backbones]
    if answering and not free:
        return f"{modules_in_words(answering)} answers in place of a model, which a replay cannot check"
    spec = replace(spec, budget=Budget(), accept_faults=True)
    metrics: Record = {}
    problem = ""
    with tempfile.TemporaryDirectory() as scratch:
        if not free:
            shutil.copyfile(recorded.path / CALLS, Path(scratch) / CALLS)
            spec = replace(spec, unrecorded=_fault)
        with closing(RunFolder(Path(scratch))) as folder:
            try:
                metrics = replay(folder, spec, host)
            except (Interrupted, FolderUnwritable):
                raise
            except Exception as error:  # the new code may raise anything
                problem = f"replaying it raises {type(error).__name__}: {error}"
            difference = _first_difference(recorded, folder.journal, metrics)
    # The replay of an unfinished run may fail after its last call.
    return problem if problem and (difference or (recorded.path / METRICS).exists()) else difference


def _fault(caller: Caller) -> Exception:
    if caller.role == EMBEDDER:  # no fault can stand for its reply
        return BackboneUnavailable("it needs embeddings that are not recorded")
    return RolloutFault(Fault(owner="backbone", kind="not_recorded", message=f"{caller.session} asks something new"))


def _first_difference(recorded: RunFolder, replayed: Journal, metrics: Record) -> str | None:
    rollouts, steps = recorded.journal.rollouts, recorded.journal.steps
    differing_rollouts = sum(_differ(record, replayed.rollouts.get(key)) for key, record in rollouts.items())
    if differing_rollouts:
        return f"{differing_rollouts} of its {len(rollouts)} recorded rollouts come out otherwise"
    pairs = list(zip(steps, replayed.steps, strict=False))
    differing = len(steps) - sum((a.samples, a.digest) == (b.samples, b.digest) for a, b in pairs)
    if differing:
        return f"{differing} of its {len(steps)} recorded steps come out otherwise"
    before = (read_metrics(recorded.path) or {}) if metrics else {}
    names = [name for name in _RESULTS if name in before and before[name] != metrics.get(name)]
    if before and before["headline"]["metric"] != metrics["headline"]["metric"]:
        names.append("headline")
    return f"its metrics come out otherwise ({', '.join(names)})" if names else None


def _differ(record: RolloutRecord, replayed: RolloutRecord | None) -> bool:
    compared = attrgetter("sample", "context", "grade", "calls", "fault", "judge_fault", "attempt.answer")
    return replayed is None or compared(record) != compared(replayed)
