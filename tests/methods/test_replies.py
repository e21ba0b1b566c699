import pytest

from ace_bench.agents.answers import GeneratorReply
from ace_bench.core.replies import schema_of
from ace_bench.methods.ace_parts import CuratorReply, ReflectorReply
from ace_bench.methods.ace_variants.ablations import RewriterReply


@pytest.mark.parametrize("reply", [GeneratorReply, ReflectorReply, CuratorReply, RewriterReply])
def test_a_model_under_constrained_decoding_reasons_before_it_answers(reply):
    assert next(iter(schema_of(reply)["properties"])) == "reasoning"
