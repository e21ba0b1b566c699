"""A LangChain middleware that learns: the agent's playbook grows with every run, in the agent's own state."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from ace_bench.contexts import load, system_prompt
from ace_bench.contrib.langchain.entries import (
    Reflect,
    attempt_in,
    entry_record,
    observe,
    question_in,
    task_text,
    with_entries,
    with_marks,
)
from ace_bench.contrib.langchain.frozen import with_text
from ace_bench.contrib.langchain.roles import NO_FEEDBACK, AceRoles, as_json
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Rollout, Sample
from ace_bench.playbook.bullets import BEFORE_FIRST_STEP
from ace_bench.playbook.embed import make_embedder
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refiner

SECTIONS = ("strategies", "tool_use", "common_mistakes", "final_answer")
_CITE = "When you rely on an entry, name its id in square brackets."
_MARKED = "An entry marked [+] has worked, [-] has failed, [o] neither. Prefer the first and avoid the second."


class ACEState(AgentState[Any]):
    """The agent's state with its playbook (``Playbook.dump()``) and the number of runs behind it.

    The other fields last for one run: its question, the agent's system message and tools, and what the reflector has
    noted. All are JSON, so that any checkpointer keeps them.
    """

    ace_playbook: NotRequired[dict[str, Any]]
    ace_runs: NotRequired[int]
    ace_question: NotRequired[Annotated[str, PrivateStateAttr]]
    ace_task: NotRequired[Annotated[str, PrivateStateAttr]]
    ace_pending_deltas: NotRequired[Annotated[list[Any], PrivateStateAttr]]


class ACEMiddleware(AgentMiddleware[ACEState, Any, Any]):
    """Shows the playbook to the model, reflects on its replies, and curates after each run.

    There is a hook for each role (paper, section 3): ``wrap_model_call`` adds the playbook to the system message for
    the Generator, ``after_model`` reflects, ``after_agent`` curates. The playbook is in the state, so a checkpointer
    keeps it by thread; the middleware holds none.

    ``reflector`` is ``observe`` (no model; every entry is neutral), any other function of a reply, or ``AceRoles``:
    ACE's own Reflector and Curator. A subclass can override ``reflect`` instead. ``initial`` is the playbook of new
    threads: a value or a saved file; ``sections`` belong to an empty one. ``refiner`` keeps playbooks compact. The
    default merges and filters bullets of ``AceRoles``. Entries of other reflectors stay apart and are only pruned.
    """

    state_schema = ACEState

    def __init__(
        self,
        *,
        reflector: Reflect | AceRoles = observe,
        initial: Playbook | str | Path | None = None,
        sections: Sequence[str] = SECTIONS,
        refiner: Refiner | None = None,
    ) -> None:
        super().__init__()
        self._reflector = reflector
        self._start = _start_playbook(initial, sections)
        self._refiner = refiner or _default_refiner(merges=isinstance(reflector, AceRoles))
        self._refining = threading.Lock()  # an agent may run in several threads, and a refiner caches embeddings

    def reflect(self, latest: AIMessage) -> Iterable[Any]:
        """Return the entries (``DeltaEntry``) that a reply teaches; not used with ``AceRoles``."""
        return () if isinstance(self._reflector, AceRoles) else self._reflector(latest)

    def before_agent(self, state: ACEState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Note the question, which a summary may remove from the messages."""
        return {"ace_question": question_in(state["messages"]), "ace_pending_deltas": []}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Call the model with the playbook."""
        return self._with_task(request, handler(with_text(request, self._show_playbook(request.state))))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """Call the model with the playbook."""
        return self._with_task(request, await handler(with_text(request, self._show_playbook(request.state))))

    def after_model(self, state: ACEState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Reflect: on the reply, or with ``AceRoles`` on the whole run once the reply is its answer."""
        latest = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)
        if latest is None:
            return None
        if isinstance(self._reflector, AceRoles):
            return None if latest.tool_calls else {"ace_pending_deltas": [self._reflection(self._reflector, state)]}
        noted = [entry_record(entry) for entry in self.reflect(latest)]
        return {"ace_pending_deltas": [*state.get("ace_pending_deltas", []), *noted]} if noted else None

    def after_agent(self, state: ACEState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Curate: apply what was noted in the run, and refine the playbook."""
        playbook, step, pending = self._playbook(state), state.get("ace_runs", 0), state.get("ace_pending_deltas", [])
        if isinstance(self._reflector, AceRoles):
            # A run that a limit has ended has no answer, and its steps are still to be reflected on.
            reflection = pending[-1] if pending else self._reflection(self._reflector, state)
            playbook = self._reflector.curate(playbook, reflection, step=step, refine=self._refine)
        else:
            playbook = with_entries(playbook, pending, step=step, refine=self._refine)
        return {"ace_playbook": as_json(playbook.dump()), "ace_runs": step + 1, "ace_pending_deltas": []}

    def _reflection(self, roles: AceRoles, state: ACEState) -> Mapping[str, Any]:
        playbook, question = self._playbook(state), state.get("ace_question", "")
        session = f"{get_config().get('configurable', {}).get('thread_id', 'langchain')}/{state.get('ace_runs', 0)}"
        attempt = attempt_in(state["messages"], question, playbook)
        inputs = {"background": state.get("ace_task", ""), "question": question}
        run = Rollout(
            key=session,
            sample=Sample(id=session, split="train", inputs=inputs),
            context_digest=playbook.digest,
            trial=0,
            attempt=attempt,
            feedback=NO_FEEDBACK,
            fault=None,
            calls=len(attempt.trajectory),
            seconds=0.0,
        )
        return roles.reflect(run, playbook, state)

    def _playbook(self, state: Mapping[str, Any]) -> Playbook:
        saved = state.get("ace_playbook")
        if not saved:
            return self._start
        if "entries" in saved:  # of the package agent_episodic_memory
            return with_entries(self._start, saved["entries"], step=BEFORE_FIRST_STEP, refine=self._refine)
        return Playbook.load(saved)

    def _refine(self, playbook: Playbook, touched: Collection[str], step: int) -> Playbook:
        with self._refining:
            return self._refiner.refine(playbook, touched, step=step).playbook

    def _show_playbook(self, state: Mapping[str, Any]) -> str:
        playbook = self._playbook(state)
        marked = with_marks(playbook)
        text = system_prompt(marked)
        return "\n\n".join([text, *([_MARKED] if marked is not playbook else []), _CITE]) if text else ""

    def _with_task(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
        task = task_text(request.system_prompt or "", request.tools)
        return ExtendedModelResponse(model_response=response, command=Command(update={"ace_task": task}))


def _default_refiner(*, merges: bool) -> Refiner:
    """Return a refiner that merges and filters, or one that only prunes, so that warnings stay."""
    embedder = make_embedder("hashing")
    return Refiner(embedder) if merges else Refiner(embedder, when="budget", harmful_min=None)


def _start_playbook(initial: Playbook | str | Path | None, sections: Sequence[str]) -> Playbook:
    """Return the playbook of new threads; raises ``ConfigError`` for another kind of context."""
    if initial is None:
        return Playbook.start(sections)
    playbook = load(initial) if isinstance(initial, str | Path) else initial
    if not isinstance(playbook, Playbook):
        raise ConfigError(f"initial={initial} is not a playbook: give a playbook saved by a run, or leave it out")
    return playbook
