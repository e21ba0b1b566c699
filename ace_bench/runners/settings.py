"""The configuration of a run as typed values, decoded once from its composed form.

Nothing else reads a configuration as a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.core.backbones import EMBEDDER, GENERATOR, JUDGE, Backbone
from ace_bench.core.embedders import HASHING, EmbedderSettings
from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import identity_settings, with_embedder
from ace_bench.core.program import command_line
from ace_bench.core.settings import (
    Count,
    Parallel,
    PartSettings,
    RoleSampling,
    Seed,
    Text,
    check_size,
    given_by_role,
    make_part,
)
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.limits import Budget
from ace_bench.runners.outages import FaultRule
from ace_bench.store.files import PRIVATE
from ace_bench.store.notes import Note, Tag

_Word = Annotated[
    str, Meta(pattern=r"[\w.-]*[\w-][\w.-]*", description="one word of letters, digits, - and _: it names a folder")
]

PARTS = ("agent", "task", "method", "backbone", "roles", "default_roles", "rehearsal", "mode", "tracker")
"""Groups of settings that describe parts of a run."""
_FOLDER_MODES = {"private": PRIVATE, "group": 0o770, "all": 0o777}


_NAMED = ("task", "method", "backbone", "mode")
"""Groups whose options name a run."""
_PROTOCOL, _PAPER = "protocol", "paper"


@dataclass(frozen=True, kw_only=True)
class BySplit:
    """Limits of samples by split, ``None`` for all."""

    train: Count | None = None
    val: Count | None = None
    test: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The top-level settings as a user writes them."""

    name: _Word
    results: Text
    results_mode: Literal["private", "group", "all"] = "private"
    """Who may enter the folders that are made for runs, for the response cache and for the vector store."""
    tags: Sequence[Tag] | None = None
    note: Note | None = None
    """What lists show of a run. ``None`` keeps what its folder has."""
    seed: Seed
    labels: Literal["gold", "correctness", "none"]
    limit: Count | BySplit | None
    concurrency: Parallel
    max_calls_in_flight: Parallel | None
    resume: bool
    prompts: Text
    official_commit: Text | None = None
    embedder: Text | EmbedderSettings
    response_cache: Text | None
    vector_store: Text | None = None
    dry_run: bool
    estimate: bool
    accept_faults: bool
    repeat_calls: bool
    """Whether what was attempted under a context is attempted anew where the mode asks for it again."""
    unreadable_replies: Literal["wrong", "fault"]
    accept_code: bool
    stop_after_faults: Count
    budget: Budget
    sampling: Mapping[str, RoleSampling | None] | None = None
    """Of single roles, in place of the sampling of the backbones that answer them."""

    @property
    def limits(self) -> Mapping[str, int | None]:
        """Samples by split, ``None`` for all."""
        limit = self.limit
        return asdict(limit if isinstance(limit, BySplit) else BySplit(train=limit, val=limit, test=limit))

    @property
    def faults(self) -> FaultRule:
        """Which faults are answers."""
        return FaultRule(
            accept=self.accept_faults,
            stop_after=self.stop_after_faults,
            learn_unreadable=self.unreadable_replies == "wrong",
        )

    @property
    def folder_mode(self) -> int:
        """The mode of new folders, before the umask."""
        return _FOLDER_MODES[self.results_mode]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The settings of the parts of a run, before they are built.

    ``backbones`` are the generator's and those of roles that have their own, each with the sampling of the roles that
    it answers. ``judge`` answers where the task needs a judge and ``backbones`` have none. ``rehearsed_method`` is the
    method without calls for its embeddings.
    """

    task: PartSettings
    method: PartSettings
    rehearsed_method: PartSettings
    mode: PartSettings
    agent: PartSettings
    rehearsal: PartSettings
    backbones: Mapping[str, PartSettings]
    judge: PartSettings | None
    trackers: tuple[PartSettings, ...]


@dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    """The whole configuration of a run.

    ``names`` are the options that name the run. ``identity_settings`` are those that can change an answer. ``groups``
    are the groups of the parts as they are written, which name the code that decides a result. ``text`` is the content
    of ``config.yaml``. ``automatic``: the embedder was left open.
    """

    names: Mapping[str, str]
    protocol: str
    parts: Parts
    identity_settings: Mapping[str, Any]
    groups: Mapping[str, Any]
    text: str
    automatic: bool


def decode(config: RunConfig) -> RunSettings:
    """Decode a configuration; builds nothing. Raises ``ConfigError`` that names the wrong setting."""
    resolved, choices = config.settings, config.choices
    if missing := [group for group in _NAMED if group not in choices]:
        raise ConfigError(f"{missing[0]} must be one option: write {missing[0]}=NAME, without brackets")
    top = read_settings(resolved)
    parts = decode_parts(resolved)
    check_size(resolved, "")
    return RunSettings(
        **vars(top),
        names={group: choices[group] for group in _NAMED},
        protocol=choices.get(_PROTOCOL, _PAPER),
        parts=parts,
        identity_settings=identity_settings(resolved),
        groups={group: resolved.get(group) for group in PARTS},
        text=config.text,
        automatic=config.automatic,
    )


def read_settings(resolved: Mapping[str, Any]) -> Settings:
    """Decode the top-level settings of a configuration; raises ``ConfigError`` that names the wrong one."""
    top_level = {name: value for name, value in resolved.items() if name not in PARTS}
    settings: Settings = make_part(Settings, top_level, "")
    return settings


def build_backbones(parts: Mapping[str, PartSettings]) -> dict[str, Backbone]:
    """Build the backbones of roles; raises ``ConfigError``."""
    return {role: part.build() for role, part in parts.items()}


def decode_backbones(resolved: Mapping[str, Any]) -> dict[str, PartSettings]:
    """Decode the backbones of the generator and of the roles that have one of their own; raises ``ConfigError``.

    Each holds what ``sampling`` sets for the roles that it answers.
    """
    roles = resolved.get("roles") or {}
    if not isinstance(roles, Mapping):
        raise ConfigError(f"roles={roles} must be a group of backbones: choose one by backbone@roles.reflector=NAME")
    sampling = given_by_role(resolved)
    shared = {role: values for role, values in sampling.items() if role == GENERATOR or role not in roles}
    generator = _with_sampling(_part(resolved, "backbone"), shared)
    parts = {role: PartSettings(place_of(role), node) for role, node in roles.items()}
    sampled = {
        role: _with_sampling(part, {role: sampling[role]} if role in sampling else {}) for role, part in parts.items()
    }
    return {GENERATOR: generator, **sampled}


def _with_sampling(backbone: PartSettings, roles: Mapping[str, Any]) -> PartSettings:
    """Return a backbone with the sampling of roles; one that does not sample, as the embedded one, stays as it is."""
    sampling = backbone.node.get("sampling")
    if not roles or not isinstance(sampling, Mapping):
        return backbone
    return replace(backbone, node={**backbone.node, "sampling": {**sampling, "roles": roles}})


def decode_parts(resolved: Mapping[str, Any]) -> Parts:
    """Decode the settings of a run's parts; builds nothing. Raises ``ConfigError``."""
    backbones = decode_backbones(resolved)
    judge = (resolved.get("default_roles") or {}).get(JUDGE)
    trackers = resolved.get("tracker") or {}
    if not isinstance(trackers, Mapping):
        raise ConfigError(
            f"tracker={trackers} must be a group of trackers by name: write tracker=NAME or tracker=[A,B]"
        )
    method = _part(resolved, "method")
    return Parts(
        task=_part(resolved, "task"),
        method=method,
        rehearsed_method=PartSettings(method.path, with_embedder(resolved, HASHING)["method"]),
        mode=_part(resolved, "mode"),
        agent=_part(resolved, "agent"),
        rehearsal=_part(resolved, "rehearsal"),
        backbones=backbones,
        judge=None if judge is None else PartSettings(f"default_roles.{JUDGE}", judge),
        trackers=tuple(PartSettings(f"tracker.{name}", node) for name, node in trackers.items()),
    )


def _part(resolved: Mapping[str, Any], group: str) -> PartSettings:
    if resolved.get(group) is None:
        raise ConfigError(
            f"{group}=null leaves nothing to run: choose one; `{command_line('run')} --help` lists the options"
        )
    return PartSettings(group, resolved[group])


def place_of(role: str) -> str:
    """Return the configuration key of a role's backbone."""
    return {GENERATOR: "backbone", EMBEDDER: EMBEDDER}.get(role, f"roles.{role}")
