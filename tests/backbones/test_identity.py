"""What of a backbone's settings tells runs apart: the same for the run folder's digest and for tables."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError
from ace_bench.core.identity import backbone_settings
from ace_bench.core.settings import build
from tests.launching import composed

_URL = {"model": "m", "url": "http://localhost:1"}
SERVED = {"openai_compatible": {"model": "m"}, "vllm": _URL, "llama_cpp": _URL}
OTHERS = (
    {"max_string": 9, "max_items": 9},
    {"x": "y"},
    ["x"],
    7,
    0.5,
    True,
    "json_object",
    "http://localhost:2/v1",
    "mp",
    "max_completion_tokens",
    70_000,
)
"""Of these each setting but how to get a server (``url`` or ``launch``) takes one."""

AZURE = {"api_version": "2024-10-21", "deployment": "mine", "entra": False}
"""These fit together only, so no setting takes another value alone."""


def node(option: str) -> dict[str, Any]:
    found = OmegaConf.to_container(composed(f"backbone={option}")[0].backbone, resolve=True)
    assert isinstance(found, dict)
    return found | SERVED.get(option, {})


def leaves(value: Mapping[str, Any], *path: str) -> Iterator[tuple[str, ...]]:
    for key, part in value.items():
        if isinstance(part, Mapping) and part:
            yield from leaves(part, *path, key)
        elif key not in ("_target_", "launch"):
            yield (*path, key)


def with_other(settings: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    found = dict(deepcopy(settings))
    part = found
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return found


def identity(settings: Mapping[str, Any]) -> Any:
    return build(settings, "backbone").identity


@pytest.mark.parametrize("option", ["embedded", "gpt_5_1", "vllm", "qwen2_5_coder_0_5b", "llama_cpp", "smollm2"])
def test_a_setting_tells_runs_apart_in_tables_where_it_does_in_their_folders(option):
    settings = node(option)
    usual, not_tried = identity(settings), set()
    for path in leaves(settings):
        for other in OTHERS:
            changed = with_other(settings, path, other)
            try:
                found = identity(changed)
            except ConfigError:
                continue  # not a value for this setting
            assert (found != usual) == (backbone_settings(changed) != backbone_settings(settings)), (path, other)
            break
        else:
            not_tried.add(path[-1])
    assert not_tried <= {"url", *AZURE}


def test_azure_tells_no_runs_apart_nor_does_the_client_of_older_folders():
    settings = node("gpt_5_1")
    azure = {**settings, "base_url": "https://name.openai.azure.com", "azure": AZURE}
    older = {**settings, "client": "openai"}
    assert backbone_settings(azure) == backbone_settings(settings) == backbone_settings(older)
    assert identity(azure) == identity(settings)
