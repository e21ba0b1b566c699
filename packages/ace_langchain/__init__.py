"""Guest: LangChain agents with playbooks, and any backbone as their chat model (extra ``langchain``)."""

from importlib.util import find_spec

if find_spec("langchain") is None:
    raise ImportError("ace_langchain needs an extra: pip install 'ace-bench[langchain]'")

from ace_langchain.chat_model import BackboneChatModel
from ace_langchain.entries import DeltaEntry, observe
from ace_langchain.frozen import ContextMiddleware
from ace_langchain.middleware import ACEMiddleware
from ace_langchain.roles import AceRoles, CountedModels

__all__ = [
    "ACEMiddleware",
    "AceRoles",
    "BackboneChatModel",
    "ContextMiddleware",
    "CountedModels",
    "DeltaEntry",
    "observe",
]
