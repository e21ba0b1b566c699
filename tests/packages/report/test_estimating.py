"""What `reproduce` knows of a run before it starts: the length of its chain of calls, and its memory."""

from ace_report.reproducing.estimating import chain_of, memory_of
from tests.packages.report.conftest import compose


def test_chains_are_ordered_by_what_follows_one_after_another():
    def chain(*overrides):
        return chain_of(compose(overrides))

    base, icl = chain("task=finer", "method=base"), chain("task=finer", "method=icl")
    ace, short = chain("task=finer", "method=ace"), chain("task=finer", "method=ace", "mode.epochs=1")
    assert base == icl < chain("task=finer", "method=dc", "mode=online") < short < ace
    assert chain("task=finer", "method=ace", "mode.batch_size=8") < ace
    assert chain("task=finer", "method=ace", "limit=10") < ace
    assert chain("task=appworld", "method=ace", "limit=10") > chain("task=finer", "method=ace", "limit=10")


def test_memory_counts_the_engines_episodes():
    question = memory_of(compose(["task=finer", "method=ace"]))
    two, eight = (memory_of(compose(["task=appworld", "method=ace", f"concurrency={n}"])) for n in (2, 8))
    assert question < two < eight
    assert memory_of(compose(["task=finer", "backbone=openai_compatible"])) < question, "it shares a process"
