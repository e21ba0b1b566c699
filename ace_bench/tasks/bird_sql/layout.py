"""The text of a question (schema, external knowledge, user question), the query in an answer, and the judge of it.

The judge is a model that says whether a query means what the gold query means (paper, section 4.1). The paper names the
model, GPT-4o-mini, and not the prompt; ``prompts/<set>/bird_sql/judge.j2`` is ours. The judge sees question, schema and
both queries, but no results. It is not asked where the answer is the gold query letter for letter (correct) or holds no
query (incorrect).
"""

from __future__ import annotations

import re
from itertools import pairwise

from ace_bench.core.backbones import Lm
from ace_bench.core.prompts import Prompts
from ace_bench.tasks.answers import ask_judge

INSTRUCTION = (
    "Write one SQLite query that answers the user's question about a database. Name tables and columns exactly as the "
    "schema does, and return exactly what is asked for, without further columns. The answer is the query alone: no "
    "explanation, no comments, one statement.\n\n"
)

_SCHEMA, _KNOWLEDGE, _QUESTION = "Database schema:\n", "\n\nExternal knowledge: ", "\n\nUser question: "
_FENCE = re.compile(r"```([a-z0-9]*)[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_COMMENT = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_TOKEN = re.compile(rf"""{_COMMENT}|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|[()]""", re.DOTALL)
"""One token: a comment, a string, a quoted name, a word or a bracket."""


def format_question(schema: str, evidence: str, question: str) -> str:
    """Join the parts of a question; without evidence its paragraph is left out."""
    knowledge = f"{_KNOWLEDGE}{evidence}" if evidence else ""
    return f"{_SCHEMA}{schema}{knowledge}{_QUESTION}{question}"


def parts_of(text: str) -> tuple[str, str]:
    """Return the schema and the rest (knowledge and question) of what ``format_question`` made."""
    about, _, question = text.removeprefix(_SCHEMA).partition(_QUESTION)
    schema, _, knowledge = about.partition(_KNOWLEDGE)
    return schema, f"{question}\n\n(External knowledge: {knowledge})" if knowledge else question


def sql_of(answer: str | None) -> str:
    """Return the query in an answer: the first ``sql`` block, else the first fenced block, else the whole text."""
    text = (answer or "").strip()
    blocks = _FENCE.findall(text) if "```" in text else []
    marked = [block for language, block in blocks if language.lower() in ("sql", "sqlite")]
    sql: str = (marked or [block for _, block in blocks] or [text])[0]
    return sql.strip()


def orders(sql: str) -> bool:
    """Whether a query fixes the order of its rows: it has an ORDER BY outside all brackets, strings and comments."""
    depth, words = 0, []
    for token in _TOKEN.findall(sql):
        if token.startswith(("--", "/*")):
            continue
        depth += (token == "(") - (token == ")")
        if depth == 0:
            words.append(token.lower())
    return ("order", "by") in pairwise(words)


FIELDS = frozenset(("schema", "question", "gold", "predicted"))


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
    return ask_judge(fields, prompts, lm)
