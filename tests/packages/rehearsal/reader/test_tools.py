"""The reader with tools, over HTTP: it chooses by description, by lessons and by what errors say."""

import json

import openai
import pytest

from ace_bench.core.replies import ToolCall, ToolTurn, offer, write_turn
from ace_bench.core.types import Message
from ace_rehearsal.reader import EmbeddedBackbone
from ace_rehearsal.reader.kinds.tools import read_calls
from ace_rehearsal.server.serve import ReaderServer
from tests.backbones.serving import running


def tool(name, description, **properties):
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("add", "Add numbers.", a={"type": "integer"}, b={"type": "integer"}),
    tool("weather", "Weather in a city.", city={"type": "string"}, days={"type": "integer"}),
    tool("climate", "Averages by place.", place={"type": "string"}),
]


@pytest.fixture(scope="module")
def ask():
    with (
        running(ReaderServer(host="127.0.0.1", port=0)) as server,
        openai.OpenAI(base_url=server.address, api_key="none", max_retries=0, timeout=20) as client,
    ):

        def create(*messages, **more):
            settings = {"tools": TOOLS, **more}
            return client.chat.completions.create(model="embedded", messages=messages, **settings).choices[0]

        yield create


def user(text):
    return {"role": "user", "content": text}


def calls_of(choice):
    return [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or ()]


def followed(question, choice, *results):
    """The conversation after the tools of a reply have returned."""
    returned = zip(choice.message.tool_calls, results, strict=True)
    return [
        user(question),
        choice.message.model_dump(exclude_none=True),
        *({"role": "tool", "tool_call_id": call.id, "content": result} for call, result in returned),
    ]


def test_it_calls_by_description_with_values_of_the_question_and_answers_with_what_returned(ask):
    question = "What will the weather in Paris be for the next 3 days?"
    choice = ask(user(question))
    assert calls_of(choice) == [("weather", {"city": "Paris", "days": 3})]
    assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")
    answer = ask(*followed(question, choice, "Rain."))
    assert (answer.message.content, answer.message.tool_calls, answer.finish_reason) == ("Rain.", None, "stop")


def test_a_lesson_decides_and_may_hold_several_calls(ask):
    lesson = "When asked \"How warm is Rome in June?\", call `climate(place='Rome'); weather(city='Rome', days=1)`."
    playbook = f"<playbook>\n[api-00001] {lesson}\n</playbook>"
    taught, question = {"role": "system", "content": playbook}, user("How warm is Lima in June?")
    choice = ask(taught, question)
    assert calls_of(choice) == [("climate", {"place": "Lima"}), ("weather", {"city": "Lima", "days": 1})]
    assert choice.message.content == "I rely on [api-00001]."
    assert len(calls_of(ask(taught, question, parallel_tool_calls=False))) == 1
    assert calls_of(ask({**taught, "content": playbook.replace("climate(", "tides(")}, question)) == []


def test_a_question_for_no_tool_is_answered_as_without_tools(ask):
    question = user("Choose from: red, green, blue. What is the colour of a green frog?")
    assert ask(question).message.content == "green"
    assert ask(question, tools=openai.omit).message.content == "green"
    assert ask(user("Add 1 and 2."), tool_choice="none").message.tool_calls is None


def test_a_call_can_be_required_and_the_arguments_of_a_strict_tool_obey_its_schema(ask):
    colour = "Choose from: red, green, blue. What is the colour of a green frog?"
    named = ask(user(colour), tool_choice={"type": "function", "function": {"name": "climate"}})
    assert calls_of(named) == [("climate", {"place": "green"})]
    assert named.finish_reason == "tool_calls"
    assert calls_of(ask(user("Add 17 and 25."), tool_choice="required")) == [("add", {"a": 17, "b": 25})]
    strict = tool("weather", "Weather in a city.", city={"type": "string"}, unit={"enum": ["C", "F"]})
    strict["function"]["strict"] = True
    assert calls_of(ask(user("The weather in Paris?"), tools=[strict])) == [("weather", {"city": "Paris", "unit": "C"})]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tool_choice": "sometimes"}, r"at `\$.tool_choice`"),
        ({"tool_choice": {"type": "function", "function": {"name": "sing"}}}, "names 'sing'"),
        ({"tools": openai.omit, "tool_choice": "required"}, "needs 'tools'"),
        ({"functions": [{"name": "add"}]}, "cannot do 'functions'"),
        ({"tools": [{"type": "web_search"}]}, r"`function` - at `\$.tools\[0\]`"),
    ],
)
def test_what_the_server_cannot_do_is_refused(ask, more, message):
    with pytest.raises(openai.BadRequestError, match=message):
        ask(user("Add 1 and 2."), **more)


def test_only_calls_with_plain_arguments_are_read_and_broken_ones_do_no_harm():
    for text in ("", "add", "add(1)", "add(a=b)", "x = 1", "add(**{})", "add(a=open('x'))", "("):
        assert read_calls(text) == []
    turn = write_turn(ToolTurn(tool_calls=(ToolCall(id="1", name="add", arguments="{"),)))
    messages = [Message(role="user", content="Add 1 and 2."), Message(role="assistant", content=turn)]
    reply = EmbeddedBackbone().complete(messages, role="", session="", schema=offer(TOOLS))
    assert json.loads(reply.text)["tool_calls"][0]["name"] == "add"
