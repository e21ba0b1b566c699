"""A LangChain agent's first run against its second: what it gains from its playbook, and what learning costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from ace_bench.api import open_backbone
from ace_bench.contrib.langchain.chat_model import BackboneChatModel
from ace_bench.contrib.langchain.middleware import ACEMiddleware
from ace_bench.contrib.langchain.roles import AceRoles, CountedModels
from ace_bench.contrib.langchain.toy_office import DeskQuestion, desk_questions, desk_tools
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.measurement import Measurement, MeasurementRequest, Value
from ace_bench.core.replies import takes_tools
from ace_bench.core.types import Feedback, Stage
from ace_bench.store.call_log import Account

COLUMNS = ("learner", "run", "score", "calls", "tokens in", "learning calls", "bullets")
Learner = Literal["nothing", "heuristic", "ace", "ace_gold"]
"""No middleware; the heuristic; ACE's roles, which see what the tools return; the same and the right calls."""
_LABELS: Mapping[Learner, str] = {
    "nothing": "no playbook",
    "heuristic": "heuristic reflector",
    "ace": "ACE's roles, without feedback",
    "ace_gold": "ACE's roles, right calls shown",
}
LEARNERS: Sequence[Learner] = tuple(_LABELS)
GENERATOR = "generator"
_CALLS_PER_QUESTION = 4
_SYSTEM = "You answer questions of the office staff with the tools."


class RunResult(NamedTuple):
    """One run over all questions: the percentage answered rightly, and what it took.

    ``calls`` and ``prompt_tokens`` are the agent's, ``learning_calls`` the Reflector's and Curator's; ``bullets`` is
    the size of the playbook after the run. ``None`` is unknown. A model's fault counts as a wrong answer.
    """

    score: float
    calls: int | None
    prompt_tokens: int | None
    learning_calls: int | None
    bullets: int


def two_runs_table(request: MeasurementRequest) -> Measurement:
    """Measure with each seed; figures are means over them."""
    by_seed = [_measure(request, seed) for seed in request.seeds]
    rows = [
        (_LABELS[learner], str(number + 1), *_means([runs[learner][number] for _, runs in by_seed]))
        for learner in LEARNERS
        for number in (0, 1)
    ]
    return Measurement(columns=COLUMNS, rows=tuple(rows), simulated=any(simulated for simulated, _ in by_seed))


def _measure(request: MeasurementRequest, seed: int) -> tuple[bool, Mapping[Learner, tuple[RunResult, RunResult]]]:
    """Return whether the backbone is simulated, and both runs of each learner."""
    opened = open_backbone(request.backbone, folder=request.folder, settings=request.settings, seed=seed)
    with opened as backbone:
        if not takes_tools(backbone):
            raise ConfigError(f"{backbone.name} takes no tools: choose an OpenAI-compatible backbone, vLLM or embedded")
        runs = {learner: two_runs(CountedModels(backbone=backbone), learner) for learner in LEARNERS}
        return backbone.simulated, runs


def _means(results: Sequence[RunResult]) -> tuple[Value, ...]:
    return tuple(None if None in values else fmean(map(float, values)) for values in zip(*results, strict=True))


def two_runs(models: CountedModels, learner: Learner) -> tuple[RunResult, RunResult]:
    """Ask the questions of both runs in one thread, in which only the playbook stays from question to question."""
    first = _Session(models, learner)
    return first.run(desk_questions(0)), first.run(desk_questions(1))


class _Session:
    def __init__(self, models: CountedModels, learner: Learner):
        self._models = models
        limit = ModelCallLimitMiddleware(run_limit=_CALLS_PER_QUESTION, exit_behavior="end")
        middleware: list[AgentMiddleware[Any, Any, Any]] = [limit]
        if learner == "heuristic":
            middleware.insert(0, ACEMiddleware())
        elif learner != "nothing":
            feedback = self._feedback if learner == "ace_gold" else None
            middleware.insert(0, ACEMiddleware(reflector=AceRoles(models=models, feedback=feedback)))
        self._agent = create_agent(
            BackboneChatModel(lm=models.lm(GENERATOR, f"desk/{learner}")),
            tools=desk_tools(),
            system_prompt=_SYSTEM,
            middleware=middleware,
            checkpointer=MemorySaver(),
        )
        self._thread: Any = {"configurable": {"thread_id": f"desk/{learner}"}}

    def run(self, questions: Sequence[DeskQuestion]) -> RunResult:
        before = self._accounts()
        right = sum([self._ask(question) for question in questions])
        state = self._agent.get_state(self._thread).values
        calls, tokens, learning = (
            None if after is None or earlier is None else after - earlier
            for earlier, after in zip(before, self._accounts(), strict=True)
        )
        bullets = len(state.get("ace_playbook", {}).get("bullets", ()))
        return RunResult(100 * right / len(questions), calls, tokens, learning, bullets)

    def _ask(self, question: DeskQuestion) -> bool:
        self._asked = question
        fresh: Any = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage(question.text)]
        try:
            return _is_right(question, self._agent.invoke({"messages": fresh}, self._thread))
        except RolloutFault as error:
            if error.fault.unanswered:
                raise
            return False

    def _feedback(self, state: Mapping[str, Any]) -> Feedback:
        right = _is_right(self._asked, state)
        message = f"The answer is {'correct' if right else 'not correct'}."
        return Feedback(correct=right, message=message, gold=self._asked.call, score=float(right))

    def _accounts(self) -> tuple[int | None, ...]:
        """Return the agent's calls and prompt tokens, and the other roles' calls, so far."""
        accounts = dict(self._models.ledger.roles(Stage.ADAPT))
        generator = accounts.pop(GENERATOR, Account())
        return generator.calls, generator.usage.prompt, sum(account.calls for account in accounts.values())


def _is_right(question: DeskQuestion, state: Mapping[str, Any]) -> bool:
    return question.value in str(state["messages"][-1].text)
