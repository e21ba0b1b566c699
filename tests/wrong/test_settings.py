"""Every setting in configs/, given what it cannot be, is refused in one sentence before anything is made or sent."""

import pytest
from omegaconf import DictConfig, OmegaConf

from ace_bench.core.resources import config_folders, options
from tests.launching import CONFIGS
from tests.wrong.refusing import refusal
from tests.wrong.settings import WRONG

CASES = {
    f"{chosen} {wrong}".strip(): (f"{chosen} {wrong}", said)
    for chosen, one in WRONG.items()
    for wrong, said in one.items()
}


def split(command: str) -> list[str]:
    """Split a command at the spaces between overrides."""
    parts: list[str] = []
    for word in command.split(" "):
        if parts and ("=" not in word or parts[-1].count("{") > parts[-1].count("}")):
            parts[-1] += f" {word}"
        elif word:
            parts.append(word)
    return parts


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_setting(case, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "none")
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("SNOWMAN_KEY", "\N{SNOWMAN}")
    command, said = CASES[case]
    assert said in refusal(split(command), tmp_path / "results", capsys)


def test_the_table_is_no_smaller_than_it_was():
    assert len(CASES) >= 218


GROUPS = ("task", "method", "backbone", "mode", "agent", "tracker")


def keys_of(node: DictConfig, prefix: str):
    for name in node:
        inner = None if OmegaConf.is_interpolation(node, name) else node[name]
        if isinstance(inner, DictConfig) and len(inner):
            yield from keys_of(inner, f"{prefix}{name}.")
        elif name != "_target_" and not prefix.startswith("backbone.extra_body."):  # what a server takes
            yield f"{prefix}{name}"


def every_key() -> dict[str, str]:
    """Every key in configs/ with the option that has it. Options that build on another have only its keys."""
    top = OmegaConf.load(CONFIGS / "config.yaml")
    found = dict.fromkeys(
        keys_of(OmegaConf.masked_copy(top, [key for key in top if key not in ("defaults", "hydra")]), ""), ""
    )
    for path in (file for group in GROUPS for file in options(group, config_folders()).values()):
        node = OmegaConf.load(path)
        node.pop("defaults", None)
        node = node.get(path.parent.name, node)  # methods that set keys of other groups, too
        if "_target_" in node:
            choice = f"{path.parent.name}={path.stem}"
            found |= {f"{choice} {key}": choice for key in keys_of(node, f"{path.parent.name}.")}
    return found


@pytest.mark.parametrize("case", KEYS := every_key())
def test_a_value_that_no_setting_can_have(case, tmp_path, capsys):
    key = case.split(" ")[-1]
    for value in ("[[1]]", "nan"):
        said = refusal([*filter(None, [KEYS[case]]), f"{key}={value}"], tmp_path / "results", capsys)
        assert said.startswith(f"{key}={value} must be ")
