"""How replies become answers and actions: by our rules, and by those of the authors' finance code."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.agents.conversation import read_reply as read_action
from ace_bench.agents.official import official_answer, official_citations
from ace_bench.agents.single_turn import code_request, last_answer, read_reply
from ace_bench.core.prompts import cited_in
from ace_bench.core.thoughts import split_thoughts
from tests.outcomes import outcomes_by_name


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


# The first block of Python is the code; what stands before it is the thought.
ACTIONS = {
    "thought, code, shown": [
        "First.\n```python\nx = 1\n```\nOutput: made up",
        "```\nx = 1\n```",
        "```Python\nx = 1\n```\n```python\ny = 2\n```",
        "Go: ```py\nx = 1```",
        "```python\r\nx = 1\r\ny = 2\r\n```",
        "cut off\n```python\nx = 1",
        "```json\n{}\n```\n```python\nx = 1\n```",
        "```bash\nls\n```\nnothing else",
        "```sql\nselect 1",
        "  ```python\n  if x:\n      y()\n  ```",
        "```python\nnote = '''a ``` b'''\n```",
        "```python\n\n \n```",
        "use `x`, not ```",
        "",
    ],
    # Ids count only in brackets.
    "cited": [
        "by [sahr-00001]",
        "[a-00001, b-00002; c-0003]",
        "[a-00001][a-00001]",
        "names[0], [x-1], a-00001, [12-00001]",
    ],
}


# Replies of a Generator: the answer as we read it, and as the authors' finance code reads it.
ANSWERS = {
    "answers": [
        # plain
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": "A,B"\n}',
        # fenced
        (
            '```json\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}\n```'
        ),
        # fenced, upper case
        (
            '```JSON\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}\n```'
        ),
        # fenced without a name
        (
            '```\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}\n```'
        ),
        # a broken fence first
        (
            '```json\n{broken\n```\n```json\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    '
            '"calc-00001"\n  ],\n  "final_answer": "A,B"\n}\n```'
        ),
        # words around
        (
            'Here it is.\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}\nDone.'
        ),
        # braces before
        (
            'Use {x} and {} first.\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    '
            '"calc-00001"\n  ],\n  "final_answer": "A,B"\n}'
        ),
        # formulas before
        (
            '\\frac{a}{b} is {\'x\'}.\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    '
            '"calc-00001"\n  ],\n  "final_answer": "A,B"\n}'
        ),
        # another object before
        (
            '{"x": 1}\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # byte order mark
        (
            '\ufeff{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # trailing comma
        (
            '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B",\n}'
        ),
        # trailing comma in a list
        (
            '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001",\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # single quotes
        "{'reasoning': 'see [calc-00001]', 'bullet_ids': ['calc-00001'], 'final_answer': 'A,B'}",
        # single quotes, apostrophe
        "{'reasoning': 'it's so', 'bullet_ids': [], 'final_answer': 'A,B'}",
        # unknown escape
        (
            '{\n  "reasoning": "the area \\(x\\) and [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],'
            '\n  "final_answer": "A,B"\n}'
        ),
        # raw line break
        (
            '{\n  "reasoning": "one\n\ttwo [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # unescaped quotes
        (
            '{\n  "reasoning": "so-called "net", see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],'
            '\n  "final_answer": "A,B"\n}'
        ),
        # a comment
        (
            '{ // as asked\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # Python's words
        (
            '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B", "sure": True, "more": None\n}'
        ),
        # not a number
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": "A,B", "score": NaN}',
        # ids null
        '{"reasoning": "see [calc-00001]", "bullet_ids": null, "final_answer": "A,B"}',
        # ids as text
        '{"reasoning": "see [calc-00001]", "bullet_ids": "calc-00001, err-00002", "final_answer": "A,B"}',
        # ids as numbers
        '{"reasoning": "see [calc-00001]", "bullet_ids": [1, 2], "final_answer": "A,B"}',
        # ids as objects
        '{"reasoning": "see [calc-00001]", "bullet_ids": [{"id": "calc-00001"}], "final_answer": "A,B"}',
        # reasoning as list
        '{"reasoning": ["one", "two"], "bullet_ids": ["calc-00001"], "final_answer": "A,B"}',
        # reasoning as object
        '{"reasoning": {"step": [1, 2]}, "bullet_ids": ["calc-00001"], "final_answer": "A,B"}',
        # reasoning null
        '{"reasoning": null, "bullet_ids": ["calc-00001"], "final_answer": "A,B"}',
        # only the answer
        '{"final_answer": "A,B"}',
        # cut behind the answer
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": "A,B"',
        # cut behind its comma
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": "A,B",',
        # cut later
        '{"final_answer": "A,B", "reasoning": "as the',
        # cut in the answer
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": "A,',
        # cut in a number
        '{"reasoning": "", "final_answer": 12',
        # cut in the reasoning
        '{\n  "reasoning": "se',
        # answer in words
        "I add them.\nThe final answer is: A,B\n",
        # answer in words, decimals
        "The final answer is 5.25.",
        # answer in words twice
        "The final answer is C\nNo. The final answer is: A,B",
        # boxed
        "So the final answer is: $\\boxed{A,B}$",
        # boxed with braces
        "The final answer is \\boxed{\\frac{1}{2}}",
        # boxed alone
        "Done: $\\boxed{A,B}$",
        # finished
        "I add them. Finish[A,B]",
        # finished in the next line
        "Finish[A,B]\nFinish[C\n]",
        # never finished
        "Finish[A",
        # member without an object
        'reasoning: so\n"final_answer": "A,B"',
        # two members without an object
        '"final_answer": "C"\n"final_answer": "A,B"',
        # a draft in think tags
        (
            '<think>{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": '
            '"C"}</think>{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}'
        ),
        # braces in think tags
        (
            '<think>{x} or {\'y\'}</think>\n{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    '
            '"calc-00001"\n  ],\n  "final_answer": "A,B"\n}'
        ),
        # a thought behind
        (
            '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}<think>hm</think>'
        ),
        # all in think tags
        '<think>{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": "C"}</think>',
        # thoughts left open
        '<think>{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": "C"}',
        # a second object
        (
            '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}\n{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], '
            '"final_answer": "C"}'
        ),
        # answer as list
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": ["A", "B"]}',
        # answer as list of numbers
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": [1, 2.5]}',
        # answer as number
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": 6631000.0}',
        # answer bare
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": Cash\n}',
        # answer bare with a comma
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": 1,234\n}',
        # answer null
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": null}',
        # answer true
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": true}',
        # answer as object
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": {"value": "A"}}',
        # answer empty
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"], "final_answer": ""}',
        # no answer
        '{"reasoning": "see [calc-00001]", "bullet_ids": ["calc-00001"]}',
        # a list around
        (
            '[{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  '
            '"final_answer": "A,B"\n}]'
        ),
        # only words
        "I cannot decide.",
        # a number
        "5",
        # empty
        "",
    ],
    # What we take from a reply beside its answer.
    "reasoning, cited bullets": [
        '{\n  "reasoning": "see [calc-00001]",\n  "bullet_ids": [\n    "calc-00001"\n  ],\n  "final_answer": "A,B"\n}',
        '{"reasoning": "see [calc-00001]", "bullet_ids": "[calc-00001], err-00002", "final_answer": "A,B"}',
        '{"reasoning": ["one", "two"], "bullet_ids": [1, {"id": "a"}], "final_answer": "A,B"}',
        '{"reasoning": {"\\u00e9": [1, 2]}, "bullet_ids": null, "final_answer": "A,B"}',
        '{"reasoning": ["one", 2], "bullet_ids": null, "final_answer": "A,B"}',
        '{"reasoning": null, "bullet_ids": null, "final_answer": "A,B"}',
        '{"rationale": "so", "answer": "A,B"}',
        '{"rationale": "so", "reasoning": "as", "bullet_ids": 1, "final_answer": "A,B"}',
        "By [calc-00001] and [calc-00001] the final answer is A,B",
    ],
    # The authors see only ids that are alone in brackets.
    "cited by the authors' rule": [
        '{"bullet_ids": ["calc-00001", "fin-00002"]}',
        "[calc-00001] then [fin-00002] then [calc-00001]",
        '{"bullet_ids": [calc-00001]}',
        "[ph-00001] [Calc-00001] [calc-0001] [calc-000001] [calc-00001, fin-00002]",
    ],
    # The last answer tag counts.
    "in tags": [
        "I think. <answer>Cash</answer>",
        "<answer>Debt</answer> no: <answer>\nCash,Debt\n</answer> done",
        "cut off <answer> Cash",
        "no tag at all",
        "<answer> </answer>",
    ],
    # Code is run only where the flag follows its block.
    "code to run": [
        "Let me.\n```python\nprint(1)\n```\nEXECUTE CODE!\nOutput: 7",
        "```py\nx = 1\n\ny = 2\n```EXECUTE CODE!",
        "```\r\nprint(1)\r\n```\r\nEXECUTE CODE!",
        "```python\na\n```\nand\n```python\nb\n```\n\nEXECUTE CODE!\n```python\nc\n```\nEXECUTE CODE!",
        "```python\nprint(1)\n```",
        "```python\nprint(1)\n``` Then EXECUTE CODE! later",
        "EXECUTE CODE!",
    ],
}


def test_each_reply_is_read_as_recorded(snapshot):
    functions = {"answers": read_both, "reasoning, cited bullets": read_rest, "in tags": last_answer}
    theirs = {"cited by the authors' rule": official_citations, "code to run": read_request}
    assert outcomes_by_name(functions | theirs, ANSWERS) == snapshot
    actions = {"thought, code, shown": read_action, "cited": lambda text: cited_in([text])}
    assert outcomes_by_name(actions, ACTIONS) == snapshot


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
