"""A word of help where Hydra refuses an override: what the user most likely meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

_HYDRA_ERROR, _MISTAKE = 1, 2
_LAUNCHERS = {"joblib": "joblib", "ray": "ray", "slurm": "submitit"}
"""The package that each launcher comes with."""
_RESULT = re.compile(r"\+?(?:experiment=)?(table|figure)[_=]0*(\w+)|\+?experiment=.*")


@contextmanager
def explain_overrides(configs: Path, arguments: Sequence[str]) -> Iterator[None]:
    """After Hydra's own message on a bad override, name the closest key or option, at no cost to good ones.

    Who asks for a result of the paper, which takes several runs, is told what makes it.
    """
    results = list(filter(None, map(_RESULT.fullmatch, arguments)))
    if results:
        asked = f"{results[0][1] or 'table'}={results[0][2] or 'all'}"
        sys.stderr.write(
            "error: run.py makes one run; all runs of a result of the paper, and its table or figure, are made by "
            f"`python scripts/reproduce.py {asked}`.\n"
        )
        sys.exit(_MISTAKE)
    try:
        yield
    except SystemExit as stop:
        if stop.code == _HYDRA_ERROR:
            sys.stderr.writelines(f"{line}\n" for line in suggestions(configs, arguments))
        raise


def suggestions(configs: Path, arguments: Sequence[str]) -> list[str]:
    """Return one line for each override that names no known group option or key, or one that is not installed."""
    groups = {
        group.relative_to(configs).as_posix(): sorted(path.stem for path in group.glob("*.yaml"))
        for group in configs.rglob("*")
        if group.is_dir()
    }
    chosen = dict(argument.split("=", 1) for argument in arguments if "=" in argument and "@" not in argument)
    lines = []
    for key, value in chosen.items():
        if key in groups:
            if not set(value.split(",")) <= set(groups[key]):
                lines.append(f"{key}={value}: {_closest(value, groups[key])}")
            elif key == "launcher" and value in _LAUNCHERS and find_spec(_LAUNCHERS[value]) is None:
                lines.append(f"{key}={value} needs an extra that is not installed: pip install -e '.[sweeps]'")
        elif not key.startswith(("+", "~", "hydra")) and key not in (known := _keys(configs, groups, chosen)):
            lines.append(f"{key}: there is no such key; {_closest(key, known)}")
    return lines


def _closest(word: str, known: Sequence[str]) -> str:
    matches = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else "`python run.py --help` lists what there is"


def _keys(configs: Path, groups: dict[str, list[str]], chosen: dict[str, str]) -> list[str]:
    top = OmegaConf.load(configs / "config.yaml")
    assert isinstance(top, DictConfig)
    keys = [*groups, *_flat(top)]
    defaults = {
        group: option for entry in top.defaults if isinstance(entry, DictConfig) for group, option in entry.items()
    }
    for group in groups:
        for option in str(chosen.get(group, defaults.get(group))).split(","):  # a sweep chooses several
            keys += [f"{group}.{key}" for key in _option_keys(configs / group, option)]
    return keys


def _option_keys(folder: Path, option: str) -> list[str]:
    """Keys of an option and of the options beside it that it builds on."""
    path = folder / f"{option}.yaml"
    if not path.is_file():
        return []
    node = OmegaConf.load(path)
    assert isinstance(node, DictConfig)
    parents = [entry for entry in node.pop("defaults", []) if isinstance(entry, str) and entry != "_self_"]
    return [*_flat(node), *(key for parent in parents for key in _option_keys(folder, parent))]


def _flat(node: object, prefix: str = "") -> list[str]:
    if not isinstance(node, DictConfig):
        return []
    keys = []
    for name in map(str, node):
        keys.append(f"{prefix}{name}")
        if not OmegaConf.is_interpolation(node, name):
            keys += _flat(node[name], f"{prefix}{name}.")
    return keys
