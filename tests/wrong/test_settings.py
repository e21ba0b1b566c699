"""Every setting in configs/, given what it cannot be, is refused in one sentence before anything is made or sent."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import DictConfig, ListConfig, OmegaConf

from ace_bench.core.resources import config_folders, options
from tests.launching import CONFIGS, PLAYBOOK, ROOT
from tests.outcomes import outcomes
from tests.wrong.refusing import refusal

GROUPS = ("", "task", "method", "backbone", "mode", "agent", "tracker")
# By what a setting is when nobody sets it. No setting can be a list of a list.
WRONG_KINDS = {
    bool: ("1", "maybe"),
    int: ("0", "-1.5", "true"),
    float: ("0", "-1.5", "nan"),
    str: ("''", "5"),
    type(None): ("0", "''", "-1.5"),
    DictConfig: ("5",),
    ListConfig: ("5",),
}
ALLOWED = re.compile(
    r"method\.retries=5|.*(seed|temperature|top_p|prices\.\w+|retry\.\w+|split_ratio\.\w+|tolerance\.\w+|attention|"
    r"collapse|code_runs|bootstrapped|labeled|percentile|max_learned|generator_reflections|guard_samples)=0"
)
"""All other numbers must be above 0."""

HTTP = (
    "task.source=sample embedder=hashing backbone=openai_compatible backbone.model=m "
    "backbone.base_url=http://127.0.0.1:9/v1 backbone.api_key_env=null"
)
VLLM = "task.source=sample embedder=hashing backbone=vllm backbone.model=m backbone.url=http://127.0.0.1:9"
ROLE = "backbone@roles.reflector=openai_compatible roles.reflector.model=m"
NAMES = {"HTTP": HTTP, "VLLM": VLLM, "ROLE": ROLE, "PLAYBOOK": str(PLAYBOOK)}


def split(command: str) -> list[str]:
    """Split a command at the spaces between overrides."""
    parts: list[str] = []
    for word in command.split(" "):
        if parts and ("=" not in word or parts[-1].count("{") > parts[-1].count("}")):
            parts[-1] += f" {word}"
        elif word:
            parts.append(word)
    return parts


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.setattr("ace_bench.tasks.data._DOWNLOADED", tmp_path / "none")
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.setenv("SNOWMAN_KEY", "\N{SNOWMAN}")

    def run_loop(*_, **__):
        raise AssertionError("the run began")

    monkeypatch.setattr("ace_bench.runners.executing.run_loop", run_loop)


def settings(node: DictConfig, prefix: str) -> Iterator[tuple[str, Any]]:
    """Every setting below a node, with its value."""
    for name in node:
        value = None if OmegaConf.is_interpolation(node, name) else node[name]
        if isinstance(value, DictConfig) and len(value):
            yield from settings(value, f"{prefix}{name}.")
        elif name != "_target_" and not prefix.startswith("backbone.extra_body."):  # what a server takes
            yield f"{prefix}{name}", value


def settings_of(group: str) -> Iterator[tuple[str, str, Any]]:
    """Every option of a group that is built on no other, with each of its settings and its value."""
    if not group:
        top = OmegaConf.load(CONFIGS / "config.yaml")
        own = OmegaConf.masked_copy(top, [key for key in top if key not in ("defaults", "hydra")])
        yield from (("", *one) for one in settings(own, ""))
        return
    for path in options(group, config_folders()).values():
        node = OmegaConf.load(path)
        node.pop("defaults", None)
        node = node.get(group, node)  # methods that set keys of other groups, too
        if "_target_" in node or group == "tracker":  # whose settings are a group of each tracker
            yield from ((f"{group}={path.stem}", *one) for one in settings(node, f"{group}."))


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2))])
@pytest.mark.parametrize(
    "group",
    [
        pytest.param(one, marks=pytest.mark.slow if one in ("agent", "backbone", "method", "task") else ())
        for one in GROUPS
    ],
)
def test_a_value_of_a_wrong_kind_is_refused_by_the_name_of_its_setting(group, turn, tmp_path, capsys):
    """``make test`` gives each setting one of its wrong values, the next setting the next kind of value."""
    tried = [
        (choice, key, f"{key}={given}")
        for place, (choice, key, value) in enumerate(settings_of(group), turn)
        for wrong in [("[[1]]", *WRONG_KINDS[type(value)])]
        for given in (wrong[place % len(wrong)],)
        if not ALLOWED.fullmatch(f"{key}={given}")
    ]
    assert tried
    for choice, key, wrong in tried:
        assert refusal([*filter(None, [choice]), wrong], tmp_path / "results", capsys).startswith(key), (choice, wrong)


CASES = {
    "ace": [
        "method=ace print_config=true",
        "method=ace method.reasoning=true",
        "method=ace agent.replies=official",
        "method=ace method.merge_wording=curator",
        "method=ace method.retries=often",
        "method=ace task=bird_sql method.reflector=rules",
        "method=ace backbone@roles.merger=embedded",
        "method=ace method.operations=[]",
        "method=ace method.operations=[ADD,BURN]",
        "method=ace method.retrieval.percentile=100",
        "method=ace protocol=official method.update=rewrite",
    ],
    "backbones": [
        "HTTP backbone.model=null",
        "HTTP backbone.base_url=ftp://host",
        "HTTP backbone.base_url='http://u:p@host/v1'",
        "HTTP backbone.api_key_env=NO_SUCH_KEY",
        "HTTP backbone.api_key_env=SNOWMAN_KEY",
        "HTTP +backbone.headers_from_env.X-A=NO_SUCH_KEY",
        "HTTP +backbone.extra_body.model=other",
        "HTTP +backbone.extra_headers.Authorization=secret",
        "HTTP backbone.sampling.top_p=2",
        "HTTP budget.usd=5",
        "VLLM backbone.url=null",
        "VLLM backbone.launch=true",
        "HTTP ROLE roles.reflector.api_key_env=NO_SUCH_KEY",
        "HTTP ROLE +roles.reflector.extra_headers.Cookie=secret",
        "HTTP backbone.prices={input: 1, cached_input: 1, output: 1} ROLE budget.usd=5",
        "backbone@roles.judge=embedded",
    ],
    "evaluation": [
        "method=frozen",
        "method=frozen mode=evaluate mode.context=nowhere",
        "mode=evaluate method=base",
        "mode=evaluate method=base mode.split=dev mode.context=PLAYBOOK",
    ],
    "memories": [
        "method=reflexion mode=offline",
        "method=awm method.initial=nowhere",
        "method=awm_offline labels=correctness",
        "method=reasoning_bank method.reference=true labels=none",
        "method=dc_rs method.initial=nowhere.json",
        "method=combee method.update=rewrite",
        "method=combee method.reflector=rules",
    ],
    "optimisers": [
        "method=self_stream_icl labels=none",
        "method=icl labels=correctness",
        "method=gepa labels=none",
        "method=gepa method.max_metric_calls=50 method.max_full_evals=2",
        "method=gepa method.auto=null",
        "method=gepa method.auto=enormous",
        "method=gepa method.proposals=4 method.parents=3",
        "method=gepa method.proposals=2 method.keep=3",
        "method=gepa method.parents=2",
        "method=gepa method.auto=null method.max_metric_calls=3",
        "method=mipro labels=none",
        "mode=online method=icl",
    ],
    "run": [
        "name=a/b",
        "name=..",
        "seed=4294967296",
        "seed=${nowhere}",
        "labels=true",
        "limit={train: 0}",
        "limit={dev: 3}",
        "prompts=nowhere",
        "embedder={url: x}",
        "embedder={url: x, model: m}",
        "response_cache=/dev/null",
        "budget=5",
        "+colour=red",
        "+roles.reflector=5",
    ],
    "tasks": [
        "agent=react agent.keep_text_replies=false agent.parse_replies=official",
        "agent=react agent.memory=execution",
        "agent=react",
        "task=finer task.source=real",
        "task=finer task.data_dir=README.md",
        "task=finer task.data_dir=configs",
        "task=finer task.data_dir=configs task.source=sample",
        "task=bird_sql task.metric=judge task.judge=never",
        "task=bird_sql task.clock=yesterday",
        "task=appworld agent.tools.rules.lists.access=maybe",
        "task=qa task.instruction=Use ${name} here",
        'task=qa task.instruction="Say:${seed}"',
        'task=qa task.instruction="Use ${oc.env:HOME} here"',
        'task=qa task.instruction="Use ${nope} here"',
        'task=qa task.instruction="Use ${ here"',
        'task=qa +task.args={note: "Use ${name} here"}',
    ],
}


@pytest.mark.parametrize("group", CASES)
def test_a_message_says_what_is_wrong(snapshot, group, tmp_path, capsys):
    """One case of each form of sentence, and of each rule about several settings."""

    def refuse(words):
        for name, stands_for in NAMES.items():
            words = words.replace(name, stands_for)
        return refusal(split(words), tmp_path / "results", capsys)

    assert outcomes(refuse, CASES[group], {str(ROOT): "ROOT"}) == snapshot
