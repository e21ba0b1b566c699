"""How replies become answers and actions: by our rules, and by those of the authors' finance code."""

import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.agents.conversation import read_reply as read_action
from ace_bench.agents.official import official_answer, official_citations
from ace_bench.agents.single_turn import code_request, last_answer, read_reply
from ace_bench.core.prompts import cited_in
from ace_bench.core.thoughts import split_thoughts
from tests.cases import check_cases


def read_both(text):
    try:
        ours = repr(read_reply(split_thoughts(text).said).answer)
    except ValueError:
        ours = "asked again"
    return f"{ours} | {official_answer(text)!r}"


def read_rest(text):
    reply = read_reply(text)
    return reply.reasoning, reply.bullet_ids, reply.answer


def read_request(text):
    request = code_request(text)
    return request and (request.code, request.shown)


def test_each_reply_is_read_as_the_files_say():
    functions = {"answers": read_both, "reasoning, cited bullets": read_rest, "in tags": last_answer}
    theirs = {"cited by the authors' rule": official_citations, "code to run": read_request}
    check_cases(Path(__file__).with_name("answers.txt"), functions | theirs)
    actions = {"thought, code, shown": read_action, "cited": lambda text: cited_in([text])}
    check_cases(Path(__file__).with_name("actions.txt"), actions)


@given(st.text(alphabet="`python x=\n[]-0123456789", max_size=200) | st.text(max_size=100))
def test_any_reply_can_be_read_and_what_is_shown_reads_the_same(text):
    reply = read_action(text)
    assert reply.code == "" or read_action(reply.shown).code == reply.code
    assert isinstance(cited_in([text]), tuple)


@pytest.mark.parametrize(
    "text",
    [
        "Finish[" * 140_000,
        '"final_answer":' * 70_000,
        "'final_answer': '" * 60_000,
        "The final answer is " * 50_000,
        "the final answer is \\boxed{" + "{" * 900_000,
        '{"a":' * 200_000,
        "{\"'[,<think>" * 90_000,
        '{"final_answer": "' + '\\"' * 450_000,
        "```" * 20_000 + "EXECUTE CODE!",
    ],
)
def test_hostile_texts_of_a_megabyte_cost_no_time(text):
    started = time.process_time()
    for read in (read_reply, official_answer, official_citations, code_request):
        with suppress(ValueError, RecursionError):
            read(text)
    assert time.process_time() - started < 20, "a rule that is not linear takes hours"
