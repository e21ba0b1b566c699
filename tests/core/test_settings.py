"""Parts are built from settings that their annotations allow; every mistake names the setting and what it may be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.identity import changed_settings, fill_settings
from ace_bench.core.settings import (
    Count,
    Port,
    Share,
    Similarity,
    Text,
    Whole,
    build,
    check_role_sampling,
    with_role_sampling,
)


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: Count = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    count: Count
    whole: Whole = 0
    port: Port = 1
    share: Share = 0.5
    below: Annotated[float, Meta(ge=0, lt=1)] = 0
    like: Similarity = 1
    name: Text = "a"
    word: Annotated[str, Meta(pattern="[a-z]+", description="a lower-case word")] = "a"
    mode: Literal["on", "off"] = "on"
    flag: bool = False
    many: Sequence[int] = ()
    shares: Mapping[str, float] | None = None
    inner: Inner | None = None
    parts: Mapping[str, Inner] = field(default_factory=dict)
    other: object = None

    def __post_init__(self):
        if self.name == "refused":
            raise SettingError("name=refused is not free")


def make(**settings):
    return build({"_target_": f"{__name__}.Part", "count": 3, **settings}, "a.part")


def test_settings_that_fit_arrive_as_they_are():
    given = {"port": 65535, "share": 1, "below": 0.99, "mode": "off", "many": [1], "shares": {"x": 1.5}, "word": "ab"}
    part = make(**given, inner={"size": 2}, parts={"x": {}}, other={"_target_": f"{__name__}.Inner", "size": 10**12})
    assert {name: getattr(part, name) for name in given} == given
    assert (part.inner, part.parts, part.other) == (Inner(size=2), {"x": Inner()}, Inner(size=10**12))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "a.part.count=0 must be a whole number, 1 or more"),
        ({"count": True}, "a.part.count=true must be a whole number, 1 or more"),
        ({"count": 10**12 + 1}, "a.part.count=1000000000001 is larger than any number that can be used"),
        ({"whole": -1}, "a.part.whole=-1 must be a whole number, 0 or more"),
        ({"port": 65536}, "a.part.port=65536 must be a whole number from 1 to 65535"),
        ({"share": 0}, "a.part.share=0 must be a number above 0 and at most 1"),
        ({"share": float("nan")}, "a.part.share=nan must be a number above 0 and at most 1"),
        ({"below": 1}, "a.part.below=1 must be a number from 0 to below 1"),
        ({"like": 1.1}, "a.part.like=1.1 must be a similarity above 0 and at most 1"),
        ({"name": ""}, "a.part.name= must be a text that is not empty"),
        ({"name": "refused"}, "a.part.name=refused is not free"),
        ({"word": "aB"}, "a.part.word=aB must be a lower-case word"),
        ({"mode": "x" * 81}, f"a.part.mode={'x' * 80}... must be one of on, off"),
        ({"flag": 1}, "a.part.flag=1 must be true or false"),
        ({"many": [1, None]}, "a.part.many=[1, null] must be a list, each item a whole number"),
        ({"shares": {"x": "y"}}, "a.part.shares={x: y} must be a mapping, each value a number, or null"),
        ({"inner": {"size": 0}}, "a.part.inner.size=0 must be a whole number, 1 or more"),
        ({"inner": 3}, "a.part.inner=3 must be a group of settings (size), or null"),
        ({"parts": {"x": {"sise": 1}}}, "there is no setting a.part.parts.x.sise; did you mean a.part.parts.x.size?"),
        ({"zzz": 1}, "there is no setting a.part.zzz; there are count, whole, port, share"),
        ({"_target_": "nowhere.Part"}, "a.part._target_=nowhere.Part cannot be imported"),
        ({"_target_": None}, "a.part={_target_: null, count: 3} must be a group of settings with a _target_"),
        ({"_target_": f"{__name__}.Part", "count": {"_target_": 3}}, "a.part.count={_target_: 3} must be a group"),
    ],
    ids=str,
)
def test_a_mistake_names_the_setting_and_what_it_may_be(settings, message):
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert str(caught.value).startswith(message)


def test_a_setting_that_is_needed_is_named():
    with pytest.raises(ConfigError, match=r"^a\.part\.count is missing"):
        build({"_target_": f"{__name__}.Part"}, "a.part")


def test_settings_of_a_role_go_into_the_backbone_that_answers_it():
    sampling = {"judge": {"temperature": 1, "max_tokens": None}, "curator": {"max_tokens": 5}, "reflector": None}
    plain = {"sampling": {"seed": 0}}
    config = {"backbone": plain, "roles": {"judge": plain, "curator": None}, "sampling": sampling}
    found = with_role_sampling(config)
    assert found["roles"]["judge"]["sampling"] == {"seed": 0, "roles": {"judge": {"temperature": 1}}}
    assert found["backbone"]["sampling"] == {"seed": 0, "roles": {"curator": {"max_tokens": 5}}}
    fixed = {**config, "backbone": {"name": "does not sample"}, "roles": {"judge": "one without settings"}}
    assert with_role_sampling(fixed) == fixed
    check_role_sampling(config)
    for wrong, message in (({"judge": {"temperature": -1}}, r"sampling\.judge\.temperature=-1"), (3, "sampling=3")):
        with pytest.raises(ConfigError, match=f"^{message} must be"):
            check_role_sampling({"sampling": wrong})


def test_settings_differ_by_path_and_new_ones_have_their_defaults():
    old = {"a": 1, "part": {"_target_": "X", "b": 2}, "gone": {"x": 1}}
    new = {"a": 2, "part": {"_target_": "X", "b": 3, "c": 4}, "d": 5}
    assert dict(changed_settings(old, new)) == {"a": 1, "d": None, "gone": {"x": 1}, "part.b": 2, "part.c": None}
    assert fill_settings(old, new) == {**old, "d": 5, "part": {"_target_": "X", "b": 2, "c": 4}}
    assert fill_settings(old, {"part": {"_target_": "Y", "c": 4}}) == old
