"""Two tiny calls that find out whether a server follows ``seed`` and ``stop``.

The same prompt is sent twice with one seed, at temperature 1; the second time a word of the first reply is the stop
sequence. If the server follows both, the second reply is the first one up to that word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ace_bench.backbones.openai_compatible.attempts import CallResult
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.core.types import Message, Usage

TOKENS = 16
PROMPT = (Message(role="user", content="Write one sentence about a town that you like."),)
FOLLOWED, IGNORED, REFUSED, UNKNOWN = "followed", "ignored", "refused", "n/a"

Ask = Callable[[Mapping[str, Any]], CallResult]


def find_capabilities(ask: Ask, seed: int = 7) -> tuple[Mapping[str, str], Usage | None]:
    """Return what is known of ``seed`` and ``stop``, and the usage of the last reply.

    ``ask`` sends the prompt with further fields of the request.
    """
    first = ask({"seed": seed}).result
    if isinstance(first, Problem):
        return {"seed": _refusal(first), "stop": UNKNOWN}, None
    words = first.text.split()
    if len(words) < 3:
        return {"seed": UNKNOWN, "stop": UNKNOWN}, first.usage
    stop = words[len(words) // 2]
    second = ask({"seed": seed, "stop": [stop]}).result
    if isinstance(second, Problem):
        return {"seed": UNKNOWN, "stop": _refusal(second)}, first.usage
    whole = second.text.strip() == first.text.strip()
    begun = second.text.strip() == first.text.partition(stop)[0].strip()
    return {
        "seed": FOLLOWED if whole or begun else IGNORED,
        "stop": IGNORED if stop in second.text else FOLLOWED,
    }, second.usage


def _refusal(problem: Problem) -> str:
    return REFUSED if problem.kind == "bad_request" else UNKNOWN
