"""Readers of replies take no more time than a reply's length explains, whatever a model repeats to its end."""

import time
from contextlib import suppress
from itertools import product

import msgspec
import pytest

from ace_bench.agents import conversation, official, single_turn
from ace_bench.core import lenient_json, redaction, replies, thoughts
from ace_bench.core.errors import AceBenchError, RolloutFault
from ace_bench.core.prompts import cited_in
from ace_bench.methods import dc
from ace_bench.methods.official import learner
from ace_bench.playbook import text_format
from ace_bench.tasks import ddxplus, finer, formula
from ace_bench.tasks.bird_sql import questions
from ace_bench.tasks.qa import catalog


class Reply(msgspec.Struct):
    answer: str
    ids: list[str] = []


READERS = {
    "JSON": lambda text: replies.parse(text, Reply),
    "objects": lambda text: list(lenient_json.find_objects(text)),
    "repetitions": replies.without_repeats,
    "thoughts": thoughts.split_thoughts,
    "messages": redaction.redact,
    "agent": conversation.read_reply,
    "dialogue": lambda text: conversation.read_dialogue(f"USER:\n{text}", name="x"),
    "answer": single_turn.read_reply,
    "code": single_turn.code_request,
    "last answer": single_turn.last_answer,
    "authors' answer": official.official_answer,
    "authors' citations": official.official_citations,
    "authors' agent": official.read_official_reply,
    "authors' tags": learner.official_tags,
    "authors' operations": learner.official_operations,
    "authors' agent's operations": lambda text: learner.agent_operations(text, ["a"]),
    "cheatsheet": dc.between_tags,
    "citations": lambda text: cited_in([text]),
    "playbook": lambda text: text_format.read_text(text, sections=[], count=len),
    "FiNER": lambda text: finer.grade_labels("a,b", text),
    "Formula": lambda text: formula.grade_number("1.5", text),
    "DDXPlus": lambda text: ddxplus.grade_diagnosis(3, text),
    "number": catalog._read_number,
    "SQL": questions.sql_of,
    "StreamBench's SQL": questions.sql_by_stream_bench,
}
BEGINNINGS = ("", '{"answer": "', "```json\n{")
UNITS = """
``` ```json\\n ```python\\n ```sql\\n { {" {"a":1}, {" {a [ ["a", [] ( ) \\\\ \\u \\ud800 " ' "a": \\n \\t \\r
\\x20 \\n\\x20 <think> </think> <think < <cheatsheet> </cheatsheet> <|channel|> final_answer 'final_answer':'
"final_answer":" the\\x20final\\x20answer\\x20is:\\x20 \\boxed{ $\\boxed{ Finish[ USER:\\n [a-00001]\\x20 [abc
]helpful=1 ##\\x20 -\\x20 1.\\x20 1 1, 1. +- +-$ 99999. e1 -- /* select\\x201; a@b sk- ://a ://a:b ?a=b& &#0
%20 x= A)\\x20 a\\x20 \\0
""".split()  # noqa: SIM905 - seventy units


@pytest.mark.parametrize("name", READERS)
def test_a_reply_that_repeats_itself_is_read_at_once(name):
    for beginning, unit in product(BEGINNINGS, (unit.encode().decode("unicode_escape", "replace") for unit in UNITS)):
        text = beginning + unit * (6_000 // len(unit))
        begun = time.process_time()
        with suppress(AceBenchError, RolloutFault, ValueError, RecursionError):
            READERS[name](text)
        assert time.process_time() - begun < 0.3, (beginning, unit)
