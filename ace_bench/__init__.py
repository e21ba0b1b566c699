"""ace-bench: experiments on self-improving LLM contexts, after "Agentic Context Engineering" (ICLR 2026).

from ace_bench import run, load_run, load_runs, Playbook
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ace_bench.api import Run as Run
    from ace_bench.api import Runs as Runs
    from ace_bench.api import check_runs as check_runs
    from ace_bench.api import compare_runs as compare_runs
    from ace_bench.api import load_context as load_context
    from ace_bench.api import load_run as load_run
    from ace_bench.api import load_runs as load_runs
    from ace_bench.api import run as run
    from ace_bench.contexts.loading import save_context as save_context
    from ace_bench.playbook.feedback import give_feedback as give_feedback
    from ace_bench.playbook.playbook import Playbook as Playbook
    from ace_bench.report.frames import load_frames as load_frames

__version__ = "0.4.0"
__all__ = [
    "Playbook",
    "Run",
    "Runs",
    "__version__",
    "check_runs",
    "compare_runs",
    "give_feedback",
    "load_context",
    "load_frames",
    "load_run",
    "load_runs",
    "run",
    "save_context",
]
_MODULES = {"give_feedback": "ace_bench.playbook.feedback", "save_context": "ace_bench.contexts.loading"}


def __getattr__(name: str) -> Any:
    """Import names of the Python API on first use: commands that do not need them start faster."""
    if name in __all__:
        return getattr(import_module(_MODULES.get(name, "ace_bench.api")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
