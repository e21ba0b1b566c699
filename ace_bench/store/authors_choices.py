"""What the authors' code does, as far as it says: the values of its switches, and the fields of its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ace_bench.store.authors_code import APPWORLD, FINANCE


@dataclass(frozen=True, kw_only=True)
class AuthorsChoices:
    """What a repository of the authors does for some tasks.

    ``settings`` are the accepted values of switches by path, ``by_mode`` those of one mode. ``built_in`` are switches
    of our own loop: the authors' loop (``loop``, the class that follows it) has them without a setting. ``sent`` are
    fields of requests, ``None`` for those that are not sent. ``repeats``: a prompt that occurs again is sent again.
    """

    name: str
    tasks: tuple[str, ...]
    loop: str
    settings: Mapping[str, Sequence[Any]]
    by_mode: Mapping[str, Mapping[str, Sequence[Any]]]
    built_in: Mapping[str, Sequence[Any]]
    sent: Mapping[str, Any]
    repeats: bool


_NOT_SENT: Mapping[str, Any] = {"seed": None, "stop": None, "top_p": None, "response_format": None}
_BOTH: Mapping[str, Sequence[Any]] = {
    "method.curator_every": (1,),
    "method.token_budget": (80_000,),
    "agent.parse_replies": ("official",),
    "unreadable_replies": ("wrong",),
}
_IN_LOOP: Mapping[str, Sequence[Any]] = {
    "method.operations": (["ADD"],),
    "method.update": ("delta",),
    "method.reflector": ("on",),
    "method.refiner.when": ("never",),
    "method.refiner.max_tokens": (None,),
    "method.refiner.harmful_min": (None,),
    "method.retrieval.mode": ("off",),
}
_LEARNS: Mapping[str, Sequence[Any]] = {"mode.epochs": (1,), "mode.shuffle": (False,)}
CODES = (
    AuthorsChoices(
        name=FINANCE,
        tasks=("finer", "formula"),
        loop="OfficialFinance",
        settings={
            **_BOTH,
            "method.max_reflection_rounds": (3,),
            "method.measure_post_update": (True,),
            "method.initial": (None,),
            "labels": ("gold", "correctness"),
        },
        by_mode={
            "offline": {
                **_LEARNS,
                "mode.select": ("best",),
                "mode.validate": ("multiples",),
                "mode.eval_every": (100,),
            },
            "online": {**_LEARNS, "mode.window": (15,)},
        },
        built_in={**_IN_LOOP, "method.unknown_section": ("others",)},
        sent={**_NOT_SENT, "temperature": 0, "max_tokens": 4096},
        repeats=True,
    ),
    AuthorsChoices(
        name=APPWORLD,
        tasks=("appworld",),
        loop="OfficialAppWorld",
        settings={
            **_BOTH,
            "method.max_reflection_rounds": (5,),
            "agent.max_steps": (40,),
            "agent.history_chars": (400_000,),
            "labels": ("gold", "none"),
        },
        by_mode={
            "offline": {**_LEARNS, "mode.select": ("final",)},
            "online": {**_LEARNS, "mode.window": (1,)},
        },
        built_in=_IN_LOOP,
        sent={
            **_NOT_SENT,
            "temperature": 0,
            "max_tokens": None,
            "stop": ["<|endoftext|>", "<|eot_id|>", "<|start_header_id|>"],
        },
        repeats=False,  # it keeps replies in a cache
    ),
)
