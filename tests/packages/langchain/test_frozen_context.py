"""A saved playbook in a LangChain agent, with a chat model that answers from a list."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.playbook.text_writer import write_text
from ace_langchain import ContextMiddleware
from tests.contexts.making import playbook


class Listening(GenericFakeChatModel):
    """Remembers the system messages it was sent."""

    heard: list[str] = []  # noqa: RUF012 - pydantic copies it

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        self.heard.append("".join(message.text for message in messages if message.type == "system"))
        return super()._generate(messages, *args, **kwargs)


def system_texts(context: Any, system: str | None = None, *, wait: bool = False) -> list[str]:
    model = Listening(messages=iter([AIMessage("done"), AIMessage("done")]))
    agent = create_agent(model, middleware=[ContextMiddleware(context)], system_prompt=system)
    question = {"messages": [("user", "Add 2 and 2.")]}
    reply = asyncio.run(agent.ainvoke(question)) if wait else agent.invoke(question)
    assert reply["messages"][-1].text == "done"
    return model.heard


@pytest.mark.parametrize("wait", [False, True])
def test_the_playbook_follows_the_agents_own_system_message(wait, tmp_path):
    path = tmp_path / "playbook.txt"
    path.write_text(write_text(playbook("carry the one")))
    (heard,) = system_texts(path, "You add numbers.", wait=wait)
    assert heard.startswith("You add numbers.\n\nLessons from earlier work")
    assert "[others-00001] carry the one\n</playbook>" in heard
    assert system_texts(playbook("carry the one"), "You add numbers.") == [heard]


def test_an_agent_without_a_system_message_gets_one():
    assert system_texts(playbook("one"))[0].startswith("Lessons from earlier work")


def test_an_empty_context_leaves_the_agent_as_it_is():
    assert system_texts(NoContext(), "You add numbers.") == ["You add numbers."]
