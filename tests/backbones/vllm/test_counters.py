"""Prefix-cache counters as several versions of vLLM show them."""

from pathlib import Path

from ace_bench.backbones.vllm.server import read_counters
from tests.expected import check_outcomes


def page(queries, hits, prefix="vllm:prefix_cache", end="_total", labels='{engine="0",model_name="m"}'):
    return f"{prefix}_queries{end}{labels} {queries}\n{prefix}_hits{end}{labels} {hits}\n"


TODAY = f"""\
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
{page(4236.0, 2560.0)}\
# TYPE vllm:prefix_cache_queries_created gauge
{page(1.7953007001461573e09, 1.795300700146192e09, end="_created")}\
{page(77.0, 7.0, prefix="vllm:external_prefix_cache")}"""
OLD = "vllm:gpu_prefix_cache"
PAGES = {
    "today": TODAY,
    "several engines": page(100.0, 30.0) + page(50.0, 0.0, labels='{engine="1"}'),
    "older, of the GPU, no suffix, no labels": page(8.0, 2.0, OLD, "", ""),
    "both names for the same tokens": page(10.0, 5.0, OLD) + page(10.0, 5.0),
    "a name with brackets": page(9.0, 3.0, labels='{model_name="a}b{c \\"d\\""}'),
    "a time stamp": page("9.0 1795300700000", 3.0),
    "nothing asked yet": page(0.0, 0.0, labels=""),
    "no page of metrics": "<html><body>vllm:prefix_cache_queries_total</body></html>",
    "a rate only": 'vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.5\n',
    "the times of creation only": page(1.0, 1.0, end="_created", labels=""),
    "no numbers": page("NaN", "+Inf", labels=""),
}


def test_counters_are_read_and_summed_and_what_is_not_reported_is_unknown():
    found = [(version, read_counters(text)) for version, text in PAGES.items()]
    check_outcomes(found, Path(__file__).parent / "expected" / "counters.txt")
