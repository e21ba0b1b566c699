"""Prefix-cache counters as several versions of vLLM show them."""

import pytest

from ace_bench.backbones.vllm.server import read_counters
from ace_bench.core.types import CacheCounters

PAGES = {
    "today": (
        """\
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 4236.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7953007001461573e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 2560.0
vllm:prefix_cache_hits_created{engine="0",model_name="tiny"} 1.795300700146192e+09
vllm:external_prefix_cache_queries_total{engine="0",model_name="tiny"} 77.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 7.0
""",
        (4236, 2560),
    ),
    "several engines": (
        """\
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 50.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 30.0
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 0.0
""",
        (150, 30),
    ),
    "older, of the GPU, no suffix, no labels": (
        "vllm:gpu_prefix_cache_queries 8.0\nvllm:gpu_prefix_cache_hits 2.0\n",
        (8, 2),
    ),
    "both names for the same tokens": (
        """\
vllm:gpu_prefix_cache_queries_total{engine="0"} 10.0
vllm:gpu_prefix_cache_hits_total{engine="0"} 5.0
vllm:prefix_cache_queries_total{engine="0"} 10.0
vllm:prefix_cache_hits_total{engine="0"} 5.0
""",
        (10, 5),
    ),
    "a name with brackets, a time stamp": (
        'vllm:prefix_cache_queries_total{model_name="a}b{c \\"d\\""} 9.0 1795300700000\n'
        'vllm:prefix_cache_hits_total{model_name="a}b{c \\"d\\""} 3.0 1795300700000\n',
        (9, 3),
    ),
    "nothing asked yet": ("vllm:prefix_cache_queries_total 0.0\nvllm:prefix_cache_hits_total 0.0\n", (0, 0)),
}
SILENT = {
    "no page of metrics": "<html><body>vllm:prefix_cache_queries_total</body></html>",
    "a rate only": 'vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.5\n',
    "the times of creation only": "vllm:prefix_cache_queries_created 1.0\nvllm:prefix_cache_hits_created 1.0\n",
    "no numbers": "vllm:prefix_cache_queries_total NaN\nvllm:prefix_cache_hits_total +Inf\n",
}


@pytest.mark.parametrize("version", PAGES)
def test_counters_are_read_and_summed(version):
    page, (queries, hits) = PAGES[version]
    assert read_counters(page) == CacheCounters(queries=queries, hits=hits)


@pytest.mark.parametrize("page", SILENT)
def test_what_is_not_reported_is_unknown(page):
    assert read_counters(SILENT[page]) is None
