"""LangChain agents with playbooks: frozen or learning, and any backbone as their chat model (extra ``langchain``)."""

from importlib.util import find_spec

if find_spec("langchain") is None:
    raise ImportError("ace_bench.integrations.langchain needs an extra: pip install 'ace-bench[langchain]'")

from ace_bench.integrations.langchain.chat_model import BackboneChatModel
from ace_bench.integrations.langchain.entries import DeltaEntry, observe
from ace_bench.integrations.langchain.frozen import ContextMiddleware
from ace_bench.integrations.langchain.middleware import ACEMiddleware
from ace_bench.integrations.langchain.models import CountedModels
from ace_bench.integrations.langchain.roles import AceRoles

__all__ = [
    "ACEMiddleware",
    "AceRoles",
    "BackboneChatModel",
    "ContextMiddleware",
    "CountedModels",
    "DeltaEntry",
    "observe",
]
