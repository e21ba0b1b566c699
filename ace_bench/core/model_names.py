"""Decides from two names whether the requested model is the one that answered.

Servers may answer under another form of the name. These differences do not count:

- letter case, punctuation, and what stands before the last ``/``: an organisation, a provider or a folder
  (``Qwen/Qwen2.5-7B-Instruct``, ``/models/Qwen2.5-7B-Instruct.gguf``, and the cache folders of the model hub)
- a release that one of the names lacks: a date or ``latest`` (``gpt-4o-mini`` answers as ``gpt-4o-mini-2024-07-18``)
- a number format that one of the names lacks (``Q4_K_M``, ``FP8``, ``AWQ``)
- a route behind a colon (``:free``, ``:nitro``), a provider's region, and a server's placeholder (``default``)

Every other difference is another model: a size, ``mini``, ``turbo``, ``instruct``, a version, or two releases or
formats that contradict each other. A server that gives no name is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

ModelCounts = Mapping[str, Mapping[str, int]]
"""Answered calls by the model that was asked for and the name that the server gave."""

_PLACEHOLDERS = ("", "default", "default_model", "local-model", "tgi")
"""Names that request any model of a server."""
_ROUTES = re.compile(r":(?:free|nitro|floor|online|extended|exacto|beta|thinking|cheapest|fastest)$")
_HUB_CACHE = re.compile(r"models--[^/]+?--([^/]+)")
_FILE = re.compile(r"(?:-\d{5}-of-\d{5})?\.(?:gguf|ggml|bin|safetensors)$")
_REGION = re.compile(r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|meta|amazon|mistral|cohere|openai|deepseek|qwen)\.")
_SEPARATORS = re.compile(r"[^0-9a-z]+")
_DATE = re.compile(
    r"-(?:20\d\d-\d\d-\d\d|\d\d-20\d\d|20\d\d-\d\d|(?:0\d|1[0-2])-(?:[0-2]\d|3[01])|\d{8}|\d{6}|\d{4}|00\d)(?=-|$)"
)
_FORMAT = re.compile(
    r"-(?:(?:ud-)?i?q\d(?:-(?:k|[01]|xs|xxs|nl|s|m|l|xl))*|b?f(?:loat)?p?(?:8|16|32)(?:-dynamic)?|int[48]|w\d+a\d+"
    r"|[48]bit|awq|gptq|gguf|mlx|nvfp4|mxfp4|nf4|bnb)(?=-|$)"
)


class _Name(NamedTuple):
    model: str
    release: str
    number_format: str


def is_same_model(asked: str, answered: str) -> bool:
    """Whether a reply of the model ``answered`` is one of the model ``asked``."""
    wanted, answered_name = _read(asked), _read(answered)
    if asked.strip().lower() in _PLACEHOLDERS or not answered_name.model:
        return True
    return wanted.model == answered_name.model and all(
        asked_part == answered_part or not (asked_part and answered_part)
        for asked_part, answered_part in zip(wanted[1:], answered_name[1:], strict=True)
    )


def count_models(calls: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    """Sum numbers of calls up by the model that was asked and the one that answered; "" is a server that says none."""
    counts: dict[str, dict[str, int]] = {}
    for asked, answered, number in sorted(calls):
        if answered:
            of_model = counts.setdefault(asked, {})
            of_model[answered] = of_model.get(answered, 0) + number
    return counts


def other_models(counts: ModelCounts) -> dict[str, int]:
    """Return the calls by each model that answered in place of another one."""
    answering: dict[str, int] = {}
    for asked, answers in counts.items():
        for answered, number in answers.items():
            if not is_same_model(asked, answered):
                answering[answered] = answering.get(answered, 0) + number
    return answering


def describe_other_models(counts: ModelCounts) -> str:
    """Say which models answered in place of others, and how often; "" if none did."""
    return "; ".join(
        f"{answered} answered {number:,} of {sum(answers.values()):,} calls to {asked}"
        for asked, answers in counts.items()
        for answered, number in answers.items()
        if not is_same_model(asked, answered)
    )


def _read(name: str) -> _Name:
    """Split a name into what identifies the model, its release and its number format."""
    text = name.strip().lower().replace("\\", "/").rstrip("/")
    cached = _HUB_CACHE.search(text)
    text = cached[1] if cached else text.rpartition("/")[2]
    text = _REGION.sub("", _FILE.sub("", _ROUTES.sub("", text)))
    model = _SEPARATORS.sub("-", text).strip("-").removesuffix("-latest").replace("gpt-35-", "gpt-3-5-")  # Azure's name
    formats, model = "".join(_FORMAT.findall(model)), _FORMAT.sub("", model)
    releases, model = "".join(_DATE.findall(model)), _DATE.sub("", model)
    return _Name(model, releases.replace("-", ""), formats)
