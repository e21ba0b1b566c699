"""Reads a Generator's reply: the JSON object it was asked for, an answer that stands clearly in another form, or tags.

Beyond ``core.replies`` this reads fields of other types (``bullet_ids`` null, a text or numbers; reasoning as list or
object), objects cut off behind the answer, a ``final_answer`` member in a text that is no JSON, and the sentence
``The final answer is: ...``, with or without ``\\boxed{}``, or ``Finish[...]``. If a text that is no JSON gives
different answers, none is taken.

A tagged reply is any text with the answer between tags, and now and then a block of Python to be run (Dynamic
Cheatsheet).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ace_bench.core.lenient_json import find_objects
from ace_bench.core.replies import parse, without_thoughts

_IDS = re.compile(r"[^\s,;\[\]\"']+")
_CITED = re.compile(r"\[([a-z]{2,}-\d{4,})\]")
_MEMBER = re.compile(r"""(["'])final_answer\1\s*:\s*(["'])((?:(?!\2)[^\\\n]|\\.)*)\2(?=[ \t]*(?:[,}\n]|\Z))""")
_SENTENCE = re.compile(r"the final answer is:?[ \t]*\n?([^\n]+)", re.IGNORECASE)
_FINISH = re.compile(r"\bFinish\[([^\[\]\n]*)\]")
_BOXED = r"\boxed{"
_WRAPPING = " \t$*`"


class GeneratorReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the Generator returns (paper, figure 12). Models often answer numbers bare or lists as lists.

    Fields stand in the order of the prompt: where decoding is constrained, a model writes them in this order, and it
    must reason before it answers.
    """

    reasoning: str = ""
    bullet_ids: list[str] = []
    final_answer: str | int | float | list[str]

    @property
    def answer(self) -> str:
        """The answer as text."""
        return _as_text(self.final_answer)


def read_reply(text: str) -> GeneratorReply:
    """Read a reply; raises ``ValueError`` with the reason if it holds no answer or none that is beyond doubt."""
    try:
        return parse(text, GeneratorReply)
    except ValueError as error:
        said = without_thoughts(text)
        reply = next(_from_objects(said), None) or _from_text(said)
        if reply is None:
            raise ValueError(str(error)) from error
        return reply


def _from_objects(text: str) -> Iterator[GeneratorReply]:
    for found in find_objects(text):
        value = found.value
        answer = _plain_answer(value.get("final_answer"))
        if answer is not None:
            yield GeneratorReply(
                reasoning=_plain_text(value.get("reasoning")),
                bullet_ids=_plain_ids(value.get("bullet_ids")),
                final_answer=answer,
            )


def _from_text(text: str) -> GeneratorReply | None:
    """Read an answer from a text without a readable object, if all places that give one agree."""
    answers = {match[3] for match in _MEMBER.finditer(text)}
    if not answers and "final_answer" not in text:
        answers = {_unboxed(match[1]) for match in _SENTENCE.finditer(text)} | set(_FINISH.findall(text))
    if len(answers) != 1 or not (answer := answers.pop()):
        return None
    return GeneratorReply(reasoning=text, bullet_ids=list(dict.fromkeys(_CITED.findall(text))), final_answer=answer)


def _unboxed(sentence: str) -> str:
    """Return the answer of a sentence without formulas' marks; "" if it holds more than the boxed answer."""
    said = sentence.strip(_WRAPPING).rstrip(".").strip(_WRAPPING)
    if not said.startswith(_BOXED):
        return said
    inner = said[len(_BOXED) : -1]
    return inner.strip() if said.endswith("}") and "{" not in inner and "}" not in inner else ""


def _plain_answer(value: Any) -> str | None:
    if isinstance(value, list):
        parts = [_plain_answer(item) if not isinstance(item, list) else None for item in value]
        return ",".join(part for part in parts if part is not None) if parts and None not in parts else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return _as_text(value)


def _as_text(answer: str | float | list[str]) -> str:
    if isinstance(answer, list):
        return ",".join(answer)
    return answer if isinstance(answer, str) else repr(answer)


def _plain_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def _plain_ids(value: Any) -> list[str]:
    if isinstance(value, str):
        return _IDS.findall(value)
    items = value if isinstance(value, list) else []
    return [str(item) for item in items if isinstance(item, str | int)]


RUN = "EXECUTE CODE!"
"""Asks for the block of code right before it to be run, as in Dynamic Cheatsheet (paper, figure 7)."""

_BLOCK = re.compile(rf"```(?:python|py)?[ \t]*\n((?:(?!```).)*?)\n?[ \t]*```\s*{RUN}", re.DOTALL)
_OPEN, _CLOSE = "<answer>", "</answer>"


@dataclass(frozen=True, kw_only=True)
class CodeRequest:
    """A reply up to the flag, the text before its code, and the code; what followed the flag was made up."""

    shown: str
    thought: str
    code: str


def code_request(text: str) -> CodeRequest | None:
    """Return the first code that a reply asks to have run, ``None`` where it asks for nothing."""
    found = _BLOCK.search(text.replace("\r\n", "\n"))
    if found is None:
        return None
    whole = found.string
    return CodeRequest(shown=whole[: found.end()], thought=whole[: found.start()].strip(), code=found[1])


def last_answer(text: str) -> str | None:
    """Return what stands in the last answer tag, up to the end where it is not closed; ``None`` without any."""
    _, found, rest = text.rpartition(_OPEN)
    return rest.partition(_CLOSE)[0].strip() or None if found else None
