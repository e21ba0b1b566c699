"""How a Generator's reply becomes an answer: by our rules, and by those of the authors' finance code."""

import json
import time

import pytest

from ace_bench.agents.official import NO_ANSWER, official_answer, official_citations
from ace_bench.agents.single_turn import read_reply

ASKED_AGAIN = None
FULL = {"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": "A,B"}
TEXT = json.dumps(FULL, indent=2)
DRAFT = json.dumps({**FULL, "final_answer": "C"})


def but(**fields):
    return json.dumps({**FULL, **fields})


def without(name):
    return json.dumps({key: value for key, value in FULL.items() if key != name})


SHAPES = {
    # name: (reply, answer as we read it, answer as the authors' code reads it)
    "plain": (TEXT, "A,B", "A,B"),
    "fenced": (f"```json\n{TEXT}\n```", "A,B", "A,B"),
    "fenced, upper case": (f"```JSON\n{TEXT}\n```", "A,B", "A,B"),
    "fenced without a name": (f"```\n{TEXT}\n```", "A,B", "A,B"),
    "a broken fence first": (f"```json\n{{broken\n```\n```json\n{TEXT}\n```", "A,B", "A,B"),
    "words around": (f"Here it is.\n{TEXT}\nDone.", "A,B", "A,B"),
    "braces before": (f"Use {{x}} and {{}} first.\n{TEXT}", "A,B", "A,B"),
    "formulas before": (f"\\frac{{a}}{{b}} is {{'x'}}.\n{TEXT}", "A,B", "A,B"),
    "another object before": (f'{{"x": 1}}\n{TEXT}', "A,B", "A,B"),
    "byte order mark": (f"\ufeff{TEXT}", "A,B", "A,B"),
    "trailing comma": (TEXT[:-2] + ",\n}", "A,B", "A,B"),
    "trailing comma in a list": (TEXT.replace('"calc-00001"\n', '"calc-00001",\n'), "A,B", "A,B"),
    "single quotes": (str(FULL), "A,B", "A,B"),
    "single quotes, apostrophe": (
        "{'reasoning': 'it's so', 'bullet_ids': [], 'final_answer': 'A,B'}",
        "A,B",
        "A,B",
    ),
    "unknown escape": (TEXT.replace("see", "the area \\(x\\) and"), "A,B", "A,B"),
    "raw line break": (TEXT.replace("see", "one\n\ttwo"), "A,B", "A,B"),
    "unescaped quotes": (TEXT.replace("see", 'so-called "net", see'), "A,B", "A,B"),
    "a comment": (TEXT.replace("{", "{ // as asked", 1), "A,B", "A,B"),
    "Python's words": (TEXT.replace('"A,B"', '"A,B", "sure": True, "more": None'), "A,B", "A,B"),
    "not a number": (but(score=float("nan")), "A,B", "A,B"),
    "ids null": (but(bullet_ids=None), "A,B", "A,B"),
    "ids as text": (but(bullet_ids="calc-00001, err-00002"), "A,B", "A,B"),
    "ids as numbers": (but(bullet_ids=[1, 2]), "A,B", "A,B"),
    "ids as objects": (but(bullet_ids=[{"id": "calc-00001"}]), "A,B", "A,B"),
    "reasoning as list": (but(reasoning=["one", "two"]), "A,B", "A,B"),
    "reasoning as object": (but(reasoning={"step": [1, 2]}), "A,B", "A,B"),
    "reasoning null": (but(reasoning=None), "A,B", "A,B"),
    "only the answer": ('{"final_answer": "A,B"}', "A,B", "A,B"),
    "cut behind the answer": (TEXT[:-2], "A,B", "A,B"),
    "cut behind its comma": (TEXT[:-2] + ",", "A,B", "A,B"),
    "cut later": ('{"final_answer": "A,B", "reasoning": "as the', "A,B", "A,B"),
    "cut in the answer": (TEXT[:-4], ASKED_AGAIN, '"A'),
    "cut in a number": ('{"reasoning": "", "final_answer": 12', ASKED_AGAIN, "12"),
    "cut in the reasoning": (TEXT[:20], ASKED_AGAIN, NO_ANSWER),
    "answer in words": ("I add them.\nThe final answer is: A,B\n", "A,B", "A,B"),
    "answer in words, decimals": ("The final answer is 5.25.", "5.25", "5"),
    "answer in words twice": ("The final answer is C\nNo. The final answer is: A,B", ASKED_AGAIN, "A,B"),
    "boxed": ("So the final answer is: $\\boxed{A,B}$", "A,B", "A,B"),
    "boxed with braces": ("The final answer is \\boxed{\\frac{1}{2}}", ASKED_AGAIN, "\\frac{1}{2}"),
    "boxed alone": ("Done: $\\boxed{A,B}$", ASKED_AGAIN, NO_ANSWER),
    "finished": ("I add them. Finish[A,B]", "A,B", "A,B"),
    "finished in the next line": ("Finish[A,B]\nFinish[C\n]", "A,B", "A,B"),
    "never finished": ("Finish[A", ASKED_AGAIN, NO_ANSWER),
    "member without an object": ('reasoning: so\n"final_answer": "A,B"', "A,B", "A,B"),
    "two members without an object": ('"final_answer": "C"\n"final_answer": "A,B"', ASKED_AGAIN, "A,B"),
    "a draft in think tags": (f"<think>{DRAFT}</think>{TEXT}", "A,B", "A,B"),
    "braces in think tags": (f"<think>{{x}} or {{'y'}}</think>\n{TEXT}", "A,B", "A,B"),
    "a thought behind": (f"{TEXT}<think>hm</think>", "A,B", "A,B"),
    "all in think tags": (f"<think>{DRAFT}</think>", ASKED_AGAIN, "C"),
    "thoughts left open": (f"<think>{DRAFT}", ASKED_AGAIN, "C"),
    "a second object": (f"{TEXT}\n{DRAFT}", "A,B", "C"),
    "answer as list": (but(final_answer=["A", "B"]), "A,B", "['A', 'B']"),
    "answer as list of numbers": (but(final_answer=[1, 2.5]), "1,2.5", "[1, 2.5]"),
    "answer as number": (but(final_answer=6631000.0), "6631000.0", "6631000.0"),
    "answer bare": (TEXT.replace('"A,B"', "Cash"), "Cash", "Cash"),
    "answer bare with a comma": (TEXT.replace('"A,B"', "1,234"), ASKED_AGAIN, "1"),
    "answer null": (but(final_answer=None), ASKED_AGAIN, "None"),
    "answer true": (but(final_answer=True), ASKED_AGAIN, "True"),
    "answer as object": (but(final_answer={"value": "A"}), ASKED_AGAIN, "{'value': 'A'}"),
    "answer empty": (but(final_answer=""), "", ""),
    "no answer": (without("final_answer"), ASKED_AGAIN, NO_ANSWER),
    "a list around": (f"[{TEXT}]", "A,B", "A,B"),
    "only words": ("I cannot decide.", ASKED_AGAIN, NO_ANSWER),
    "a number": ("5", ASKED_AGAIN, NO_ANSWER),
    "empty": ("", ASKED_AGAIN, NO_ANSWER),
}


@pytest.mark.parametrize(("text", "ours", "theirs"), SHAPES.values(), ids=SHAPES)
def test_each_shape_is_read_as_the_table_says(text, ours, theirs):
    assert official_answer(text) == theirs
    if ours is ASKED_AGAIN:
        with pytest.raises(ValueError, match=r"."):
            read_reply(text)
    else:
        assert read_reply(text).answer == ours


def test_whatever_the_authors_read_right_we_read_too_unless_it_may_be_a_draft_or_half_an_answer():
    doubtful = {"answer in words twice", "two members without an object"}
    missed = {name for name, (_, ours, theirs) in SHAPES.items() if theirs == "A,B" and ours != "A,B"}
    assert missed == doubtful


@pytest.mark.parametrize(
    ("text", "reasoning", "ids"),
    [
        (TEXT, "see [calc-00001]", ["calc-00001"]),
        (but(bullet_ids="[calc-00001], err-00002"), "see [calc-00001]", ["calc-00001", "err-00002"]),
        (but(bullet_ids=[1, {"id": "a"}], reasoning=["one", "two"]), "one\ntwo", ["1"]),
        (but(bullet_ids=None, reasoning={"é": [1, 2]}), '{"é": [1, 2]}', []),
        (but(bullet_ids=None, reasoning=["one", 2]), '["one", 2]', []),
        (but(bullet_ids=None, reasoning=None), "", []),
        ('{"rationale": "so", "answer": "A,B"}', "so", []),
        ('{"rationale": "so", "reasoning": "as", "bullet_ids": 1, "final_answer": "A,B"}', "as", []),
        *[("By [calc-00001] and [calc-00001] the final answer is A,B",) * 2 + (["calc-00001"],)],
    ],
)
def test_reasoning_and_cited_bullets_come_from_the_object_or_else_from_the_text(text, reasoning, ids):
    reply = read_reply(text)
    assert (reply.reasoning, reply.bullet_ids, reply.answer) == (reasoning, ids, "A,B")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('{"bullet_ids": ["calc-00001", "fin-00002"]}', ()),
        ("[calc-00001] then [fin-00002] then [calc-00001]", ("calc-00001", "fin-00002", "calc-00001")),
        ('{"bullet_ids": [calc-00001]}', ("calc-00001",)),
        ("[ph-00001] [Calc-00001] [calc-0001] [calc-000001] [calc-00001, fin-00002]", ()),
    ],
)
def test_the_authors_see_only_ids_alone_in_brackets(text, ids):
    assert official_citations(text) == ids


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
    ],
)
def test_hostile_texts_of_a_megabyte_cost_no_time(text):
    started = time.process_time()
    for read in (read_reply, official_answer, official_citations):
        try:
            read(text)
        except (ValueError, RecursionError):
            continue
    assert time.process_time() - started < 20, "a rule that is not linear takes hours"
