"""A backbone as LangChain's chat model, saved contexts in agents on it, and what the package's page prints."""

import asyncio
import importlib
import importlib.util

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.contexts.base import NoContext
from ace_bench.contrib.langchain import ContextMiddleware
from ace_bench.contrib.langchain.chat_model import BackboneChatModel
from ace_bench.core.errors import BackboneUnavailable, BudgetExhausted, CallLost, RolloutFault
from ace_bench.core.types import Completion, Fault, Message, Stage, Usage
from ace_bench.runners.gateway import BoundLm, Caller, CallGateway
from ace_bench.runners.limits import Budget, Stop
from ace_bench.store.call_log import CallLog
from tests.backbones.openai_compatible.scripted import Reply, answer, client, serving
from tests.playbook.making import playbook


class Heard:
    """Answers "fine" and remembers what it was sent."""

    def __init__(self, **usage):
        self.messages = []
        self._usage = Usage(**usage)

    def __call__(self, messages, schema=None):
        self.messages.append(tuple(messages))
        return Completion(text="fine", usage=self._usage, seconds=0.0, model="m")


class Failing(EmbeddedBackbone):
    """Fails at each call: one that was made before is not made again."""

    def complete(self, messages, **_):
        raise RolloutFault(Fault(owner="backbone", kind="timeout", message="late"))


@pytest.fixture
def through(tmp_path):
    """Makes a chat model on the counted gateway of one run folder, opened anew each time."""
    logs = []

    def open_door(backbone, **limits):
        for log in logs:
            log.close()
        logs.append(CallLog(tmp_path / "calls.jsonl"))
        gateway = CallGateway(calls=logs[-1], budget=Budget(**limits), stop=Stop(), wall=lambda: 0.0)
        caller = Caller(stage=Stage.ADAPT, role="generator", session="s")
        return BackboneChatModel(lm=BoundLm(gateway=gateway, backbone=backbone, caller=caller)), logs[-1]

    yield open_door
    logs[-1].close()


def invoke(agent, question, *, wait=False):
    """The messages of an agent that was asked."""
    asked = {"messages": [("user", question)]}
    return (asyncio.run(agent.ainvoke(asked)) if wait else agent.invoke(asked))["messages"]


@pytest.mark.parametrize("wait", [False, True])
def test_messages_go_in_and_text_and_usage_come_out(wait):
    model = BackboneChatModel(lm=(lm := Heard(prompt=7, completion=2, cached=5)))
    brief = SystemMessage([{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}])
    asked = [brief, HumanMessage("Hi?"), AIMessage("Ho."), HumanMessage("Well?")]
    said = asyncio.run(model.ainvoke(asked)) if wait else model.invoke(asked)
    assert (said.text, said.response_metadata["model_name"]) == ("fine", "m")
    assert said.usage_metadata["total_tokens"] == 9
    assert said.usage_metadata["input_token_details"] == {"cache_read": 5}
    contents = ("system", "Be brief."), ("user", "Hi?"), ("assistant", "Ho."), ("user", "Well?")
    assert lm.messages == [tuple(Message(role=role, content=content) for role, content in contents)]
    assert BackboneChatModel(lm=Heard()).invoke("Hi").usage_metadata is None, "unknown usage stays unknown"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize(
    ("asked", "settings", "message"),
    [
        ([ChatMessage("1", role="critic")], {}, "takes no chat messages"),
        ([HumanMessage([{"type": "image", "url": "x"}])], {}, "text only"),
        ("Hi", {"stop": ["x"]}, "leave out stop"),
        ("Hi", {"temperature": 1.0}, "leave out temperature"),
        ([HumanMessage("Hi"), ToolMessage("1", tool_call_id="1")], {}, "this backbone takes no tools"),
    ],
)
def test_what_a_backbone_has_not_is_refused(asked, settings, message):
    model = BackboneChatModel(lm=(lm := Heard()))
    with pytest.raises((ValueError, NotImplementedError), match=message):
        model.invoke(asked, **settings)
    with pytest.raises(NotImplementedError, match="this backbone takes no tools: use an OpenAI-compatible one"):
        invoke(create_agent(model, tools=[add]), "Add.")
    assert not lm.messages


def test_tool_calls_are_recorded_and_replayed(through):
    for backbone in (EmbeddedBackbone(), Failing()):
        model, log = through(backbone)
        said = invoke(create_agent(model, tools=[add]), "Add the two numbers 17 and 25.")
        assert said[1].tool_calls[0]["args"] == {"a": 17, "b": 25}
        assert [message.text for message in said[2:]] == ["42", "42"]
        assert log.ledger.total.calls == 2


def test_an_openai_compatible_backbone_gets_tools_and_history_in_the_protocols_form():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    broken = {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a": '}}
    refusal = {"error": {"message": "tool choice requires --enable-auto-tool-choice", "code": 400}}
    with serving(
        answer(None, tool_calls=[call, broken]), answer("It is 3."), answer("Done."), Reply(400, refusal)
    ) as server:
        model = BackboneChatModel.from_backbone(client(server.url))
        bound = model.bind_tools([add], tool_choice="any")
        said = bound.invoke("Add 1 and 2.")
        bound.invoke([HumanMessage("Add 1 and 2."), said, ToolMessage("3", tool_call_id="c1")])
        model.bind_tools([add], tool_choice="add").invoke("Add.")
        with pytest.raises((BackboneUnavailable, RolloutFault), match="--enable-auto-tool-choice"):
            model.bind_tools([add]).invoke("Add.")
    assert said.tool_calls == [{"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "type": "tool_call"}]
    assert said.invalid_tool_calls[0]["error"] == "the arguments are not a JSON object"
    first, second, third, _ = server.asked()
    assert (first["tools"][0]["function"]["name"], first["tool_choice"]) == ("add", "required")
    assert third["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert second["messages"][1] == {"role": "assistant", "content": "", "tool_calls": [call, broken]}
    assert second["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "3"}


def test_faults_and_stops_come_through_an_agent(through):
    with pytest.raises(CallLost, match="late"):
        invoke(create_agent(through(Failing())[0]), "Hi")
    model, log = through(EmbeddedBackbone(), calls=1)
    invoke(create_agent(model), "Hi")
    with pytest.raises(BudgetExhausted):
        invoke(create_agent(model), "Ho")
    assert log.ledger.total.calls == 1


@pytest.mark.parametrize("wait", [False, True])
def test_a_saved_context_follows_the_agents_own_system_message(wait, tmp_path):
    def system_texts(context, system=None):
        model = BackboneChatModel(lm=(lm := Heard()))
        agent = create_agent(model, middleware=[ContextMiddleware(context)], system_prompt=system)
        assert invoke(agent, "Add 2 and 2.", wait=wait)[-1].text == "fine"
        return [message.content for message in lm.messages[0] if message.role == "system"]

    path = tmp_path / "playbook.txt"
    path.write_text(playbook("carry the one").official_text())
    (heard,) = system_texts(path, "You add numbers.")
    assert heard.startswith("You add numbers.\n\nLessons from earlier work")
    assert "[others-00001] carry the one\n</playbook>" in heard
    assert system_texts(playbook("carry the one"), "You add numbers.") == [heard]
    assert system_texts(playbook("one"))[0].startswith("Lessons from earlier work")
    assert system_texts(NoContext(), "You add numbers.") == ["You add numbers."]


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    import ace_bench.contrib.langchain as package

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"needs an extra: pip install 'ace-bench\[langchain\]'"):
        importlib.reload(package)
