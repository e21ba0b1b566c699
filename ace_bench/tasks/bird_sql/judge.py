"""The judge: a model's verdict on whether a query means what the gold query means (paper, section 4.1).

The paper names the model, GPT-4o-mini, and not the prompt; ``prompts/<set>/bird_sql/judge.j2`` is ours. The judge sees
question, schema and both queries, but no results. It is not asked where the answer is the gold query letter for letter
(correct) or holds no query (incorrect).
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
    """The judge's reply; the reason comes first, so that the model thinks before it decides."""

    reason: str
    verdict: Literal["correct", "incorrect"]


def obvious_verdict(answer: str | None, gold: str) -> bool | None:
    """Return the verdict where no judge is needed, else ``None``."""
    sql = sql_of(answer)
    if not sql:
        return False
    return True if sql == gold.strip() else None


def verdict(asked: str, answer: str | None, gold: str, prompts: Prompts, lm: Lm) -> bool:
    """Ask the judge, and ask again if its reply cannot be read; raises ``RolloutFault``."""
    schema, question = parts_of(asked)
    fields = {"schema": schema, "question": question, "gold": gold, "predicted": sql_of(answer)}
    return ask(lm, prompts.render(TEMPLATE, fields), JudgeReply).verdict == "correct"
