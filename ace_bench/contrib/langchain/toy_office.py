"""A small office to measure an agent's learning in: tools whose descriptions mislead, and questions for two runs.

Both runs ask the same kinds of question about other names. The tool that a description suggests is right for three
kinds. For three it returns an error that says where to look, and for two it returns an answer that is out of date,
which only feedback shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from langchain_core.tools import BaseTool, tool

from ace_bench.core.encoding import digest_of_text


class DeskQuestion(NamedTuple):
    """A question, the value that a right answer contains, and the call that returns this value."""

    text: str
    value: str
    call: str


def _value(kind: str, name: str) -> str:
    """Return a three-digit number that belongs to a name."""
    return str(100 + int(digest_of_text(f"{kind}/{name}")[:6], 16) % 900)


def customer_record(name: str) -> str:
    """Look up a customer: address, contact, invoices, payments and complaints of the customer."""
    return f"Error: {name} has no invoices, payments or complaints here; ask the ledger, the bank or the tickets."


def ledger_entries(account: str) -> str:
    """Ledger entries of an account."""
    return f"The open invoices of {account} sum up to {_value('ledger', account)} EUR."


def bank_statement(payer: str) -> str:
    """Bank statement for a payer."""
    return f"The last payment of {payer} was {_value('bank', payer)} EUR."


def ticket_search(reporter: str) -> str:
    """Tickets by reporter."""
    return f"{reporter} has filed {_value('tickets', reporter)} tickets."


def article_catalogue(article: str) -> str:
    """Catalogue of articles: price and weight of an article."""
    return f"{article}: price {_value('old price', article)} EUR, weight {_value('weight', article)} g."


def daily_quote(item: str) -> str:
    """What an item costs as of this morning."""
    return f"{item}: {_value('price', item)} EUR."


def staff_directory(person: str) -> str:
    """Directory of the staff: phone extension and room of a person."""
    return f"{person}: extension {_value('phone', person)}, room {_value('old room', person)}."


def desk_plan(person: str) -> str:
    """Where people sit since the move."""
    return f"{person} sits in {_value('room', person)}."


def stock_level(article: str) -> str:
    """Stock of an article: pieces left in the warehouse."""
    return f"{article}: {_value('stock', article)} pieces."


_TOOLS = (
    customer_record, ledger_entries, bank_statement, ticket_search, article_catalogue, daily_quote, staff_directory,
    desk_plan, stock_level,
)  # fmt: skip
_KINDS: Sequence[tuple[str, Callable[[str], str], str, tuple[str, str]]] = (
    ("Which invoices of the customer {} are open?", ledger_entries, "ledger", ("Acme", "Globex")),
    ("What is the weight of the article {}?", article_catalogue, "weight", ("Bolt", "Hinge")),
    ("What was the last payment of the customer {}?", bank_statement, "bank", ("Initech", "Hooli")),
    ("What is the price of the article {}?", daily_quote, "price", ("Washer", "Rivet")),
    ("What is the phone extension of {}?", staff_directory, "phone", ("Miriam", "Tobias")),
    ("How many complaints has the customer {} made?", ticket_search, "tickets", ("Umbrella", "Stark")),
    ("In which room is the person {}?", desk_plan, "room", ("Jonas", "Ingrid")),
    ("How many pieces of {} are left in the warehouse?", stock_level, "stock", ("Dowel", "Bracket")),
)


def desk_tools() -> Sequence[BaseTool]:
    """Return the tools of the office."""
    return [tool(function) for function in _TOOLS]


def desk_questions(run: int) -> Sequence[DeskQuestion]:
    """Return the questions of run 0 or 1."""
    questions = []
    for text, function, measured, names in _KINDS:
        name, parameter = names[run], function.__code__.co_varnames[0]
        call = f"{function.__name__}({parameter}={name!r})"
        questions.append(DeskQuestion(text.format(name), _value(measured, name), call))
    return questions
