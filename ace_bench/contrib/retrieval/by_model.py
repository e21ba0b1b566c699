"""Stages of retrieval by a model: expansion of queries, validation of typos and of bullets (document 004).

Every stage reads a reply as plain text, so that weak models can be measured, too. A reply without words or numbers
changes nothing. The backbone records its calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ace_bench.contrib.retrieval.bm25 import Scores
from ace_bench.core.backbones import Backbone
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import RolloutFault
from ace_bench.core.types import Message

_WORD, _NUMBER, _YES = re.compile(r"[^\W\d_]{3,}"), re.compile(r"\d+"), re.compile(r"\W*yes\b", re.IGNORECASE)
_MORE = 8
_SHOWN = 5
_EXPAND = (
    "A search finds notes by their words. Which other words may a note have that answers this query? Write up to eight "
    "words, separated by commas, and nothing else."
)
_VALIDATE = "Which notes answer the query? Write their numbers, separated by commas, or 0 for none, and nothing else."
_TYPO = "Is the first word a misspelling of the second? Answer yes or no."


@dataclass(frozen=True)
class Model:
    """A backbone that is asked each thing once."""

    backbone: Backbone
    _said: dict[tuple[str, str], str] = field(default_factory=dict)

    def expanded(self, query: str) -> str:
        """Return the query with words that the model adds."""
        reply = self._ask("expander", _EXPAND, f"Query: {query}")
        new_words = dict.fromkeys(word for word in _WORD.findall(reply) if word.lower() not in query.lower())
        return " ".join([query, *[*new_words][:_MORE]])

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return 1 for the texts that the model takes among the first five, else 0: they come first."""
        listed = "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts[:_SHOWN], 1))
        reply = self._ask("validator", _VALIDATE, f"Query: {query}\n\nNotes:\n{listed}") if texts else ""
        taken = {int(number) for number in _NUMBER.findall(reply)}.intersection(range(_SHOWN + 1))
        return np.array([number in taken for number, _ in enumerate(texts, 1)], dtype=np.float32)

    def is_typo(self, written: str, word: str) -> bool:
        """Say whether a correction is right."""
        return bool(_YES.match(self._ask("typos", _TYPO, f"{written}, {word}")))

    def _ask(self, role: str, task: str, text: str) -> str:
        if (role, text) in self._said:
            return self._said[role, text]
        messages = [Message(role="user", content=f"{task}\n\n{text}")]
        try:
            reply = self.backbone.complete(messages, role=role, session=digest_of_text(text)[:16]).text
        except RolloutFault as error:
            if error.fault.owner != "model":
                raise
            reply = ""
        self._said[role, text] = reply
        return reply
