"""Cuts what a model thinks from what it says; ours, because the parsers of vLLM and SGLang live in their servers.

Each completion passes ``cut_thoughts`` once, before anyone reads it. A server that does not report thoughts apart
leaves them in the text, between marks that differ by model: tags (``<think>``, ``<seed:think>``), brackets
(``[THINK]``, ``◁think▷``), special tokens (``<|START_THINKING|>``), gpt-oss's channels with or without their tokens, or
sentences ("Here is my thought process:"). A mark counts by its place:

- A block is thought where it opens at the start of the reply, and if its name is about thinking also at the start of a
  line or right behind a sentence. If nothing closes it, all that follows is thought. One that is closed may also
  stand right behind a word, without a blank.
- A closing mark that nothing opened ends thoughts which the server's template began: all before it is thought.
- A mark in quotation marks, in code or in the middle of a sentence is something that the model wrote about.

Marks of the end of a turn, and marks around an answer, are neither and are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import msgspec

from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import ToolTurn, is_offer, read_turn, write_turn
from ace_bench.core.types import Completion, Fault, Record

_NAME = (
    r"(?:[\w.-]{1,40}[:_-]|ant)?(?:think(?:ing)?|thoughts?|reasoning|reflections?|analysis|scratch_?pad|monologue|cot)"
    r"(?:[_-](?:process|steps?|content|block))?"
)
_CHANNEL = r"(?:\|start\|>[^<]{0,80}<)?\|channel\|>\s*(?:%s)\b[^<]{0,200}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
_OPEN = (
    _CHANNEL % "analysis|commentary", r"\|im_start\|>\s*think\b", r"\|open\|>think<\|sep\|>",
    r"\|channel>\s*thought\b", r"unused16\]",
)  # fmt: skip
_CLOSE = (
    _CHANNEL % "final", r"\|im_start\|>\s*answer\b", r"\|close\|>think<\|sep\|>", r"channel\|>", r"unused17\]",
    r"BEGIN FINAL RESPONSE\]",
)  # fmt: skip
_MARK = re.compile(
    r"[<＜&\[【⟨《«‹◁](?:"  # a set of characters first: texts without any are passed over quickly
    rf"(?P<open>{'|'.join(_OPEN)})|(?P<close>{'|'.join(_CLOSE)})"
    rf"|(?<=[<＜])[ ]?(?P<tag>/?)[ ]?{_NAME}(?::[\w.-]{{1,40}})?(?:\s[^<>＜＞]{{0,200}})?[>＞]"
    rf"|lt;(?P<escaped>/?){_NAME}&gt;"
    rf"|(?<=[^<＜&])(?P<bracket>/?){_NAME}[\]】⟩》»›▷]"
    r"|(?<=<)[|｜](?P<token>[^|｜<>\n]{1,60})[|｜]>)",
    re.IGNORECASE,
)
_GLUED = "assistantfinal"
"""What is left of gpt-oss's marks where the server drops special tokens."""
_BEHIND_WORDS = (
    rf"(?P<words>(?-i:{_GLUED})|\bHere(?:['’]s| is) my (?:final )?(?:response|answer):|\.\.\.done thinking\.)"
)
_BEGINNING = re.compile(
    r"\s*(?:Here(?:['’]s| is) my (?:thought|reasoning) process:|Here are my reasoning steps:|Thinking\.\.\.\n"
    rf"|(?:assistant)?analysis(?=[A-Z]['’\w]*\s)|(?:assistant)?(?:analysis|commentary)(?=.*{_GLUED}))",
    re.DOTALL,
)
"""How a reply begins whose thoughts no mark opens: Granite's and Apriel's words; gpt-oss's without special tokens."""
_THOUGHT_WORDS = frozenset(("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "inner"))
_END_WORDS = frozenset(("end", "close", "stop", "suffix"))
_PART = re.compile(rf'\\.|["\n]|```|{_MARK.pattern}|{_BEHIND_WORDS}', re.IGNORECASE | re.DOTALL)
_OPEN_QUOTE, _CLOSE_QUOTE = re.compile(r"(?:^|[\s(\[{=,:+])(['`])[^'`\n]*\Z"), re.compile(r"[^'`\n]*['`](?!\w)")
_WORD_BEFORE, _SENTENCE_AFTER = re.compile(r"\w[ \t]+\Z"), re.compile(r"[ \t]+[a-z]|[.,;:!?)]|\s*\Z")
_STARTS_ANEW = re.compile(r"(?:\A|\n|[.!?…}\])>*`])[ \t]*\Z")
_SKIPPED = re.compile(r"(?:\s|<s>|<\|message_model\|>|<\|start\|>assistant)*")
"""What may stand before the first mark of a reply."""
_JSON_START = re.compile(r"\s*(?:```\w*\s*)?(?=[{\[])")
_NEAR = 120
"""Characters around a mark that decide whether it is quoted or part of a sentence."""

_BEFORE_ANSWER = (
    "<s>", "<think/>", "<think />",
    "<|message_model|>", "<|content_text|>", "<|START_RESPONSE|>", "<|START_TEXT|>", "<|begin_of_solution|>",
    "<｜begin▁of▁solution｜>", "<|open|>response<|sep|>", "[BEGIN FINAL RESPONSE]", "<|start|>assistant", "<|message|>",
)  # fmt: skip
_AFTER_ANSWER = (
    "</s>", "<eos>", "<eop>", "<|end|>", "<|return|>", "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>",
    "<|endoftext|>", "<|end_of_text|>", "<|endofturn|>", "<|end_of_msg|>", "<|stop|>", "<end_of_turn>", "<turn|>",
    "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|END_TEXT|>", "<|end_of_solution|>",
    "<｜end▁of▁solution｜>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "[END FINAL RESPONSE]",
    "<|end_message|>", "<|content_model_end_sampling|>", "[EOS]", "[EOT]", "[unused10]",
)  # fmt: skip


class Parts(NamedTuple):
    """What a reply says, and what was thought in it: the text between the marks."""

    said: str
    thoughts: str


def cut_thoughts(completion: Completion, schema: Record | None) -> Completion:
    """Return a completion without its thoughts, which are kept beside its text, as is the whole text as it came."""
    turn = _read_tool_turn(completion.text) if is_offer(schema) else None
    full_text = completion.text if turn is None else turn.content
    parts = split_thoughts(full_text)
    if parts.said == full_text:
        return completion
    return replace(
        completion,
        text=parts.said if turn is None else write_turn(msgspec.structs.replace(turn, content=parts.said)),
        thoughts="\n\n".join(filter(None, (completion.thoughts, parts.thoughts))),
        written=completion.text,
    )


def require_answer(completion: Completion, schema: Record | None) -> None:
    """Raise a fault of the model if cutting left nothing of its reply."""
    turn = _read_tool_turn(completion.text) if is_offer(schema) else None
    if not completion.written or (completion.text if turn is None else turn.content or turn.tool_calls):
        return
    fault = Fault(owner="model", kind="empty_reply", message="the reply holds thoughts or marks, and no answer")
    if completion.cut:
        message = "cut at the token limit before its thoughts ended; raise backbone.sampling.max_tokens"
        fault = Fault(owner="model", kind="length_truncated", message=message)
    raise RolloutFault(fault, completion)


def _read_tool_turn(text: str) -> ToolTurn | None:
    try:
        return read_turn(text, ToolTurn)
    except ValueError:  # a guest's backbone may write something else
        return None


def split_thoughts(text: str) -> Parts:
    """Split a text into answer and thoughts. A text without marks is returned unchanged. Takes linear time."""
    marks = _find_marks(text)
    reply, thoughts = _cut(text, marks) if marks else (text, "")
    answer = _without_ends(reply)
    return Parts(text if answer == text.strip() else answer, thoughts)


class _Mark(NamedTuple):
    """A mark in a text.

    ``weak``: a name such as reasoning, which prompts and answers use, too, so that it only counts at the start.
    ``endless``: it needs no closing mark; headings such as ``[Reasoning]`` do. ``message``: the end of a message closes
    it, too. ``opens``: its place is one where a block may open. ``quoted``: it stands in quotation marks or code.
    ``behind_word``: a sentence goes on before it; ``goes_on``: behind it.
    """

    start: int
    end: int
    kind: Literal["open", "close", "end"]
    weak: bool = False
    endless: bool = True
    message: bool = False
    opens: bool = True
    quoted: bool = False
    behind_word: bool = False
    goes_on: bool = False


def _cut(text: str, marks: Sequence[_Mark]) -> tuple[str, str]:
    """Return what a text says, and what is thought in it."""
    closing = _pair(marks)
    closed = frozenset(closing.values())
    closing_marks = [index for index, mark in enumerate(marks) if mark.kind == "close"]
    last = max((index for index in closing_marks if not marks[index].quoted), default=max(closing_marks, default=-1))
    spoken, thoughts = list[str](), list[str]()
    begin, first = 0, _first_character(text, 0)
    position = 0
    while position < len(marks):
        mark = marks[position]
        leads = not spoken and first >= mark.start
        next_position = position + 1
        ends = closing.get(position, last if leads and last > position else None)
        if (
            mark.kind == "open"
            and (leads or (mark.opens and not mark.quoted and not mark.weak))
            and (ends is not None or mark.endless)
        ):
            spoken += [text[begin : mark.start]] if text[begin : mark.start].strip() else []
            thoughts.append(text[mark.end : len(text) if ends is None else marks[ends].start])
            begin, next_position = (len(text), len(marks)) if ends is None else (marks[ends].end, ends + 1)
        elif mark.kind == "close" and (leads or _ends_thoughts(mark, mentioned=position in closed)):
            thoughts, spoken = ["".join([*thoughts, *spoken, text[begin : mark.start]])], []
            begin = mark.end
        if next_position > position + 1 or begin > mark.start:
            first = _first_character(text, begin)
        position = next_position
    spoken.append(text[begin:])
    return "".join(spoken), "\n\n".join(filter(None, map(str.strip, thoughts)))


def _first_character(text: str, begin: int) -> int:
    skipped = _SKIPPED.match(text, begin)
    return begin if skipped is None else skipped.end()


def _ends_thoughts(mark: _Mark, *, mentioned: bool) -> bool:
    """Whether a closing mark ends thoughts that have no opening mark.

    ``mentioned``: an opening mark stands in a sentence.
    """
    if mark.quoted or (mark.weak and mentioned):
        return False
    return not (mark.goes_on and (mark.behind_word or mentioned))


def _pair(marks: Sequence[_Mark]) -> Mapping[int, int]:
    """Return the index of the closing mark for each opening mark that has one. Blocks may be nested."""
    closing, opened = dict[int, int](), list[int]()
    for index, mark in enumerate(marks):
        if mark.quoted:
            continue
        if mark.kind == "open":
            opened.append(index)
        elif opened and (mark.kind == "close" or marks[opened[-1]].message):
            closing[opened.pop()] = index
    return closing


def _find_marks(text: str) -> Sequence[_Mark]:
    """Return the marks of a text in order, with facts about their positions."""
    beginning = _BEGINNING.match(text)
    if beginning is None and _MARK.search(text) is None and _GLUED not in text:
        return ()
    opening = [] if beginning is None else [_Mark(beginning.start(), beginning.end(), "open")]
    quotes, fences = [0], 0  # quotation marks of each line
    matches: list[tuple[re.Match[str], Literal["open", "close", "end"], int, int, int]] = []
    for part in _PART.finditer(text, opening[0].end if opening else 0):
        if part[0] == "\n":
            quotes.append(0)
        elif part[0] == '"':
            quotes[-1] += 1
        elif part[0] == "```":
            fences += 1
        elif (kind := _kind(part, began=beginning is not None)) is not None:
            matches.append((part, kind, quotes[-1], len(quotes) - 1, fences))
    object_end = _object_end(text)
    marks = [
        _place(
            text,
            part,
            kind,
            quoted=part.start() < object_end or _between(before, quotes[line]) or _between(ticks, fences),
        )
        for part, kind, before, line, ticks in matches
    ]
    return [*opening, *marks]


def _between(before: int, total: int) -> bool:
    """Whether a position is inside quotation marks, given how many of all marks come before it."""
    return before % 2 == 1 and (total - before) % 2 == 1


def _place(text: str, part: re.Match[str], kind: Literal["open", "close", "end"], *, quoted: bool) -> _Mark:
    before, after = text[max(0, part.start() - _NEAR) : part.start()], text[part.end() : part.end() + _NEAR]
    name = part[0].lower()
    near = _OPEN_QUOTE.search(before) is not None and _CLOSE_QUOTE.match(after) is not None
    glued = before[-1:].isalnum()
    return _Mark(
        part.start(),
        part.end(),
        kind,
        weak=part["open"] is None and part["close"] is None and "think" not in name and "thought" not in name,
        endless=not glued and (part["bracket"] is None or name == "[think]"),
        message=part["open"] is not None or (part["token"] or "").startswith("content_"),
        opens=(glued or _STARTS_ANEW.search(before) is not None) and after[:1] not in tuple(":,;.)"),
        quoted=quoted or near,
        behind_word=_WORD_BEFORE.search(before) is not None,
        goes_on=_SENTENCE_AFTER.match(after) is not None,
    )


def _kind(mark: re.Match[str], *, began: bool) -> Literal["open", "close", "end"] | None:
    """Return what a mark does; ``None`` if nothing. ``began``: words at the start of the reply opened thoughts."""
    if mark["open"]:
        return "open"
    if mark["words"]:  # only where it is glued to what stands before it can it be nothing else
        glued = mark[0] == _GLUED and mark.string[mark.start() - 1 : mark.start()].strip(" \n\t(=,[{") != ""
        return "close" if began or glued else None
    if mark["close"]:
        return "close"
    if mark["token"]:
        name = mark["token"].lower()
        parts = set(re.split(r"[\W_]+", name))
        ends = bool(parts & _END_WORDS) or name.startswith("/")
        if parts & _THOUGHT_WORDS:
            return "close" if ends else "open"
        return "end" if ends else None
    slash = next((mark[name] for name in ("tag", "escaped", "bracket") if mark[name] is not None), None)
    return None if slash is None else "close" if slash else "open"


def _object_end(text: str) -> int:
    """Return where the JSON ends that a text begins with; 0 if it begins with none."""
    start = _JSON_START.match(text)
    if start is None:
        return 0
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start.end())[1]
    except (ValueError, RecursionError):
        return 0


def _without_ends(text: str) -> str:
    """Return a text without the marks around an answer."""
    begin, end = 0, len(text)
    while True:
        while end > begin and text[end - 1].isspace():
            end -= 1
        mark = next((mark for mark in _AFTER_ANSWER if text.endswith(mark, begin, end)), None)
        if mark is None:
            break
        end -= len(mark)
    while True:
        while begin < end and text[begin].isspace():
            begin += 1
        mark = next((mark for mark in _BEFORE_ANSWER if text.startswith(mark, begin, end)), None)
        if mark is None:
            break
        begin += len(mark)
    return text[begin:end]
