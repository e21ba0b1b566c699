"""What a model thinks is cut from what it says, by the place of its marks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ToolCall, ToolTurn, offer, read_turn, schema_of, write_turn
from ace_bench.core.thoughts import cut_thoughts, require_answer, split_thoughts
from ace_bench.core.types import NO_USAGE, Completion

CUT = {
    "tags": ("<think>draft B</think>\n\nA", "A"),
    "upper case": ("<THINK>draft</THINK>A", "A"),
    "an attribute": ('<think lang="en">x</think>A', "A"),
    "a namespace": ("<seed:think>x</seed:think>A", "A"),
    "a prefix without a sign": ("<antThinking>x</antThinking>A", "A"),
    "behind a word": ("A<think>check</think>", "A"),
    "another name": ("<reasoning>x</reasoning>A", "A"),
    "a prefix": ("<longcat_think>x</longcat_think>A", "A"),
    "opened by the template": ("draft it's B.\n</think>\n\nA", "A"),
    "opened by the template, glued": ("could be B</think>A", "A"),
    "opened by the template, with a draft": (
        'we try {"final_answer": "B"}\n</think>{"final_answer": "A"}',
        '{"final_answer": "A"}',
    ),
    "never closed": ("<think>hm B", ""),
    "several blocks": ("<think>a</think>\n<think>b</think>\nA", "A"),
    "blocks in blocks": ("<think>a <think>b</think> c</think>A", "A"),
    "a mark named in thoughts": ("<think>I write <think> here</think>A", "A"),
    "brackets": ("[THINK]x[/THINK]A", "A"),
    "triangles": ("◁think▷x◁/think▷A", "A"),
    "wide tokens": ("<｜begin▁of▁thought｜>x<｜end▁of▁thought｜>A", "A"),
    "tokens around the answer, too": (
        "<|begin_of_thought|>x<|end_of_thought|>\n<|begin_of_solution|>A<|end_of_solution|>",
        "A",
    ),
    "tokens with a slash": ("<|thinking|>x<|/thinking|>A", "A"),
    "Command A": ("<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>A<|END_RESPONSE|>", "A"),
    "Granite": ("Here is my thought process: B Here is my response: A", "A"),
    "Granite in lines": ("Here's my thought process:\nB\nHere's my response:\nA", "A"),
    "channels": ("<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>A<|return|>", "A"),
    "channels, constrained": (
        "<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final"
        ' <|constrain|>JSON<|message|>{"a":1}<|return|>',
        '{"a":1}',
    ),
    "three channels": (
        "<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>commentary<|message|>C<|end|><|start|>assistant<|channel|>final<|message|>A",
        "A",
    ),
    "channels, cut": ("<|channel|>analysis<|message|>B", ""),
    "channels, opened by the template": ("We need B<|end|><|start|>assistant<|channel|>final<|message|>A", "A"),
    "channels, whole": (
        "<|start|>assistant<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>A",
        "A",
    ),
    "channels without tokens": ("analysisWe need B.assistantfinalA", "A"),
    "channels without tokens, lower case": ("analysiswe need B. assistantfinalA", "A"),
    "channels without tokens, cut": ("analysisWe need to think", ""),
    "three channels without tokens": ("analysisWe need B.assistantcommentaryhmassistantfinalA", "A"),
    "Gemma 4": ("<|channel>thought\nB<channel|>A<turn|>", "A"),
    "Kimi K3": ("<|open|>think<|sep|>B<|close|>think<|sep|><|open|>response<|sep|>A<|close|>response<|sep|>", "A"),
    "PLaMo": ("<|plamo:begin_think:plamo|>B<|plamo:end_think:plamo|>A", "A"),
    "Apertus": ("<|inner_prefix|>B<|inner_suffix|>A", "A"),
    "typed messages": (
        "<|message_model|><|content_thinking|>B<|end_message|><|message_model|><|content_text|>A<|end_message|><|content_model_end_sampling|>",
        "A",
    ),
    "Pangu": ("[unused16]B[unused17]A[unused10]", "A"),
    "Apriel": ("Here are my reasoning steps:\nB\n[BEGIN FINAL RESPONSE]\nA\n[END FINAL RESPONSE]\n<|end|>", "A"),
    "a stray end": ("</mm:think>A", "A"),
    "behind the answer": ('{"a":1}<think>hm</think>', '{"a":1}'),
    "behind the answer, cut": ('{"a":1}\n<think>hm', '{"a":1}'),
    "between": ("Intro.\n<think>x</think>\nA", "Intro.\n\nA"),
    "a process": ("<thought_process>B</thought_process>A", "A"),
    "blanks in tags": ("< think >B</ think >A", "A"),
    "escaped tags": ("&lt;think&gt;B&lt;/think&gt;A", "A"),
    "turns": ("<|im_start|>think\nB\n<|im_start|>answer\nA<|im_end|>", "A"),
    "a turn that ends": ("<|im_start|>think\nB<|im_end|>\n<|im_start|>answer\nA", "A"),
    "a terminal's words": ("Thinking...\nB\n...done thinking.\n\nA", "A"),
    "an end of turn": ("A<|im_end|>", "A"),
    "two ends of turn": ("A</s></s> ", "A"),
}

KEPT = {
    "a form with reasoning": "<sheet>\n- a\n</sheet>\n\n<reasoning>\nIt is.\n</reasoning>\n<sheet>b</sheet>",
    "a heading in brackets": "[Reasoning] It is B.\n[Answer] A",
    "a thought in brackets": "[Thought]: look\n[Action]: go",
    "an entity": "AT&T &lt;b&gt;",
    "JSON about tags": '{"final_answer": "use <think> and </think> here"}',
    "a mark in a JSON string": '{"reasoning": "a </think> b", "final_answer": "A"}',
    "JSON of a mark": '{"final_answer": "</think>"}',
    "JSON of a mark behind words": 'Here it is: {"final_answer": "</think>"}',
    "code that prints marks": "Print it.\n```python\nprint(\"<think>x</think>\")\nprint('</think>')\n```",
    "code with marks in lines": 'Do.\n```python\ns = """\n<think>\nplan\n</think>\n"""\n```',
    "SQL literals": "SELECT * FROM t WHERE a LIKE '%</think>%' OR b = '<think>'",
    "a sentence about tags": "The <think> tag opens a thought and the </think> tag ends it.",
    "a sentence with a pair": "Models wrap drafts in <think>…</think> tags.",
    "a sentence that ends in a mark": "Close it with </think>.",
    "a mark in backticks": "Use `</think>` to close.",
    "the word analysis": "analysis of variance shows B",
    "a heading": "Analysis: We need B",
    "a name": "analysisOfVariance",
    "bullet ids": "[calc-00001] then [think-00002]",
    "a remark in brackets": "[Reasoning about x] B",
    "answer tags": "<answer>A</answer>",
}

HOSTILE = {
    "opened": "<think>" * 10_000,
    "closed": "</think>" * 10_000,
    "in sentences": "a <think> b </think> c " * 3_000,
    "quoted": '"<think>' * 10_000,
    "in single quotes": "'<think>" * 10_000,
    "in lines": "\n<think>" * 10_000,
    "started": "<" * 330_000,
    "tokens started": "<|" * 165_000,
    "channels": "<|channel|>analysis<|message|>" * 3_000,
    "channels started": "<|start|>" * 36_000,
    "words": "analysis" * 41_000,
    "glued": "assistantfinal" * 23_000,
    "attributes": "<think " + "a" * 330_000,
    "prefixes": "[a_" * 110_000,
    "ends of turn": "</s>" * 83_000,
    "blanks": " " * 330_000 + "<think>",
    "objects": '{"a":' * 66_000 + "<think>",
}


@pytest.mark.parametrize("name", CUT)
def test_thoughts_and_marks_are_cut_and_what_is_left_holds_none(name):
    text, said = CUT[name]
    parts = split_thoughts(text)
    assert parts.said == said
    assert split_thoughts(parts.said).said == said


@pytest.mark.parametrize("name", KEPT)
def test_marks_that_a_model_writes_about_are_text(name):
    assert split_thoughts(KEPT[name]) == (KEPT[name], "")


@pytest.mark.parametrize("name", KEPT)
def test_what_a_model_writes_about_marks_is_kept_behind_thoughts(name):
    assert split_thoughts(f"<think>a draft</think>\n\n{KEPT[name]}") == (KEPT[name], "a draft")


@given(st.text(max_size=200))
def test_a_text_without_marks_stays_as_it_is(text):
    parts = split_thoughts(text)
    assert parts == (text, "") or any(mark in text for mark in "<[【⟨《«‹◁＜")


@pytest.mark.parametrize("name", HOSTILE)
def test_many_marks_take_linear_time(name):
    started = time.process_time()
    split_thoughts(HOSTILE[name])
    assert time.process_time() - started < 10, "what is not linear takes hours"


def completion(text, **more):
    return Completion(text=text, usage=NO_USAGE, seconds=0.0, **more)


def test_thoughts_are_kept_beside_the_reply_with_the_text_as_it_came():
    untouched = completion("A")
    assert cut_thoughts(untouched, None) is untouched
    reply = cut_thoughts(completion("<think>hm</think>A", thoughts="before"), None)
    assert (reply.text, reply.thoughts, reply.as_written) == ("A", "before\n\nhm", "<think>hm</think>A")
    assert cut_thoughts(reply, None) == reply


def test_the_text_of_a_turn_with_tools_holds_no_thoughts():
    call = ToolCall(id="1", name="look", arguments='{"at": "<think>"}')
    whole = write_turn(ToolTurn(content="<think>hm</think>", tool_calls=(call,)))
    reply = cut_thoughts(completion(whole), offer([]))
    assert read_turn(reply.text, ToolTurn) == ToolTurn(content="", tool_calls=(call,))
    require_answer(reply, offer([]))
    with pytest.raises(RolloutFault, match="empty_reply"):
        require_answer(cut_thoughts(completion(write_turn(ToolTurn(content="<think>hm"))), offer([])), offer([]))


@pytest.mark.parametrize(("cut", "kind"), [(False, "empty_reply"), (True, "length_truncated")])
def test_a_reply_of_thoughts_alone_is_a_failed_attempt(cut, kind):
    reply = cut_thoughts(completion("<think>It is A.", cut=cut), schema_of(ToolTurn))
    with pytest.raises(RolloutFault) as caught:
        require_answer(reply, None)
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", kind)
    assert caught.value.unreadable
    assert (caught.value.unreadable_text, caught.value.blank) == ("", "<think>It is A.")
