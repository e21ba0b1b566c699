"""Conditions that runs share: backbone, limit, prompts, embedder and data. No table or figure mixes them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from ace_bench.core.embedders import default_embedder
from ace_bench.core.encoding import digest_of
from ace_bench.core.identity import ACCESS, GROUPS, TOP, changed_settings
from ace_bench.report.configurations import Configurations
from ace_bench.report.planned import (
    PlannedRun,
    Setting,
    Settings,
    key_of,
    override_value,
    read_setting,
    settings_for,
)
from ace_bench.report.records import RunSummary, marks_of
from ace_bench.store.processes import parse_command

_NOT_IN_KEYS = re.compile(r"[^\w.@/-]")
_PATH, _OTHER = re.compile(r"(?:\w+\.)+(?=\w+=)"), re.compile(r"[^\w.-]+")
_LONGEST = 180
"""Maximum length of the conditions in a file name."""
_EMBEDDED = "embedded"
_SAMPLE = "task.source=sample"
_NAMED = (("backbone",), ("backbone", "model"), ("task", "source"))
"""Settings that the name or the marks of the conditions already contain."""
CHOOSING = (*GROUPS, *TOP, "backbone", "roles", "sampling", "protocol")
"""First parts of the settings that choose runs."""
_CONDITIONS = ("backbone", "limit", "prompts", "embedder")
_REPRODUCE = "reproduce"
_MISSING = object()


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Conditions that runs share: overrides added to their plan, and whether they are simulated or use sample data.

    ``name`` is the model's. ``changes`` are those overrides that can change an answer, as shown in titles and file
    names. ``source`` is ``real`` or ``sample``, or "" without runs.
    """

    backbone: str
    name: str
    overrides: tuple[str, ...]
    changes: tuple[str, ...] = ()
    simulated: bool = False
    source: str = ""

    @property
    def for_all(self) -> tuple[str, ...]:
        """Its overrides for all runs, without those for one method or task."""
        return tuple(override for override in self.overrides if not read_setting(override).only)

    @property
    def comparable(self) -> bool:
        """Whether its numbers are comparable with published ones."""
        return not self.simulated and self.source != "sample"

    @property
    def marks(self) -> tuple[str, ...]:
        """Why its numbers are not comparable with published ones."""
        return ("simulated",) * self.simulated + ("sample data",) * (self.source == "sample")

    @property
    def about(self) -> Mapping[str, object]:
        """The fields of each line of CSV that describe them."""
        return {"conditions": " ".join(self.overrides), "simulated": self.simulated, "source": self.source}

    @property
    def label(self) -> str:
        """The text for titles, such as ``embedded, limit=40 [simulated, sample data: ...]``."""
        settings = ", ".join((self.name, *self.changes))
        return f"{settings} {marks_of(simulated=self.simulated, source=self.source)}".rstrip()

    @property
    def slug(self) -> str:
        """The text for file names, with the last part of each setting's key."""
        changes = (_PATH.sub("", part) for part in self.changes)
        slug = "-".join(_OTHER.sub("_", part).strip("_") for part in (self.name, *changes, *self.marks))
        return slug if len(slug) <= _LONGEST else f"{slug[:_LONGEST]}-{digest_of(slug)[:8]}"


@dataclass(frozen=True, kw_only=True)
class Selector:
    """Groups runs by their conditions: backbone, limit, prompt set, embedder, real or sample data, simulated or not.

    The settings for one method or task that ``reproduce`` was given are conditions of all runs that it made.
    ``extra`` settings select the runs made with them. ``plans`` are runs of all kinds, to find out which settings can
    change an answer: only those are named.
    """

    configurations: Configurations
    plans: Sequence[PlannedRun]
    extra: Sequence[str] = ()

    def variants(self, runs: Iterable[RunSummary]) -> dict[Variant, list[RunSummary]]:
        """Return the chosen runs by their conditions."""
        members = defaultdict[str, list[RunSummary]](list)
        asked = dict[Path, tuple[str, ...]]()
        for run in runs:
            settings = self.configurations.of_run(run)
            if self._is_chosen(run, settings):
                conditions = [settings.get(key) for key in ("backbone", "prompts", "embedder")]
                limit = None if self._has_own_limit(run) else settings.get("limit")
                asked[run.folder] = tuple(_asked(run.sweep))
                members[digest_of([*conditions, limit, run.source, run.simulated, asked[run.folder]])].append(run)
        # Settings for one task or method make runs of one variant differ in their conditions.
        variants: dict[Variant, list[RunSummary]] = {}
        for alike in members.values():
            variants.setdefault(self._variant(alike[0], asked[alike[0].folder]), []).extend(alike)
        return variants

    def _has_own_limit(self, run: RunSummary) -> bool:
        """Whether a run's limit comes from its own plan, as in table 11, and so is no condition."""
        limit = run.identity["limit"]
        plans = (plan.overrides for plan in self.plans if plan.kind[0] == run.task)
        settings = (read_setting(text) for text in chain.from_iterable(plans) if text.startswith("limit="))
        return limit is not None and any(setting.value == limit for setting in settings)

    def planned(self, backbone: str) -> Variant:
        """Return the conditions of runs with a backbone, or with the one that ``extra`` names."""
        chosen = self._backbone_settings(backbone)
        option = chosen[0].partition("=")[2]
        settings, usual = (self.configurations(overrides)["backbone"] for overrides in (chosen, chosen[:1]))
        simulated = option == _EMBEDDED or bool(settings.get("simulated"))
        source = "sample" if _SAMPLE in self.extra or (simulated and "task.source=real" not in self.extra) else ""
        variant = Variant(
            backbone=option,
            name=self._name(option, settings, usual),
            overrides=(chosen[0],),
            simulated=simulated,
            source=source,
        )
        return self._with_extra(variant)

    def _is_chosen(self, run: RunSummary, settings: Settings) -> bool:
        """Whether a run was made with the ``extra`` settings. Those that do not exist in it are ignored."""
        if {"sample": "task.source=real", "real": _SAMPLE}[run.source] in self.extra:
            return False
        return all(self._has(run, settings, setting) for setting in self._settings(run))

    def _has(self, run: RunSummary, settings: Settings, setting: Setting) -> bool:
        if setting.path == ("protocol",):
            return bool(run.protocol == str(setting.value).partition("@")[0])
        if setting.path == ("backbone",) and run.backbone != setting.value:
            # Its identity has no address and no limits.
            chosen = self.configurations.identity(self._backbone_settings(run.backbone))
            return bool(chosen["backbone"] == settings["backbone"])
        value = _lookup(settings, setting.path)
        return value is _MISSING or _has_value(setting.value, value)

    def _settings(self, run: RunSummary) -> list[Setting]:
        """Return the ``extra`` settings for a run, the last one of each key."""
        return list({setting.path: setting for setting in settings_for((run.method, run.task), self.extra)}.values())

    def _backbone_settings(self, backbone: str) -> list[str]:
        """Return the settings of ``extra`` for a backbone, first its option: ``backbone`` unless they name another."""
        overrides = [setting.override for setting in map(read_setting, self.extra) if setting.path[0] == "backbone"]
        options = [override for override in overrides if key_of(override) == "backbone"] or [f"backbone={backbone}"]
        return [options[-1], *(override for override in overrides if key_of(override) != "backbone")]

    def _variant(self, run: RunSummary, asked: Sequence[str]) -> Variant:
        settings = run.settings
        usual = self._usual_backbone(run, settings)
        top = {"limit": None, "prompts": "default", "embedder": default_embedder(simulated=run.simulated)}
        chosen = [setting.path[0] for setting in self._settings(run)]
        overrides = [
            f"backbone={run.backbone}",
            *_changed_backbone(settings["backbone"], usual),
            *(
                f"{key}={override_value(run.identity[key])}"
                for key, value in top.items()
                if key not in chosen
                and run.identity[key] != value
                and not (key == "limit" and self._has_own_limit(run))
            ),
            *([_SAMPLE] if run.source == "sample" else []),
        ]
        return self._with_extra(
            Variant(
                backbone=run.backbone,
                name=self._name(run.backbone, settings["backbone"], usual),
                overrides=tuple(overrides),
                simulated=run.simulated,
                source=run.source,
            ),
            asked,
        )

    def _name(self, option: str, settings: Settings, usual: Settings) -> str:
        """Return the model's name, or the option's name if the model is its default."""
        model = settings.get("model")
        if model is None or model == usual.get("model"):
            return option
        # The embedded reader has the same model name when it is served.
        return (
            f"{model} over {option}" if self.configurations.fit([f"backbone={override_value(model)}"]) else str(model)
        )

    def _usual_backbone(self, run: RunSummary, settings: Settings) -> Settings:
        """Return the default settings of a backbone option for a run's seed, concurrency and results folder."""
        equal = [
            f"{key}={override_value(settings[key])}" for key in ("seed", "concurrency", "results") if key in settings
        ]
        overrides = [f"backbone={run.backbone}", *equal]
        return (
            self.configurations(overrides)["backbone"] if self.configurations.fit(overrides) else {}
        )  # it may no longer exist

    def _with_extra(self, variant: Variant, asked: Sequence[str] = ()) -> Variant:
        extra = {key_of(text): text for text in (*asked, *self.extra)}
        kept = (override for override in variant.overrides if key_of(override) not in extra)
        first = ("backbone=", "backbone.")
        overrides = sorted(
            (*kept, *extra.values()),
            key=lambda override: (*(not override.startswith(way) for way in first), override),
        )
        chosen = extra.get("backbone", "").removeprefix("backbone=")
        completed = replace(variant, overrides=tuple(overrides), backbone=chosen or variant.backbone)
        return replace(completed, changes=tuple(self._changes(completed)))

    def _changes(self, variant: Variant) -> Iterator[str]:
        """Yield those overrides of a variant that can change an answer, for titles."""
        usual = (f"backbone={variant.backbone}", f"embedder={default_embedder(simulated=variant.simulated)}")
        plans = list({plan.kind: plan for plan in self.plans}.values())

        @cache  # composing takes 0.2 s, so only as many plans are composed as are needed
        def identity(plan: PlannedRun, overrides: tuple[str, ...]) -> Settings:
            return self.configurations.identity(self.configurations.overrides(plan, overrides))

        for setting in map(read_setting, variant.overrides):
            if setting.path in _NAMED or setting.path[0] not in CHOOSING:
                continue
            users = [plan for plan in plans if setting.is_for(plan.names)]
            if any(
                _lookup(identity(plan, variant.overrides), setting.path) != _lookup(identity(plan, usual), setting.path)
                for plan in (users[:1] if setting.path[0] == "backbone" else users)  # a backbone is the same for all
            ):
                yield str(setting).removeprefix("+").removeprefix("backbone.")


def _asked(command: str) -> Iterator[str]:
    """Yield the settings of a recorded ``reproduce`` that can change an answer and are no other condition."""
    _, name, *words = parse_command(command) or ("", "")
    for word in words if name == _REPRODUCE else ():
        setting = read_setting(word)
        condition = not setting.only and (setting.path[0] in _CONDITIONS or setting.path == ("task", "source"))
        if "=" in word and setting.path[0] in CHOOSING and not condition:
            yield word


def _changed_backbone(settings: Settings, usual: Settings) -> Iterator[str]:
    """Yield the overrides that change the ``usual`` settings of a backbone into ``settings``."""
    for path, value in changed_settings(settings, usual, "backbone"):
        keys = path.split(".")[1:]
        is_retired = keys[0] in ACCESS and keys[0] not in usual  # an older version reached servers by other settings
        if not is_retired and _lookup(settings, keys) is not _MISSING:
            key = _NOT_IN_KEYS.sub("_", path)  # the folder of a run may hold anything
            yield f"{'+' * (_lookup(usual, keys) is _MISSING)}{key}={override_value(value)}"


def _lookup(config: Settings, path: Sequence[str]) -> Any:
    value: Any = config
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _has_value(setting: Any, value: Any) -> bool:
    """Whether a value agrees with a setting. It is true for the choice of an option, which cannot be checked."""
    if isinstance(value, Mapping) and isinstance(setting, Mapping):
        return all(_has_value(wanted, value.get(key)) for key, wanted in setting.items())
    return bool(setting == value) or (isinstance(value, Mapping) and isinstance(setting, str))
