"""Prompts as the harness renders them, and small tasks of our own to learn from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ace_bench.core.resources import prompts_folder
from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet
from ace_rehearsal.reader import EmbeddedBackbone

PROMPTS = prompts_folder() / "default"
SECTIONS = (
    "strategies_and_insights",
    "formulas_and_calculations",
    "common_mistakes_to_avoid",
    "context_clues",
    "others",
)
FIELDS: dict[str, Any] = {
    "background": "",
    "question": "",
    "playbook": "",
    "counters": "",
    "reflection": "",
    "reasoning": "",
    "answer": "",
    "gold": None,
    "feedback": "",
    "bullets": "",
    "labels": "gold",
    "operations": ("ADD",),
    "sections": SECTIONS,
    "step": 1,
    "total": 1,
    "size": 0,
    "tokens": 0,
    "token_budget": 80_000,
}

Render = Callable[..., tuple[Message, ...]]
Ask = Callable[..., Any]

TAGS = (
    "Depreciation,AmortizationOfIntangibleAssets,DebtInstrumentFaceAmount,OperatingLossCarryforwards,"
    "DebtInstrumentInterestRateStatedPercentage,EffectiveIncomeTaxRate,CommonStockDividendsPerShareDeclared,"
    "StockRepurchasedDuringPeriodShares,FiniteLivedIntangibleAssetUsefulLife,NumberOfReportableSegments"
)
TAGGING_TASK = f"You know XBRL. Here is a list of tags options: ,{TAGS}. Answer with 2 tags, separated by a comma. \n"
NUMBER_TASK = "Answer with one plain number, at most two decimals.\n"


def tagging_question(*items: tuple[str, str]) -> str:
    """A question in FiNER's form over (entity, sentence) pairs."""
    lines = [
        f'{number}. What is best tag for entity "{entity}" in sentence: "{sentence}?"'
        for number, (entity, sentence) in enumerate(items, start=1)
    ]
    return "\n".join([*lines, "Output tags: "])


@pytest.fixture(scope="session")
def render() -> Render:
    prompts = PromptSet(PROMPTS, task="finer", prompt_group="qa")
    return lambda role, **fields: prompts.render(role, {**FIELDS, **fields})


@pytest.fixture
def backbone() -> EmbeddedBackbone:
    return EmbeddedBackbone()


@pytest.fixture
def ask(backbone: EmbeddedBackbone, render: Render) -> Ask:
    """Render a role's prompt, let the reader answer, and parse the reply."""

    def call(role: str, **fields: Any) -> Any:
        text = backbone.complete(render(role, **fields), role=role, session="s").text
        return text if role == "base" else json.loads(text)

    return call


def advice_of(reflection: dict[str, Any]) -> str:
    """The reflection as a retry and the curator read it."""
    names = {
        "Error": "error_identification",
        "Cause": "root_cause_analysis",
        "Correct approach": "correct_approach",
        "Key insight": "key_insight",
    }
    return "\n".join(f"{label}: {reflection[field]}" for label, field in names.items() if reflection[field])


def learn(ask: Ask, background: str, pairs: list[tuple[str, str]]) -> str:
    """Adapt a playbook over (question, gold) pairs as ACE does, and return its lines."""
    lines: list[str] = []
    for question, gold in pairs:
        playbook = "\n".join(lines)
        answer = ask("generator", background=background, question=question, playbook=playbook)
        if answer["final_answer"] == gold:
            continue
        reflection = ask(
            "reflector",
            background=background,
            question=question,
            reasoning=answer["reasoning"],
            answer=answer["final_answer"],
            gold=gold,
            feedback="The answer is not correct.",
        )
        reply = ask("curator", background=background, playbook=playbook, reflection=advice_of(reflection))
        for operation in reply["operations"]:
            lines.append(f"[new-{len(lines) + 1:05d}] ({operation['section']}) {operation['content']}")
    return "\n".join(lines)
