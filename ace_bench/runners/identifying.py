"""Finds out which run a command means: its settings, its identity, its folder and the code that decides its result.

What a command's words compose to is cached on disk. Only what identifies a run is built and imported, so that a
finished one is found quickly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import ConfigError, FileUnwritable
from ace_bench.core.identity import PLACES, RunIdentity, identity_settings
from ace_bench.core.method import Method
from ace_bench.core.program import command_line
from ace_bench.core.resources import config_folders, prompt_folders
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.core.settings import build, check_role_sampling, check_size, settings_of, with_role_sampling
from ace_bench.core.task import Judged, Task
from ace_bench.core.types import Record
from ace_bench.runners.composing import RunConfig, digest_of_configs, settle
from ace_bench.runners.settings import Settings, check_budget_prices, place_of, read_settings
from ace_bench.store.authors_code import ImportedSet, check_commit, read_imported, state_followed, with_commit_apart
from ace_bench.store.code import Code, code_of
from ace_bench.store.files import cache_folder, read_sealed, write_sealed
from ace_bench.store.folder import choose_folder
from ace_bench.store.prompts import PromptSet

if TYPE_CHECKING:
    from ace_bench.runners.planning import Composer

_FORM = "settings, choices, text and automatic embedder"
"""What the cache holds; other words keep older files from being read."""
_PURE = ("oc.select",)
"""Resolvers that depend on the configuration alone."""
_RESOLVER = re.compile(r"\$\{\s*([\w.]+)\s*:")
_DEFAULT = "default"
_NAMED = ("task", "method", "backbone", "mode")
"""Groups whose options name a run."""


def compose_run(words: Sequence[str], compose: Composer | None = None) -> RunConfig:
    """Return what the overrides of a command compose to; raises ``ConfigError`` with the fix.

    ``compose`` has read the configuration files already.
    """
    words = with_commit_apart(words)
    refuse_secret_arguments(words)
    folders = config_folders()
    cached = cache_folder("runs") / f"{digest_of([_FORM, digest_of_configs(folders), list(words)])}.msgpack"
    if (content := read_sealed(cached)) is not None:
        return msgspec.msgpack.decode(content, type=RunConfig)
    from ace_bench.runners.override_help import explain  # Hydra takes a third of a second to import
    from ace_bench.runners.planning import Composer

    with explain(folders, words):
        config, choices = (compose or Composer(folders)).compose(words)
    composed = settle(config, choices)
    with suppress(FileUnwritable, OSError, OverflowError):  # without a cache, a start only takes longer
        if set(_RESOLVER.findall(str(config))) <= set(_PURE):
            write_sealed(cached, msgspec.msgpack.encode(composed))
    return composed


@dataclass(frozen=True, kw_only=True)
class IdentifiedRun(Settings):
    """A run before it is built: ``names`` are the options that name it."""

    config: RunConfig
    names: Mapping[str, str]
    task: Task
    prompt_set: PromptSet
    imported: ImportedSet | None
    backbones: Mapping[str, Backbone]
    simulated: bool
    identity: RunIdentity
    code: Code
    folder: Path


def identify(config: RunConfig, code_of: Callable[[Record], Code] = code_of) -> IdentifiedRun:
    """Build what identifies a run; raises ``ConfigError`` or ``DataError`` with the fix.

    A command that looks at many runs passes the ``code_of`` of one ``CodeReader``, which reads each module once.
    """
    # Backbones come first: the use of sample data depends on whether they are simulated.
    resolved = config.settings
    if several := [group for group in _NAMED if group not in config.choices]:
        raise ConfigError(f"{several[0]} must be one option: write {several[0]}=NAME, without brackets")
    names = {group: config.choices[group] for group in _NAMED}
    settings = read_settings(resolved)
    backbones = build_backbones(resolved)
    simulated = any(backbone.simulated for backbone in backbones.values())
    task: Task = build_part(resolved, "task", sample_allowed=simulated)
    if judge_template(task) is not None and not simulated and JUDGE not in backbones:
        judge = (resolved.get("default_roles") or {}).get(JUDGE)
        backbones |= {} if judge is None else {JUDGE: build(judge, f"default_roles.{JUDGE}")}
    if isinstance(settings.embedder, EmbedderSettings):
        embeddings = embeddings_of(build_part(resolved, "method"), settings.embedder)
        if embeddings is not None:
            backbones[EMBEDDER] = embeddings
            simulated = simulated or embeddings.simulated
    if settings.official_commit is not None:  # a finished run builds no method of its own
        check_commit(settings.official_commit, state_followed(build_part(resolved, "method"), task))
    check_size(resolved, "")
    roots, imported = _prompt_roots(settings.prompts)
    module = str((resolved["method"] or {}).get("_target_")).rpartition(".")[0].rpartition(".")[2]
    prompts = PromptSet(*roots, task=task.name, prompt_group=task.prompt_group, module=module)
    identity = RunIdentity(settings=identity_settings(resolved), contents=_contents(resolved, task, prompts, backbones))
    parent = Path(resolved["results"]) / resolved["name"] / "-".join(names.values()) / identity.digest[:12]
    return IdentifiedRun(
        **vars(settings),
        config=config,
        names=names,
        task=task,
        prompt_set=prompts,
        imported=imported,
        backbones=backbones,
        simulated=simulated,
        identity=identity,
        code=code_of(resolved),
        folder=choose_folder(parent, settings.seed, resume=settings.resume),
    )


def check_backbones(resolved: Record) -> None:
    """Check the top-level settings and the backbones; raises ``ConfigError``."""
    settings = read_settings(resolved)
    check_budget_prices(settings.budget, build_backbones(resolved))


def build_part(resolved: Record, group: str, **parts: Any) -> Any:
    """Build the part that a group of settings describes; raises ``ConfigError``."""
    if resolved.get(group) is None:
        raise ConfigError(
            f"{group}=null leaves nothing to run: choose one; `{command_line('run')} --help` lists the options"
        )
    return build(resolved[group], group, **parts)


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
    from ace_bench.contexts.playbook.embed import EndpointEmbedder  # slow to import, and seldom needed

    wanted = {embedder.settings for embedder in method.embedders if isinstance(embedder, EndpointEmbedder)}
    if not wanted:
        return None
    if wanted != {embedder}:
        raise ConfigError("a run takes embeddings from one endpoint: give it as embedder={url: ..., model: ...}")
    from ace_bench.backbones.openai_compatible.embeddings_backbone import EmbeddingsBackbone

    with settings_of(EMBEDDER):
        return EmbeddingsBackbone(*wanted)


def build_backbones(resolved: Record) -> dict[str, Backbone]:
    """Build the backbones of the roles that have one of their own, and the generator's; raises ``ConfigError``."""
    roles = resolved.get("roles") or {}
    if not isinstance(roles, Mapping):
        raise ConfigError(f"roles={roles} must be a group of backbones: choose one by backbone@roles.reflector=NAME")
    check_role_sampling(resolved)
    if resolved.get("backbone") is not None:
        resolved = with_role_sampling(resolved)
        roles = resolved["roles"]
    own = {role: build(node, place_of(role)) for role, node in roles.items()}
    return {GENERATOR: build_part(resolved, "backbone"), **own}


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
        raise ConfigError(f"prompts={name} is neither one of {', '.join(sorted(sets))} nor a folder")
    imported = read_imported(Path(name))
    return [Path(name), *(sets[_DEFAULT] if imported else ())], imported


def _contents(resolved: Record, task: Task, prompts: PromptSet, backbones: Mapping[str, Backbone]) -> Record:
    """Return what affects a run's result besides its settings.

    The places of data count only for a task that gives no checksums of it.
    """
    places = {name: resolved["task"][name] for name in PLACES if resolved["task"].get(name) is not None}
    return {
        **({} if task.checksums or not places else {"places": places}),
        "source": task.source,
        "data": dict(task.checksums),
        "prompts": prompts.digest,
        "backbones": {role: backbone.identity for role, backbone in backbones.items()},
    }
