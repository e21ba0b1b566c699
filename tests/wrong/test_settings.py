"""Every setting in configs/, given what it cannot be, is refused in one sentence before anything is made or sent."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from omegaconf import DictConfig, ListConfig, OmegaConf

from ace_bench.core.resources import config_folders, options
from tests.launching import CONFIGS, PLAYBOOK
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
    r"collapse|code_runs|bootstrapped|labeled|headroom|percentile|max_learned|generator_reflections)=0"
)
"""All other numbers must be above 0."""

HTTP = (
    "task.source=sample embedder=hashing backbone=openai_compatible backbone.model=m "
    "backbone.base_url=http://127.0.0.1:9/v1 backbone.api_key_env=null"
)
VLLM = "task.source=sample embedder=hashing backbone=vllm backbone.model=m backbone.url=http://127.0.0.1:9"
ROLE = "backbone@roles.reflector=openai_compatible roles.reflector.model=m"
# What the message says beside the key: one case of each form of sentence, and of each rule about several settings.
SAID = {
    "": {
        "name=a/b": "name=a/b must be one word",
        "name=..": "name=.. must be one word",
        "seed=4294967296": "seed=4294967296 must be a whole number from 0 to 4294967295",
        "seed=${nowhere}": "seed cannot be resolved: Interpolation key 'nowhere' not found",
        "labels=true": "labels=true must be one of gold, correctness, none",
        "limit={train: 0}": "limit.train=0 must be a whole number, 1 or more, or null",
        "limit={dev: 3}": "there is no setting limit.dev; there are train, val, test",
        "prompts=nowhere": "prompts=nowhere is neither one of default, short nor a folder",
        "embedder={url: x}": "embedder.model is missing",
        "embedder={url: x, model: m}": "embedder.url=x must be like http://localhost:8000/v1",
        "response_cache=/dev/null": "response_cache=/dev/null cannot be used",
        "budget=5": "budget=5 must be a group of settings (calls, tokens, usd, seconds, shared)",
        "+colour=red": "there is no setting colour",
        "+roles.reflector=5": "roles.reflector=5 must be a group of settings with a _target_",
    },
    HTTP: {
        "backbone.model=null": "backbone.model is not set: name the model as the server does",
        "backbone.base_url=ftp://host": "backbone.base_url=ftp://host must be like http://localhost:8000/v1",
        "backbone.base_url='http://u:p@host/v1'": "backbone.base_url holds an address with a user or a password",
        "backbone.api_key_env=NO_SUCH_KEY": "backbone.api_key_env=NO_SUCH_KEY names a variable that is not set",
        "backbone.api_key_env=SNOWMAN_KEY": "backbone.api_key_env=SNOWMAN_KEY names a variable whose value",
        "+backbone.headers_from_env.X-A=NO_SUCH_KEY": "backbone.headers_from_env.X-A=NO_SUCH_KEY names a variable",
        "+backbone.extra_body.model=other": "backbone.extra_body.model has a setting of its own",
        "+backbone.extra_headers.Authorization=secret": "backbone.extra_headers.Authorization is a secret by its name",
        "backbone.sampling.top_p=2": "backbone.sampling.top_p=2 must be a number from 0 to 1, or null",
        "budget.usd=5": "budget.usd=5 needs prices: set backbone.prices.input",
    },
    VLLM: {
        "backbone.url=null": "backbone.url=http://HOST:PORT of a running server is needed",
        "backbone.launch=true": "and not both",
    },
    f"{HTTP} {ROLE}": {
        "roles.reflector.api_key_env=NO_SUCH_KEY": "roles.reflector.api_key_env=NO_SUCH_KEY names a variable",
        "+roles.reflector.extra_headers.Cookie=secret": "roles.reflector.extra_headers.Cookie is a secret by its name",
    },
    f"{HTTP} backbone.prices={{input: 1, cached_input: 1, output: 1}} {ROLE}": {
        "budget.usd=5": "set roles.reflector.prices.input",
    },
    "backbone@roles.judge=embedded": {"": "this run has no role judge; roles are generator, reflector, curator"},
    "method=ace": {
        "agent.answer_alone=true": "agent.answer_alone is now agent.scaffold=answer_alone",
        "method.reasoning=true": "method.reasoning is now agent.scaffold: json in place of true",
        "agent.replies=official": "agent.replies is now agent.parse_replies, and repaired is lenient",
        "method.after_curation=true": "method.after_curation is now method.measure_post_update, with protocol=official",
        "method.retries=often": "method.retries=often must be one of auto, or a whole number, 0 or more",
        "task=bird_sql method.reflector=rules": "method.reflector=rules needs an agent that acts by tools",
        "backbone@roles.merger=embedded": "this run has no role merger",
        "method.operations=[]": "method.operations=[] must be a list of some of ADD",
        "method.operations=[ADD,BURN]": "method.operations=[ADD, BURN] must be a list of some of ADD, UPDATE",
        "method.refiner.headroom=1": "method.refiner.headroom=1 must be a number from 0 to below 1",
        "method.retrieval.percentile=100": "method.retrieval.percentile=100 must be a percentile from 0 to below 100",
    },
    "method=self_stream_icl": {"labels=none": "needs verdicts, which labels=none hides: use labels=correctness"},
    "method=reflexion": {"mode=offline": "this method carries nothing from sample to sample: use mode=online"},
    "method=awm": {"method.initial=nowhere": "is not a file: give saved workflows, or null"},
    "method=awm_offline": {"labels=correctness": "learns from reference answers; labels=correctness forbids that"},
    "method=reasoning_bank": {"method.reference=true labels=none": "shows reference answers; labels=none forbids that"},
    "method=matts": {
        "method.attempts=1": "leaves nothing to compare: use more, or method=reasoning_bank",
        "method.scaling=sequential method.protocol=authors": "their code runs scaling=parallel alone",
        "method.scaling=both": "method.scaling=both must be one of parallel, sequential",
    },
    "method=icl": {
        "labels=correctness": "method=icl shows reference answers; labels=correctness forbids that: use gold"
    },
    "method=gepa": {
        "labels=none": "method=gepa searches for the best score, and with labels=none there is none",
        "method.max_metric_calls=50 method.max_full_evals=2": "GEPA takes one budget",
        "method.auto=null": "GEPA takes one budget",
        "method.auto=enormous": "method.auto=enormous must be one of light, medium, heavy",
        "method.proposals=4 method.parents=3": "proposals=4 must be a multiple of parents=3",
        "method.proposals=2 method.keep=3": "at least keep=3",
        "method.parents=2": "proposals=1 must be a multiple of parents=2",
        "method.auto=null method.max_metric_calls=3": "method.max_metric_calls=3 is used up by the first evaluation",
    },
    "method=mipro": {"labels=none": "method=mipro searches for the best score, and with labels=none there is none"},
    "method=frozen": {
        "": "method.context is missing: give mode=evaluate mode.context=FILE, or method.context=FILE in another mode",
        "mode=evaluate mode.context=nowhere": "nowhere: the context file cannot be read",
    },
    "method=dc_rs": {"method.initial=nowhere.json": "method.initial=nowhere.json is not a file"},
    "method=combee": {
        "method.update=rewrite": "method=combee merges deltas of a model",
        "method.reflector=rules": "method=combee merges deltas of a model",
    },
    "method=ace protocol=official": {"method.update=rewrite": "method.update: there is no such key"},
    "mode=online method=icl": {"": "Icl optimises on a training split; use mode=offline"},
    "mode=evaluate method=base": {
        "": "mode=evaluate needs a saved context: pass mode.context=<file>",
        f"mode.split=dev mode.context={PLAYBOOK}": "has no split 'dev'",
    },
    "agent=react": {
        "agent.keep_text_replies=false agent.parse_replies=official": "=false needs parse_replies=lenient",
        "agent.memory=execution": "agent.memory=execution needs to know the tools",
        "": "there is no prompt template observation.j2",
    },
    "task=finer": {
        "task.source=real": "ace-bench data finer",
        "task.data_dir=README.md": "task.data_dir=README.md is not a folder",
        "task.data_dir=configs": "configs lacks train.jsonl, val.jsonl, test.jsonl",
        "task.data_dir=configs task.source=sample": "task.source=sample reads the packaged sample set",
    },
    "task=bird_sql": {
        "task.metric=judge task.judge=never": "task.metric=judge needs its judge",
        "task.clock=yesterday": "task.clock=yesterday must be a time such as",
    },
    "task=appworld": {"agent.tools.rules.lists.access=maybe": "lists.access=maybe must be one of constant"},
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


@pytest.mark.parametrize("chosen", SAID)
def test_a_message_says_what_is_wrong(chosen, tmp_path, capsys):
    for wrong, said in SAID[chosen].items():
        assert said in refusal(split(f"{chosen} {wrong}"), tmp_path / "results", capsys), wrong
