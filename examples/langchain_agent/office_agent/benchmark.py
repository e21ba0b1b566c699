"""The same agent in a benchmark: a task with questions about customers, and an agent that any method can teach."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ace_bench.contrib.langchain import BackboneChatModel, ContextMiddleware, task_text
from ace_bench.core.backbones import Lm
from ace_bench.core.context import Context
from ace_bench.core.prompts import Prompts
from ace_bench.core.settings import Count
from ace_bench.core.task import Agent, Session
from ace_bench.core.types import Attempt, GeneratorSpec, Grade, Sample, Turn
from ace_bench.tasks.answers import AnswerTask, Grader, percent
from ace_bench.tasks.data import Row
from office_agent import TOOLS


class Office(AnswerTask):
    """Each row holds a question (``context``) and what a right answer holds (``target``)."""

    name: str = "office"
    prompt_group: str = "agent"
    sections: tuple[str, ...] = ("tools", "others")

    def build(self, row: Row) -> tuple[Mapping[str, str], Grader]:
        """Return what prompts may show of a row, and the function that grades an answer."""
        inputs = {"background": task_text("", TOOLS), "question": row.fields["context"]}
        return inputs, partial(grade_answer, row.fields["target"])

    def score(self, grades: Sequence[Grade]) -> Mapping[str, float]:
        """Return the share of right answers in percent; without grades, no metric."""
        return {"accuracy": percent(sum(grade.correct for grade in grades), len(grades))} if grades else {}


def grade_answer(target: str, answer: str | None) -> Grade:
    """Grade an answer. It is right if it holds the amount."""
    correct = target in (answer or "")
    return Grade(score=float(correct), correct=correct, observed="", gold=target)


class OfficeAgent(Agent):
    """Makes at most ``max_calls`` calls of the model in an attempt. The context joins the system message."""

    draws_from_seed = False

    def __init__(self, *, max_calls: Count, prompts: Prompts, generator: GeneratorSpec) -> None:
        del prompts, generator  # LangChain words the prompts
        self._limit = ModelCallLimitMiddleware(run_limit=max_calls, exit_behavior="end")

    def solve(self, sample: Sample, session: Session, context: Context, lm: Lm, reflection: str | None) -> Attempt:
        """Ask the agent the question of a sample, in a retry with the reflection on the attempt before."""
        agent = create_agent(
            BackboneChatModel(lm=lm), tools=TOOLS, middleware=[ContextMiddleware(context), self._limit]
        )
        question = HumanMessage("\n\n".join(filter(None, [sample.inputs["question"], reflection])))
        messages = agent.invoke({"messages": [question]})["messages"]
        return Attempt(answer=str(messages[-1].text), trajectory=tuple(_turns(messages)), ended="completed")


def _turns(messages: Sequence[AnyMessage]) -> Iterator[Turn]:
    """Yield a turn for each reply, with what the tools returned to it."""
    results = {message.tool_call_id: str(message.text) for message in messages if message.type == "tool"}
    for message in messages:
        if isinstance(message, AIMessage):
            calls = [
                f"{call['name']}({', '.join(f'{k}={v!r}' for k, v in call['args'].items())})"
                for call in message.tool_calls
            ]
            observed = [results.get(str(call["id"]), "") for call in message.tool_calls]
            yield Turn(thought=str(message.text), action="\n".join(calls), observation="\n".join(observed))
