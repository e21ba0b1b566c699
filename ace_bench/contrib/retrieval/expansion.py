"""Query expansion by groups of words that mean about the same (document 004, "Query Expansion")."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ace_bench.contrib.retrieval.bm25 import stem_of, words_of

_GROUPS = """
pay payment paid transfer charge bill, buy purchase acquire order, sell sale revenue sales turnover, earn profit
income earnings, cost expense spend outlay, company firm business corporation, owner shareholder equity, stock share,
customer client buyer, owe debt liability borrow loan credit, lend borrow, money cash dollars amount, value worth
price, rent lease, inventory goods warehouse, yearly annual year per, monthly month, rise increase grow growth, fall
decrease decline, difference change, part share percent ratio portion, interest coupon rate, average mean, total sum,
spread margin, due mature maturity, buyback repurchase, goodwill impairment write, vest award grant rsu option, cancel
refund reimburse, error fail failure exception fault, retry repeat again, login sign session password credential
token, unauthorized unauthorised token login, throttle limit rate, delete remove wipe erase, copy backup duplicate,
folder directory path, document file, edit change write modify, rename move relocate, friend roommate contact relative
cousin sister brother colleague coworker, text message, mail email inbox, song track title, playlist mix, favourite
like heart, review rating star, reminder alarm wake, calendar appointment event date, search find look, missing null
empty blank, row record entry line, column field, distinct unique count, join table, group aggregate, oldest highest
max maximum, lower case capital, check verify confirm sure, begin start, finish done complete end, result answer
output, figure number value, unit thousands millions, doc documentation manual, argument parameter name, page listing,
upload send attachment, url address, callback webhook, shout log print, secret password token, patient person, ache
pain hurt tender, fever febrile temperature, stomach belly abdomen, breath breathless dyspnea wheeze, weak weakness
numb droop, thirst thirsty polydipsia, urination urine pee polyuria, reflux heartburn acid, allergy pollen sneeze
itch, calf leg, flight plane trip, sudden suddenly acute, night bed sleep
"""


def _expansions() -> dict[str, tuple[str, ...]]:
    synonyms: dict[str, dict[str, None]] = {}
    for group in _GROUPS.split(","):
        group_words = group.split()
        for word in group_words:
            synonyms.setdefault(stem_of(word), {}).update(dict.fromkeys(w for w in group_words if w != word))
    return {stem: tuple(group_words) for stem, group_words in synonyms.items()}


EXPANSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(_expansions())
"""Words of about the same meaning by stem: everyday words of the tasks' fields, the project's own list."""


def expand(query: str) -> str:
    """Return the query followed by the words that mean about the same as its own."""
    stems = [stem_of(word) for word in words_of(query)]
    added = dict.fromkeys(word for stem in stems for word in EXPANSIONS.get(stem, ()) if stem_of(word) not in stems)
    return " ".join([query, *added])
