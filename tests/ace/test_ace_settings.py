"""Settings of ACE that contradict each other, and which parts the others choose."""

from ace_bench.ace.ablations import AceWithOtherView, RewritingCurator
from ace_bench.core.settings import build
from ace_bench.runners.composing import compose_run
from tests.outcomes import outcomes


def make(words):
    settings = compose_run(["method=ace", "embedder=hashing", *(f"method.{word}" for word in words.split())]).settings
    return build(settings["method"], "method")


# Settings of ACE that contradict each other.
SETTINGS = [
    "reflector=rules update=rewrite",
    "curator_sees=7 update=rewrite",
    "curator_sees=7 reflector=rules",
    "harmful_every=2 reflector=off",
    "generator_reflections=1 reflector=off",
    "initial=nowhere.txt",
    "verify=true update=rewrite",
]


def test_settings_that_contradict_each_other_are_refused_as_recorded(snapshot):
    assert outcomes(make, SETTINGS) == snapshot


def test_each_of_them_alone_chooses_its_part():
    other = make("generator_reflections=4 reflection_window=3 bullet_order=helpful retrieval.mode=bm25")
    assert (type(other), other.earlier_lessons, other.helpful_first) == (AceWithOtherView, 4, True)
    assert (other.remembered, make("reflection_window=3").remembered) == (4, 2)
    assert (other.retrieval.mode, make("").retrieval) == ("bm25", None)
    assert isinstance(make("update=rewrite").curator, RewritingCurator)
    assert (make("verify=true guard_samples=5").verifier.guard, make("").verifier) == (5, None)
    assert make("curator_sees=7").curator.view.top_k == 7
    assert (make("harmful_every=2").reflector.every, make("reflector=off").rounds.retries) == (2, 0)
