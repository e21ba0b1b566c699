"""Reads a Generator's reply as the authors' finance code does (ace-agent/ace, ``utils.extract_answer``).

Whatever the model sends is an answer: a reply that cannot be read answers ``NO_ANSWER`` and is never asked for again.
The rules keep what looks accidental in them, such as an answer in a list written as Python writes a list, or the last
of several answers. They take linear time.
"""

from __future__ import annotations

import json
import re

NO_ANSWER = "No final answer found"
"""What stands for the answer of a reply without one."""

_CITED = re.compile(r"\[([a-z]{3,}-\d{5})\]")
_FINISH = "Finish["
_DOUBLE_QUOTED = re.compile(r'"final_answer"\s*:\s*"([^"]*)"')
_SINGLE_QUOTED = re.compile(r"'final_answer'\s*:\s*'([^']*)'")
_UNQUOTED = re.compile(r"""["']final_answer["']\s*:\s*([^,}]+)""")
_SENTENCE_BOXED = re.compile(r"[Tt]he final answer is:?\s*\$?\\boxed(?=\{)")
_SENTENCE = re.compile(r"[Tt]he final answer is:?\s*([^\n.]+)")
_ONLY_BOXED = re.compile(r"\$?\\boxed\{([^}]+)\}\$?")


def official_answer(text: str) -> str:
    """Return the answer; raises ``ValueError`` or ``RecursionError`` where the authors' code breaks off, too."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return _from_text(text)
    return str(value.get("final_answer", NO_ANSWER)) if isinstance(value, dict) else _from_text(text)


def official_citations(text: str) -> tuple[str, ...]:
    """Return the bullet ids that stand in brackets by themselves, as often as they do; others are not seen."""
    return tuple(_CITED.findall(text))


def _from_text(text: str) -> str:
    finished = _finished(text)
    if finished is not None:
        return finished
    for pattern in (_DOUBLE_QUOTED, _SINGLE_QUOTED):
        if found := pattern.findall(text):
            return str(found[-1])
    if found := _UNQUOTED.findall(text):
        return str(found[-1]).strip().rstrip(",}")
    boxed = _SENTENCE_BOXED.search(text)
    if boxed is not None and (inner := _in_braces(text, boxed.end())):
        return inner
    if found := _SENTENCE.findall(text):
        said = str(found[-1]).strip()
        only = _ONLY_BOXED.fullmatch(said)
        return (only[1] if only else said).replace("$", "").strip() or NO_ANSWER
    return NO_ANSWER


def _finished(text: str) -> str | None:
    """Return what stands in the last ``Finish[...]`` that ends on its line."""
    last = None
    place = text.find(_FINISH)
    while place >= 0:
        start = place + len(_FINISH)
        line = text.find("\n", start)
        end = text.find("]", start, len(text) if line < 0 else line)
        if end >= 0:
            last, place = text[start:end], text.find(_FINISH, end)
        else:
            place = text.find(_FINISH, line) if line >= 0 else -1
    return last


def _in_braces(text: str, opening: int) -> str:
    depth = 0
    for brace in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[opening + 1 : opening + brace.start()]
    return ""
