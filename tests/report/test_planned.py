"""Planned runs with the settings that a user gives: which apply, which win, and how values are written."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ace_bench.core.errors import ConfigError
from ace_bench.report.planned import PlannedRun, left_out, override_value, read_setting, run_overrides
from tests.launching import PARSER
from tests.outcomes import outcomes

PLAN = PlannedRun(overrides=("task=finer", "method=gepa", "mode=offline", "backbone@roles.reflector=gpt_5_1"))
KNOWN = {one.partition("=")[0] for one in PLAN.overrides} | {"backbone", "limit", "seed", "method.k"}
KNOWN.add("roles.reflector.model")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text("aB1 ,=:'\\{}[]é-/", max_size=6)
    | st.sampled_from(["null", "NaN"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=5,
)


def compose(overrides):
    """Refuses settings that do not exist, as Hydra does."""
    if odd := [one for one in overrides if one.partition("=")[0].lstrip("+") not in KNOWN]:
        raise ConfigError(f"{odd[0]} is unknown")
    return {"composed": True}


def test_a_run_is_named_by_its_method_task_and_the_backbones_of_its_roles():
    assert (PLAN.kind, PLAN.names) == (("finer", "gepa", "offline"), ("gepa", "finer", "gpt_5_1"))
    assert PLAN.option("labels") == ""


PLANNED = [
    "limit=20 finer:limit=5",
    "finer:limit=5 limit=20",
    "limit=1 limit=2",
    "+limit=1",
    "gepa:method.k=3 ace:method.k=4 formula:limit=1",
    "gpt_5_1:roles.reflector.model=x",
    "limit=3 method.nosuch=1 seed=2",
    "backbone=embedded",
    "method.k=1 method=ace",
]


def test_settings_that_apply_and_exist_are_taken_and_the_special_ones_win(snapshot):
    """The embedded backbone answers for all roles, and options come before their settings."""

    def answer(line):
        settings = line.split()
        return f"{' '.join(run_overrides(PLAN, settings, compose))}\nleft out: {left_out(PLAN, settings, compose)}"

    assert outcomes(answer, PLANNED) == snapshot


@pytest.mark.parametrize(
    ("text", "only", "path", "chooses"),
    [
        ("limit=20", "", ("limit",), True),
        ("gepa:+method.k=a:b=c", "gepa", ("method", "k"), False),
        ("backbone@roles.reflector=x", "", ("roles", "reflector"), True),
        ("finer:backbone@roles.judge.deep=x", "finer", ("roles", "judge", "deep"), True),
    ],
)
def test_a_setting_says_for_whom_it_is_and_where(text, only, path, chooses):
    setting = read_setting(text)
    assert (str(setting), setting.only, setting.path, setting.chooses) == (text, only, path, chooses)


def test_a_value_that_cannot_be_parsed_is_named():
    with pytest.raises(ConfigError, match=r"^gepa:limit=\[1 cannot be parsed: "):
        _ = read_setting("gepa:limit=[1").value


@settings(deadline=None)
@given(value=VALUES)
@example(value="${oc.env:HOME}")
@example(value={"a, b: c": ["it's \\${seed}"]})
def test_a_value_is_read_as_it_was_written(value):
    def composed(parsed):
        return OmegaConf.to_container(OmegaConf.create({"key": parsed}), resolve=True)["key"]

    assert composed(PARSER.parse_override(f"key={override_value(value)}").value()) == value
    setting = read_setting(f"gepa:key={override_value(value)}")
    assert (setting.only, composed(setting.value)) == ("gepa", value)
