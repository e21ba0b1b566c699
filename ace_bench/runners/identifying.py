"""Finds out which run a configuration means: its identity, its folder and the code that decides its result.

Only the parts that identify a run are built and imported, so that a finished run is found quickly. A folder that holds
another run is refused. A run that an older version made is repeated only if the user asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ace_bench.core.backbones import EMBEDDER, JUDGE, Backbone
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.identity import FORM, PLACES, RunIdentity
from ace_bench.core.method import Method
from ace_bench.core.resources import prompt_folders
from ace_bench.core.settings import settings_of
from ace_bench.core.task import Judged, Task
from ace_bench.core.types import Record
from ace_bench.runners.settings import RunSettings, build_backbones
from ace_bench.store.authors_code import ImportedSet, check_commit, read_imported, state_followed
from ace_bench.store.code import Code, code_of
from ace_bench.store.folder import choose_folder
from ace_bench.store.prompts import PromptSet
from ace_bench.store.results import read_identity, read_place

_DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class IdentifiedRun(RunSettings):
    """A run before all of its parts are built.

    ``method`` is ``None`` if the run can be identified without it.
    """

    task: Task
    method: Method[Any] | None
    prompt_set: PromptSet
    imported: ImportedSet | None
    backbones: Mapping[str, Backbone]
    simulated: bool
    identity: RunIdentity
    code: Code
    folder: Path


def identify(settings: RunSettings, code_of: Callable[[Record], Code] = code_of) -> IdentifiedRun:
    """Build what identifies a run; raises ``ConfigError`` or ``DataError`` with the fix.

    A command that looks at many runs passes the ``code_of`` of one ``CodeReader``, which reads each module once.
    """
    # Backbones come first: the use of sample data depends on whether they are simulated.
    parts = settings.parts
    backbones = build_backbones(parts.backbones)
    simulated = any(backbone.simulated for backbone in backbones.values())
    task: Task = parts.task.build(sample_allowed=simulated)
    if judge_template(task) is not None and not simulated and JUDGE not in backbones and parts.judge is not None:
        backbones[JUDGE] = parts.judge.build()
    commit = settings.official_commit
    needed = commit is not None or isinstance(settings.embedder, EmbedderSettings)
    method: Method[Any] | None = parts.method.build() if needed else None
    if method is not None and (embeddings := embeddings_of(method, settings.embedder)) is not None:
        backbones[EMBEDDER] = embeddings
        simulated = simulated or embeddings.simulated
    if method is not None and commit is not None:
        check_commit(commit, state_followed(method, task))
    roots, imported = _prompt_roots(settings.prompts)
    module = parts.method.target.rpartition(".")[0].rpartition(".")[2]
    prompts = PromptSet(*roots, task=task.name, prompt_group=task.prompt_group, module=module)
    contents = _contents(parts.task.node, task, prompts, backbones)
    identity = RunIdentity(settings=settings.identity_settings, contents=contents)
    parent = Path(settings.results) / settings.name / "-".join(settings.names.values()) / identity.digest[:12]
    return IdentifiedRun(
        **vars(settings),
        task=task,
        method=method,
        prompt_set=prompts,
        imported=imported,
        backbones=backbones,
        simulated=simulated,
        identity=identity,
        code=code_of(settings.groups),
        folder=choose_folder(parent, settings.seed, resume=settings.resume),
    )


def judge_template(task: Task) -> str | None:
    """Return the template by which a model judges answers, ``None`` if none does."""
    if getattr(task, "judge_template", None) is not None and not isinstance(task, Judged):
        raise TypeError(
            f"{type(task).__name__} names a judge's template and needs the methods `judge` and `prompt_fields`"
        )
    return task.judge_template if isinstance(task, Judged) else None


def embeddings_of(method: Method[Any], embedder: str | EmbedderSettings) -> Backbone | None:
    """Return the endpoint that the method's embedders need, ``None`` if they need none."""
    if not method.embedders:
        return None
    from ace_bench.playbook.embed import EndpointEmbedder  # slow to import, and seldom needed

    wanted = {embedder.settings for embedder in method.embedders if isinstance(embedder, EndpointEmbedder)}
    if not wanted:
        return None
    if wanted != {embedder}:
        raise ConfigError("a run takes embeddings from one endpoint: give it as embedder={url: ..., model: ...}")
    from ace_bench.backbones.embeddings import EmbeddingsBackbone

    with settings_of(EMBEDDER):
        return EmbeddingsBackbone(*wanted)


def _prompt_roots(name: str) -> tuple[list[Path], ImportedSet | None]:
    """Return the folders of a prompt set: this project's and other packages', or the folder that it names.

    After the folder of an imported set come the folders of the set ``default``, for what was not imported.
    """
    sets: dict[str, list[Path]] = {}
    for path in (path for folder in prompt_folders() for path in folder.iterdir() if path.is_dir()):
        sets.setdefault(path.name, []).append(path)
    if name in sets:
        return sets[name], None
    if not Path(name).is_dir():
        raise ConfigError(f"prompts={name} is neither a prompt set ({', '.join(sorted(sets))}) nor a folder")
    imported = read_imported(Path(name))
    return [Path(name), *(sets[_DEFAULT] if imported else ())], imported


def _contents(node: Record, task: Task, prompts: PromptSet, backbones: Mapping[str, Backbone]) -> Record:
    """Return what affects a run's result besides its settings; ``node`` holds the task's.

    The places of data count only for a task that gives no checksums of it.
    """
    places = {name: node[name] for name in PLACES if node.get(name) is not None}
    return {
        **({} if task.checksums or not places else {"places": places}),
        "source": task.source,
        "data": dict(task.checksums),
        "prompts": prompts.digest,
        "backbones": {role: backbone.identity for role, backbone in backbones.items()},
    }


def check_folder(run: IdentifiedRun) -> None:
    """Check the folder that a run would begin or go on in; writes nothing.

    Raises ``StoreError`` if it holds another run, and ``ConfigError`` if the run is new but an older version made one
    with the same settings, which cannot be continued and would be paid for again.
    """
    if run.folder.exists():
        _check_recorded(run)
    elif run.resume and (older := next(_older_runs(run), None)):
        raise ConfigError(
            f"an older version of ace-bench made a run with these settings in {older}. It is shown, but not continued. "
            "resume=false makes the run again, and pays for it again"
        )


def _check_recorded(run: IdentifiedRun) -> None:
    try:
        origin = read_place(run.folder)
    except StoreError:  # nothing is recorded yet, or the record is damaged, which opening the folder reports
        return
    if origin.seed == run.seed and origin.digest == run.identity.digest:
        return
    recorded = f"seed {origin.seed}" if origin.seed != run.seed else f"the run {origin.digest[:12]}"
    raise StoreError(
        f"{run.folder} holds {recorded} by its own records, so it was moved or renamed. Move it back to "
        f"{origin.path}, or pass resume=false for a new run"
    )


def _older_runs(run: IdentifiedRun) -> Iterator[Path]:
    """Yield runs of this task, method, backbone, mode and seed that an older version made with these settings.

    A setting that the older version did not record agrees with any value.
    """
    for folder in sorted(run.folder.parent.parent.glob(f"*/{run.folder.name.partition('-')[0]}*")):
        try:
            identity = read_identity(folder)
            seed = read_place(folder).seed
        except StoreError:
            continue
        same_data = identity["contents"].get("data") == run.identity.contents["data"]
        older = identity.get("form") != FORM
        if older and seed == run.seed and same_data and _agree(identity["settings"], run.identity.settings):
            yield folder


def _agree(recorded: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether all settings that both sides have are equal."""
    pairs = ((recorded[name], settings[name]) for name in recorded.keys() & settings.keys())
    return all(
        _agree(earlier, now) if isinstance(earlier, Mapping) and isinstance(now, Mapping) else earlier == now
        for earlier, now in pairs
    )
