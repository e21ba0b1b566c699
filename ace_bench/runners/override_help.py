"""Replaces Hydra's errors about overrides by one sentence with the likely fix."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from hydra.errors import CompactHydraException, HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import GrammarParseError, OmegaConfBaseException

from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.program import command_line
from ace_bench.core.resources import missing_extra, missing_package, options
from ace_bench.core.secrets import refuse_secret_arguments
from ace_bench.core.terminal import write
from ace_bench.runners.planning import Composer
from ace_bench.runners.settings import BySplit

_FAILED = 1
_FEW = 24
"""The maximum number of names that a message lists."""
_TAKING = ("--config-name", "-cn", "--config-path", "-cp", "--package", "-p")
"""Options of Hydra that take the next argument."""
_MERGING = "Error merging override "
_UNRESOLVED = "Error resolving interpolation '${protocol}"
_HALF = "${ begins the name of a setting; write \\${ where it is text"
_LIMIT = "limit"
_AGENT = "agent"
_KEYED = ("task", "method", "mode", _AGENT)
"""Groups whose options decide what a protocol sets."""
FULL_ERROR = "HYDRA_FULL_ERROR"
"""The environment variable by which a user asks for Hydra's errors in full."""
_LAUNCHERS = {"ray": "ray", "slurm": "submitit"}
"""The package that a launcher needs."""
_NOT_IN_STRUCT = re.compile(r"Key '(.+?)' is not in struct")
_RESULT = re.compile(r"\+?(?:experiment=)?(table|figure)[_=]0*(\w+)|\+?(experiment)=(seed_\w+)")

_REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "backbone.client": "ace-bench has one HTTP client; leave it out",
        "backbone.connections": "connections stay open as long as they are used; leave it out",
        "backbone.rate.requests_per_minute": "set concurrency or max_calls_in_flight instead",
        "backbone.rate.tokens_per_minute": "set concurrency or max_calls_in_flight instead",
        "backbone.server.arguments": "start another server yourself and set backbone.url",
        "backbone.server.block_size": "use backbone.server.flags=[--block-size,N]",
        "backbone.server.dtype": "use backbone.server.flags=[--dtype,NAME]",
        "batch": "calls go to the server one by one; leave it out",
        "method.bullet_tokens": "a bullet has at most 1,000 tokens",
        "method.curator_every": "the Curator works after each step",
        "method.curator_top_k": "use method.curator_sees=NUMBER",
        "method.merge_wording": "the older text of merged bullets stays",
        "method.refiner.headroom": "pruning ends at method.refiner.max_tokens",
        "method.token_budget": "the Curator's prompt names method.refiner.max_tokens",
        "method.unknown_section": "an operation on an unknown section is rejected",
        "metrics_port": "ace-bench view and the trackers show a run while it goes on",
        "print_config": "use --cfg job",
    }
)
"""What to do instead of each setting of 0.3 that is gone."""


@contextmanager
def explain(folders: Sequence[Path], arguments: Sequence[str]) -> Iterator[None]:
    """Raise ``ConfigError``, one sentence with the closest key or option, in place of Hydra's errors.

    ``folders`` hold the config groups. Arguments that hold a secret are rejected: Hydra writes a sweep's arguments to a
    file.
    """
    refuse_secret_arguments(arguments)
    try:
        yield
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        text = explanation(error, folders, arguments)
        if text is None or FULL_ERROR in os.environ:
            raise
        raise ConfigError(text) from error


@contextmanager
def raised_by_hydra() -> Iterator[None]:
    """Let Hydra raise its errors, which it prints in many lines else; an error in a sweep's run ends the program."""
    before = os.environ.get(FULL_ERROR)
    os.environ[FULL_ERROR] = "1"
    try:
        yield
    except CompactHydraException as error:
        if type(error) is not CompactHydraException:
            raise
        write(f"{error}\n", sys.stderr)  # its runs have already printed their errors
        sys.exit(_FAILED)
    finally:
        if before is None:
            del os.environ[FULL_ERROR]


def explanation(
    error: Exception, folders: Sequence[Path], arguments: Sequence[str], composer: Composer | None = None
) -> str | None:
    """Describe an error of Hydra in one sentence with the likely fix.

    Other errors than those of overrides give ``None``.

    For ``table=2`` and the like, which need several runs, it names the command that makes them. ``composer`` has read
    the files of the folders already.
    """
    results = list(filter(None, map(_RESULT.fullmatch, arguments)))
    if results:
        requested = "=".join(filter(None, results[0].groups()))
        return (
            f"`{command_line('run')}` makes one run; all runs of a result, and its table or figure, are made by "
            f"`{command_line('reproduce')} {requested}`"
        )
    lines = [*suggestions(folders, arguments, composer), *filter(None, [missing_extra(error)])]
    if lines:
        return str(lines[0])
    if isinstance(error, ValueError) and (key := next(filter(None, map(_endless_number, arguments)), None)):
        return f"{key} is larger than any number that can be used"
    # Hydra raises a ValueError for task=null, but other code may raise one, too.
    if isinstance(error, ValueError):
        return None
    return _explained_by_cause(error, folders, arguments) or _short_message(error)


def _endless_number(argument: str) -> str:
    """Return the key of a number that is longer than Python reads, "" for any other argument."""
    key, _, value = argument.partition("=")
    return key if re.search(r"\d{4000}", value) else ""


def _explained_by_cause(error: Exception, folders: Sequence[Path], arguments: Sequence[str]) -> str | None:
    """Return what the cause of an error says, where that is one of ours, or names a key of a group."""
    if isinstance(error.__cause__, AceBenchError):
        return str(error.__cause__)
    if isinstance(error, GrammarParseError):
        return f"{error.full_key} cannot be read: {_HALF}"
    unknown = _NOT_IN_STRUCT.search(str(error.__cause__))
    if unknown is None:
        return None
    key = str(error).partition("'")[2].partition("'")[0]
    group = key.removesuffix(f".{unknown[1]}")
    if group == _LIMIT:
        return _added_limit(unknown[1])
    if lacking := _options_without(key, folders, arguments):
        options, setting = " and ".join(lacking), key.partition(".")[2]
        verb = "have" if len(lacking) > 1 else "has"
        return f"{options} {verb} no setting {setting}: leave {options} out, or make its runs without {key}"
    return f"{group} has no setting {unknown[1]}; `{command_line('run')} --cfg job` shows it"


def _options_without(key: str, folders: Sequence[Path], arguments: Sequence[str]) -> list[str]:
    """Return the options that a command names for the group of a key and that lack the key, as ``method=base``."""
    group = key.partition(".")[0]
    values = [value for name, _, value in (argument.partition("=") for argument in arguments) if name == group]
    options = [f"{group}={option}" for option in _named_options(values[-1])] if values else []
    compose = Composer(folders).compose
    with suppress(HydraException, OmegaConfBaseException):
        return [option for option in options if key not in _flat(compose([option])[0])]
    return []


def _added_limit(split: str) -> str:
    """Say how to limit a split that a preset does not limit."""
    return f"the preset limits other splits than {split}: write +{_LIMIT}.{split}=NUMBER to limit this one, too"


def _short_message(error: Exception) -> str:
    """Shorten Hydra's message about an override of a known key."""
    message = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        return f"{error.override} cannot be read: {_readable(str(error.override))}"
    quoted = message.partition("'")[2].partition("'")[0]
    if message.startswith(_UNRESOLVED):
        possible = message.rpartition(": ")[2].split(", ")
        keyed = next((group for group in _KEYED if group not in possible), quoted)
        advice = "; a task of your own names its agent in its file, by /agent@_global_.agent: NAME in its defaults"
        return f"{keyed} must be one option: write {keyed}=NAME, without brackets{advice * (keyed == _AGENT)}"
    if message.startswith("Ambiguous"):
        return f"{quoted} gives several values: add --multirun for a sweep, or write [a,b] for a list"
    if message.startswith(_MERGING):
        return _unmergeable(message.removeprefix(_MERGING), error)
    if "appears more than once in the final defaults list" in message:
        quoted = message.partition(" ")[0]
    if "is already at" in message or "appears more than once" in message:
        return f"{quoted} exists already: write {quoted}=... without the +"
    shortened = message.partition(" To append")[0].partition(" Config search path")[0].rstrip(".")
    return f"{shortened}; `{command_line('run')} --help` lists the options"


def _unmergeable(override: str, error: Exception) -> str:
    """Say why a value does not fit its place: half an interpolation, or one value in the place of a group."""
    if isinstance(error.__cause__, GrammarParseError):
        return f"{override} cannot be read: {_HALF}"
    return f"{override} must be a group of settings: write {override.partition('=')[0]}.NAME=VALUE"


def _readable(override: str) -> str:
    """Return how an override is written that Hydra cannot read."""
    key, _, value = override.partition("=")
    if value.startswith("~"):
        return f'shells leave a ~ behind = as it is; write "{key}=$HOME{value[1:]}"'
    advice = "write key=value, close brackets, and quote other characters than words"
    quotable = value and not set(value) & set("'\"[]{}()\\")
    return f"{advice}, with quotes that the shell leaves in place: '{key}=\"{value}\"'" if quotable else advice


def suggestions(folders: Sequence[Path], arguments: Sequence[str], composer: Composer | None = None) -> list[str]:
    """Return one line for each override that names no known group option or key, or one that is not installed.

    Wrong options come first, because the valid keys depend on them.
    """
    names = {
        group.relative_to(folder).as_posix() for folder in folders for group in folder.rglob("*") if group.is_dir()
    }
    groups = {name: options(name, folders) for name in sorted(names)}
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    lines = [
        f"{key}={value}: {_suggest(unknown[0], [*groups[group]])}"
        for key, value in settings.items()
        if (group := key.partition("@")[0]) in groups
        and (unknown := [option for option in _named_options(value) if option not in groups[group]])
    ]
    lines += [
        f"{argument} has no value: write {argument}=..."
        for argument, before in zip(arguments, ["", *arguments], strict=False)
        if "=" not in argument and not argument.startswith(("-", "~")) and before not in _TAKING
    ]
    package = _LAUNCHERS.get(launcher := settings.get("launcher", ""))
    if package is not None and find_spec(package) is None:
        lines.append(str(missing_package(f"launcher={launcher}", package)))
    with suppress(HydraException, OmegaConfBaseException):  # the error is not one of names
        places, keys = _places_and_keys(composer or Composer(folders), groups, settings)
        lines += filter(None, (_wrong_place(key, groups, places) or _unknown(key, keys) for key in settings))
        deleted = [argument[1:].partition("=")[0] for argument in arguments if argument.startswith("~")]
        lines += [
            f"~{name}: there is nothing of this name to leave out; {_suggest(name, keys)}"
            for name in deleted
            if name not in keys
        ]
        lines += [f"~{name}: it cannot be left out; choose with {name}=..." for name in deleted if name in groups]
    return lines


def _wrong_place(key: str, groups: Mapping[str, object], places: Sequence[str]) -> str:
    """Say where a second option of a group can go, "" if ``key`` is one of these places."""
    group, _, package = key.partition("@")
    if not package or group not in groups or key in places:
        return ""
    packages = ", ".join(name.partition("@")[2] for name in places if name.startswith(f"{group}@"))
    return f"{key}: no {group} goes there" + (f"; there are {packages}" if packages else "")


def _places_and_keys(
    composer: Composer, groups: Mapping[str, Mapping[str, Path]], settings: Mapping[str, str]
) -> tuple[Sequence[str], list[str]]:
    """Return the places for second options and the keys that there are under the options that exist."""
    requested = {
        key: [option for option in _named_options(value) if option in groups.get(key.partition("@")[0], {})]
        for key, value in settings.items()
    }
    keys = dict.fromkeys(groups)
    free = {key: options for key, options in requested.items() if options and "@" not in key}
    places = composer.places([f"{key}={options[0]}" for key, options in free.items()])
    chosen = free | {key: options for key, options in requested.items() if options and key in places}
    for turn in range(max(map(len, chosen.values()), default=1)):  # a sweep names several options
        config, _ = composer.compose([f"{key}={options[turn % len(options)]}" for key, options in chosen.items()])
        keys |= dict.fromkeys(_flat(config))
    return places, [*keys]


def _unknown(key: str, keys: Sequence[str]) -> str:
    """Say what a key may have been meant for, "" if it is known."""
    if key.partition("@")[0] in keys or key.startswith(("+", "~", "hydra")):
        return ""
    parent, _, last = key.rpartition(".")
    siblings = {name.rpartition(".")[2]: name for name in keys if parent and name.rpartition(".")[0] == parent}
    if parent == _LIMIT and last in BySplit.__dataclass_fields__:
        return _added_limit(last) if siblings else f"{key}: write {_LIMIT}={{{last}: NUMBER}} in quotes"
    if key in _REMOVED:
        return f"{key} is gone: {_REMOVED[key]}"
    if parent.startswith("roles.") and not siblings:
        return f"{key}: {parent} has no backbone of its own: give it one by backbone@{parent}=NAME"
    close = get_close_matches(last, siblings, n=1, cutoff=0.5)
    return f"{key}: there is no such key; " + (f"did you mean {siblings[close[0]]}?" if close else _suggest(key, keys))


def _named_options(value: str) -> list[str]:
    """Return the options that an override names. A sweep or a list can name several."""
    return value.strip("[]").replace(" ", "").split(",")


def _suggest(word: str, names: Sequence[str]) -> str:
    matches = get_close_matches(word, names, n=1)
    if matches and word != "null":
        return f"did you mean {matches[0]}?"
    return (
        f"there are {', '.join(names)}" if len(names) <= _FEW else f"`{command_line('run')} --help` lists the options"
    )


def _flat(node: object, prefix: str = "") -> list[str]:
    if not isinstance(node, DictConfig):
        return []
    keys = []
    for name in map(str, node):
        keys.append(f"{prefix}{name}")
        if not OmegaConf.is_interpolation(node, name):
            keys += _flat(node[name], f"{prefix}{name}.")
    return keys
