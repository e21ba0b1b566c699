"""The decoding of a configuration into typed values."""

from dataclasses import FrozenInstanceError

import msgspec
import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.core.settings import RoleSampling
from ace_bench.runners.composing import compose_run
from ace_bench.runners.settings import decode

SERVED = ("backbone=openai_compatible", "backbone.model=a", "backbone.sampling.max_tokens=7")


def decoded(*words, **settings):
    composed = compose_run([*words])
    return decode(msgspec.structs.replace(composed, settings={**composed.settings, **settings}))


def test_a_configuration_becomes_values_that_nobody_changes():
    run = decoded("task=finer", "method=ace", "limit={train: 3}", "protocol=official", "seed=4")
    assert (run.names["task"], run.protocol, run.seed) == ("finer", "official", 4)
    assert run.limits == {"train": 3, "val": None, "test": None}
    assert run.parts.task.target.endswith(".Finer")
    assert set(run.parts.backbones) == {"generator"}
    with pytest.raises(FrozenInstanceError):
        run.seed = 5


def test_settings_of_a_role_go_into_the_backbone_that_answers_it():
    judge = ("backbone@roles.judge=openai_compatible", "roles.judge.model=b")
    roles = ("sampling.judge.temperature=1", "sampling.curator.max_tokens=5")
    run = decoded(*SERVED, *judge, *roles)
    sampling = {role: part.node["sampling"].get("roles") for role, part in run.parts.backbones.items()}
    assert sampling == {"generator": {"curator": {"max_tokens": 5}}, "judge": {"judge": {"temperature": 1}}}
    assert run.sampling["curator"] == RoleSampling(max_tokens=5)
    plain = decoded("backbone=embedded", *roles).parts.backbones["generator"]
    assert "sampling" not in plain.node, "it does not sample"
    assert "roles" not in decoded(*SERVED).parts.backbones["generator"].node["sampling"], "nothing is set"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sampling": {"judge": {"temperature": -1}}}, r"sampling\.judge\.temperature=-1 must be"),
        ({"sampling": 3}, "sampling=3 must be"),
        ({"roles": 3}, "roles=3 must be a group of backbones"),
        ({"roles": {"judge": None}}, "roles.judge=null must be a group of settings with a _target_"),
        ({"tracker": "a"}, "tracker=a must be a group of trackers by name"),
        ({"mode": None}, "mode=null leaves nothing to run"),
        ({"task": "finer"}, "task=finer must be a group of settings with a _target_"),
        ({"seeds": 1}, "there is no setting seeds; did you mean seed"),
        ({"method": {"_target_": "a", "size": 10**13}}, "method.size=10000000000000 must be at most"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_built(wrong, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        decoded(**wrong)
