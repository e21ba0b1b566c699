"""A LangChain agent in a small office: two tools, of which the wrong one looks right."""

from collections.abc import Sequence

from langchain_core.tools import BaseTool, tool


@tool
def customer_record(name: str) -> str:
    """Payments and address of a customer."""
    return f"Error: payments of {name} are in the ledger."


@tool
def ledger_entries(account: str) -> str:
    """Ledger entries of an account."""
    return f"{account} has paid {20 * len(account)} EUR."


TOOLS: Sequence[BaseTool] = (customer_record, ledger_entries)
