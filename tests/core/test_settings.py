"""Parts are built from settings that their annotations allow; every mistake names the setting and what it may be."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from ace_bench.core import settings
from ace_bench.core.errors import ConfigError, SettingError
from ace_bench.core.settings import (
    Count,
    Port,
    Share,
    Similarity,
    Text,
    build,
    check,
    make_part,
)
from tests.outcomes import as_texts, outcome, outcomes


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: Count = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    count: Count
    below: Annotated[float, Meta(ge=0, lt=1)] = 0
    like: Similarity = 1
    share: Share = 0.5
    port: Port = 1
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
        if self.name == "odd":
            raise ValueError("an odd name")


class Wrapper:
    """Takes the settings of another class besides its own, one of which it decides itself."""

    def __init__(self, *, size: Count = 1, **inner: Annotated[Any, Part]) -> None:
        self.size, self.inner = size, inner


class Outer:
    def __init__(self, **inner: Annotated[Any, Wrapper]) -> None:
        self.inner = inner


def make(**settings):
    return build({"_target_": f"{__name__}.Part", "count": 3, **settings}, "a.part")


def test_settings_that_fit_arrive_as_they_are():
    given = {"port": 65535, "share": 1, "below": 0.99, "mode": "off", "many": [1], "shares": {"x": 1.5}, "word": "ab"}
    part = make(**given, inner={"size": 2}, parts={"x": {}}, other={"_target_": f"{__name__}.Inner", "size": 10**12})
    assert {name: getattr(part, name) for name in given} == given
    assert (part.inner, part.parts, part.other) == (Inner(size=2), {"x": Inner()}, Inner(size=10**12))


SETTINGS = [
    '{"count": 0}',
    '{"count": true}',
    '{"count": 1000000000001}',
    '{"port": 65536}',
    '{"share": NaN}',
    '{"below": 1}',
    '{"like": 1.1}',
    '{"name": ""}',
    '{"name": "refused"}',
    '{"name": "odd"}',
    '{"word": "aB"}',
    '{"mode": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}',
    '{"mode": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}',
    '{"flag": 1}',
    '{"many": [1, null]}',
    '{"shares": {"x": "y"}}',
    '{"inner": {"size": 0}}',
    '{"inner": 3}',
    '{"parts": {"x": {"sise": 1}}}',
    '{"zzz": 1}',
    '{"_target_": "nowhere.Part"}',
    '{"_target_": "json.Part"}',
    '{"_target_": null}',
    '{"_target_": "tests.core.test_settings.Part", "count": {"_target_": 3}}',
]


def test_a_mistake_names_the_setting_and_what_it_may_be(snapshot):
    assert outcomes(lambda case: make(**json.loads(case)), SETTINGS) == snapshot


VALUES = (-1, -1e-9, 0, 1e-9, 0.5, 1, 1.1, 1.5, 4096, 4097, 65535, 65536, 4294967295, 4294967296, 10**7, 10**7 + 1)
VALUES += (10**12, 10**12 + 1, "", "a", None, [], {}, {"a": 1}, {"a": "b"}, {1: 1})
KINDS = {name: getattr(settings, name) for name in ("Count", "Whole", "Seed", "Port", "Parallel", "Positive")}
KINDS |= {name: getattr(settings, name) for name in ("NotNegative", "Seconds", "Share", "Similarity", "Text")}
KINDS |= {
    "a mapping": Mapping[str, int],
    "anything": Any,
    "a name that only type checkers know": "Inner",
    "Inner": Inner,
}


def test_each_kind_has_its_bounds(snapshot):
    def allows(kind, value):
        found = outcome(check, value, kind, "x")
        assert found is None or found.startswith("ConfigError: x=")
        return found is None

    allowed = [(name, str([value for value in VALUES if allows(kind, value)])) for name, kind in KINDS.items()]
    assert as_texts(allowed) == snapshot


def test_a_constructor_may_take_the_settings_of_another():
    assert make_part(Wrapper, {"count": 1, "name": "b"}, "").inner == {"count": 1, "name": "b"}
    assert make_part(Outer, {"size": 2}, "").inner == {"size": 2}, "it may give what the inner one needs itself"
    for wrong, said in (({}, "count is missing"), ({"count": 0}, "count=0 must"), ({"size": 0}, "size=0 must")):
        with pytest.raises(ConfigError, match=f"^{said}"):
            make_part(Wrapper, {"count": 1, **wrong} if wrong else {}, "")
    with pytest.raises(ConfigError, match="the configuration cannot be used: an odd name"):
        make_part(Part, {"count": 1, "name": "odd"}, "")
