"""Guest: LangChain agents with playbooks, and any backbone as their chat model (extra ``langchain``)."""

from importlib.util import find_spec

if find_spec("langchain") is None:
    raise ImportError("ace_bench.contrib.langchain needs an extra: pip install 'ace-bench[langchain]'")

from ace_bench.contrib.langchain.chat_model import BackboneChatModel
from ace_bench.contrib.langchain.entries import DeltaEntry, observe, task_text
from ace_bench.contrib.langchain.frozen import ContextMiddleware
from ace_bench.contrib.langchain.middleware import ACEMiddleware
from ace_bench.contrib.langchain.roles import AceRoles, CountedModels

__all__ = [
    "ACEMiddleware",
    "AceRoles",
    "BackboneChatModel",
    "ContextMiddleware",
    "CountedModels",
    "DeltaEntry",
    "observe",
    "task_text",
]
