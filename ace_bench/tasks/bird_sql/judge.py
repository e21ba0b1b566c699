"""The judge: a model's verdict on whether a query means what the gold query means (paper, section 4.1).

The paper names the model, GPT-4o-mini, and not the prompt; ``prompts/<set>/bird_sql/judge.j2`` is ours. The judge sees
question, schema and both queries, and no results. An answer that is the gold query letter for letter is correct, and
one without a query is incorrect, without asking.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ace_bench.core.backbones import Lm
from ace_bench.core.prompts import Prompts
from ace_bench.core.replies import ask
from ace_bench.tasks.bird_sql.layout import parts_of, sql_of

TEMPLATE = "judge"
FIELDS = frozenset(("schema", "question", "gold", "predicted"))


class JudgeReply(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict and what it rests on; the reason comes first, so that models think before they decide."""

    reason: str
    verdict: Literal["correct", "incorrect"]


def verdict_without_asking(answer: str | None, gold: str) -> bool | None:
    """Return the verdict where it needs no judge, else ``None``."""
    sql = sql_of(answer)
    if not sql:
        return False
    return True if sql == gold.strip() else None


def verdict(asked: str, answer: str | None, gold: str, prompts: Prompts, lm: Lm) -> bool:
    """Ask the judge, once more where its reply cannot be read; raises ``RolloutFault``."""
    schema, question = parts_of(asked)
    fields = {"schema": schema, "question": question, "gold": gold, "predicted": sql_of(answer)}
    return ask(lm, prompts.render(TEMPLATE, fields), JudgeReply).verdict == "correct"
