"""In which settings runs differ, and a short name for each run that says exactly those.

Reads what ``RunSummary`` holds in memory. Only runs that would have the same name need their ``config.yaml``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from ace_bench.core.backbones import backbone_name
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import StoreError
from ace_bench.core.terminal import shown
from ace_bench.report.planned import override_value
from ace_bench.report.records import RunSummary

CHOICES = ("task", "method", "backbone", "mode")
"""Choices of options. Each has settings of its own, which are only compared among runs of the same option."""
_LABELS, _PROTOCOL = "labels", "protocol"
_BACKBONE, _MODEL = "backbone", "backbone.model"
_ABOUT = (*CHOICES, _LABELS, _PROTOCOL, "source")
_COUNTED = ("seed", "attempt")
_TARGET, _FOLDER = "_target_", "folder"
_TITLE = (*CHOICES, _LABELS, _PROTOCOL, *_COUNTED, "limit", "limit.train", "limit.val", "limit.test")
_USUAL: Mapping[str, Any] = MappingProxyType({_PROTOCOL: "paper", "attempt": 1, "limit": None})
"""Settings that every title names, some of them only with other values than these."""
_SEPARATOR = " · "
_LONGEST = 40
"""Maximum length of a value in a name. Longer ones are cut and end with a digest."""
_DIGEST = 64
_SHORT_DIGEST = 8
_DEPENDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "agent": ("agent", "protocol"),
        "embedder": ("backbone", "method"),
        "source": ("task",),
        "data": ("task", "source"),
        "templates": ("task", "method", "agent", "prompts", "protocol"),
    }
)
"""What the default of a setting depends on, other than the option it belongs to."""
_SCOPES = (*CHOICES, _PROTOCOL, "agent", "prompts", "source")
"""All settings that defaults depend on."""
_SCALARS = (str, int, float, bool, type(None))
_VAGUE = ("name", "train", "val", "test")
"""Last parts of a path that mean nothing without the part before."""
_OWN_OPTIONS = ("roles.", "sampling.")
"""Groups that only runs with such settings have. Without them the backbone's own apply."""

Settings = Mapping[str, Any]
"""Settings by their path, such as ``method.refiner.threshold``."""


@dataclass(frozen=True, kw_only=True)
class Differences:
    """``common`` is what all runs share, for a title, and ``labels`` what distinguishes each run.

    ``names`` are the short names of the settings in which the runs differ, by path, and ``values`` their values by
    run: a run without a setting, such as one of another method, lacks it. All labels differ, except for copies of one
    folder, and none is empty.
    """

    common: str
    names: Mapping[str, str]
    values: tuple[Settings, ...]
    labels: tuple[str, ...]

    def text(self, run: int, path: str) -> str:
        """Return the value of a setting of a run as text."""
        return value_text(self.values[run][path]) if path in self.values[run] else "-"


def differences(runs: Sequence[RunSummary]) -> Differences:
    """Compare runs by the settings that can change an answer.

    Paths, concurrency, budgets and trackers only count among runs that have nothing else to tell them apart.
    """
    settings = all_settings(runs)
    paths = differing_paths(settings)
    for read_more in (_contents, _read_config, _folder):
        twins = _twins(paths, settings)
        if not twins:
            break
        added = _added_settings([runs[index] for index in twins], read_more)
        for index, extra in zip(twins, added, strict=True):
            settings[index] = {**settings[index], **extra}
        paths = [*dict.fromkeys(chain(paths, *added))]
    labelled, varied = _with_models(settings, paths)
    names = short_names(varied)
    first = labelled[0] if labelled else {}
    everywhere = {path for path in first if all(path in run_settings for run_settings in labelled)} - {*varied}
    shared = (path for path in _TITLE if path in everywhere and first[path] != _USUAL.get(path, ""))
    common = _SEPARATOR.join(_parts({path: path for path in shared}, first))
    labels = [_SEPARATOR.join(_parts(names, run_settings)) for run_settings in labelled]
    return Differences(
        common=common,
        names=names,
        values=tuple(
            {path: run_settings[path] for path in varied if path in run_settings} for run_settings in labelled
        ),
        labels=tuple(label or common for label in labels),
    )


def _with_models(settings: Sequence[Settings], paths: Sequence[str]) -> tuple[Sequence[Settings], Sequence[str]]:
    """Name a backbone by its model if its option names none. Leave the model out if the name already says it."""
    renamed = [
        {**run_settings, _BACKBONE: backbone_name(run_settings[_BACKBONE], run_settings.get(_MODEL))}
        for run_settings in settings
    ]
    models = {
        (new[_BACKBONE], run_settings[_BACKBONE], run_settings.get(_MODEL))
        for run_settings, new in zip(settings, renamed, strict=True)
    }
    if len(models) > len({name for name, *_ in models}):  # one name for two backbones
        return settings, paths
    varied = dict.fromkeys(_BACKBONE if path == _MODEL else path for path in paths)
    return renamed, sorted(varied, key=lambda path: CHOICES.index(path) if path in CHOICES else len(CHOICES))


def all_settings(runs: Iterable[RunSummary]) -> list[Settings]:
    """Return the settings of each run that can change an answer, by path.

    Also ``source``, ``attempt`` and the digests of its ``data`` and ``templates``. A part that builds a class has the
    name of the class under its own path. Settings of runs that share an identity object are collected once.
    """
    settings_by_key: dict[tuple[object, ...], Settings] = {}
    settings: list[Settings] = []
    for run in runs:
        key = (id(run.identity), id(run.contents), *(getattr(run, name) for name in _ABOUT))
        if key not in settings_by_key:
            settings_by_key[key] = _settings_without_seed(run)
        settings.append({**settings_by_key[key], "seed": run.seed, "attempt": run.attempt})
    return settings


def _settings_without_seed(run: RunSummary) -> Settings:
    settings: dict[str, Any] = {}
    for group, value in run.identity.items():
        if group == "agent":
            settings[group] = _class_of(value)
        settings |= flat(group, value)
    settings |= {name: getattr(run, name) for name in _ABOUT}
    return settings | {"data": _data_name(run.contents.get("data")), "templates": run.contents.get("prompts")}


def _data_name(checksums: object) -> str:
    """Name data by its checksums, and by its file if there is one only."""
    digest = digest_of(checksums)
    if isinstance(checksums, Mapping) and len(checksums) == 1:
        return f"{next(iter(checksums))}@{digest[:_SHORT_DIGEST]}"
    return digest


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the shortest last parts of each path that no other path ends with. A role's settings name the role."""
    paths = list(paths)
    reserved = {*CHOICES, *_COUNTED, *_DEPENDS, *_VAGUE, _LABELS, "limit"}
    names_by_path = {}
    for path in paths:
        parts = path.split(".")
        starts = range(len(parts))[: 2 if parts[0] == "roles" else None]
        names = (".".join(parts[start:]) for start in reversed(starts))
        endings = [f".{other_path}" for other_path in paths if other_path != path]
        free = (
            name
            for name in names
            if name not in reserved and not any(ending.endswith(f".{name}") for ending in endings)
        )
        names_by_path[path] = next(free, path)
    return names_by_path


def setting_text(path: str, value: Any, name: str) -> str:
    """Format a setting for a name: ``finer``, ``threshold=0.5``, ``seed 0``."""
    text = value_text(value)
    if path in CHOICES or path == _FOLDER:
        return text
    return f"{path} {text}" if path in _COUNTED else f"{name}={text}"


def value_text(value: Any) -> str:
    """Format a value of a setting as in an override: long values are cut, and control characters are escaped."""
    return _scalar_text(value) if type(value) in _SCALARS else _text(value)


def _text(value: Any) -> str:
    text = shown(value if isinstance(value, str) else override_value(value))
    if len(text) == _DIGEST and all(char in "0123456789abcdef" for char in text):
        return text[:_SHORT_DIGEST]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 10]}…{digest_of(text)[:_SHORT_DIGEST]}"


_scalar_text = lru_cache(maxsize=4096, typed=True)(_text)
"""Thousands of runs have the same values."""


def differing_paths(settings: Sequence[Settings]) -> list[str]:
    """Return the paths of the settings that differ, in the order of names.

    If several settings always change together, only the first is returned.
    """
    differing, counts = set[str](), Counter[str]()
    kinds: dict[tuple[object, ...], dict[str, Any]] = {}
    for run_settings in settings:
        counts.update(run_settings.keys())
        kind = kinds.setdefault(tuple(run_settings.get(name) for name in _SCOPES), {})
        differing.update(path for path, value in run_settings.items() if kind.setdefault(path, value) != value)
    first: dict[tuple[str, object], Any] = {}
    for kind in kinds.values():  # all runs of a kind have the same scopes
        differing.update(
            path for path, value in kind.items() if first.setdefault((path, _scope(path, kind)), value) != value
        )
    differing |= {path for path, count in counts.items() if count < len(settings) and path.startswith(_OWN_OPTIONS)}
    together: dict[tuple[object, ...], str] = {}
    for path in sorted((path for path in counts if path in differing), key=_order):
        values = (value_text(run_settings[path]) if path in run_settings else None for run_settings in settings)
        together.setdefault((_group(path), *values), path)
    return list(together.values())


def _group(path: str) -> str:
    """Return the part of the settings in which one setting may follow another: all embedders follow the run's."""
    return "embedder" if "embedder" in path else path.partition(".")[0]


def _scope(path: str, settings: Settings) -> object:
    """Return the settings that two runs must share, so that a difference in this one is not part of another option."""
    group = _group(path)
    if path in CHOICES or path in (_LABELS, _PROTOCOL, "limit", *_COUNTED):
        return None
    if path == "agent":
        return settings["task"], settings[_PROTOCOL]
    depends = _DEPENDS.get(group, (group, _PROTOCOL) if group in CHOICES else ())
    return tuple(settings.get(name) for name in depends)


def _order(path: str) -> tuple[int, ...]:
    """Sort choices first, then by depth, a model before the settings beside it, and counted ones last."""
    first = (*CHOICES, _LABELS, _PROTOCOL)
    if path in first:
        return (first.index(path),)
    return len(first) + (path in _COUNTED), path.count("."), not path.endswith(".model")


def _parts(names: Mapping[str, str], settings: Settings) -> Iterator[str]:
    yield from (setting_text(path, settings[path], name) for path, name in names.items() if path in settings)


def _twins(paths: Sequence[str], settings: Sequence[Settings]) -> list[int]:
    """Return the indices of the runs that these settings do not tell apart."""
    values = [
        tuple(value_text(run_settings[path]) if path in run_settings else "" for path in paths)
        for run_settings in settings
    ]
    counts = Counter(values)
    return [index for index, value in enumerate(values) if counts[value] > 1]


def _added_settings(runs: Sequence[RunSummary], read: Callable[[RunSummary], Settings]) -> list[Settings]:
    """Return for each run the further settings in which the runs differ."""
    read_settings = [read(run) for run in runs]
    texts: dict[str, set[str]] = {}
    for run_settings in read_settings:
        for path, value in run_settings.items():
            texts.setdefault(path, set()).add(value_text(value))
    return [
        {path: value for path, value in run_settings.items() if len(texts[path]) > 1} for run_settings in read_settings
    ]


def _contents(run: RunSummary) -> Settings:
    return dict(flat("backbones", run.contents.get("backbones") or {}))


def _read_config(run: RunSummary) -> Settings:
    try:
        return dict(flat("", run.settings))
    except StoreError:
        return {}  # its folder names the run


def _folder(run: RunSummary) -> Settings:
    return {_FOLDER: str(run.folder)}


def flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the settings below a path. The class that a nested part builds is under the path of the part."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    if _TARGET in value and "." in path:
        yield path, _class_of(value)
    for key, part in value.items():
        if key != _TARGET:
            yield from flat(f"{path}.{key}" if path else key, part)


def _class_of(part: Mapping[str, Any]) -> str:
    return str(part.get(_TARGET, "")).rpartition(".")[2]
