"""The learning middleware in real agents with tools, on the embedded server over HTTP."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
    wrap_model_call,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver

from ace_bench.contrib.langchain import ACEMiddleware, AceRoles, BackboneChatModel, DeltaEntry
from ace_bench.contrib.langchain.toy_office import desk_questions
from ace_bench.contrib.langchain.two_runs import LEARNERS, two_runs
from ace_bench.core.errors import ConfigError
from ace_bench.core.types import Completion, Stage, Usage
from ace_bench.playbook.playbook import Playbook
from tests.playbook.making import playbook


@tool
def customer_record(name: str) -> str:
    """Payments and address of a customer."""
    return f"Error: payments of {name} are in the ledger."


@tool
def ledger_entries(account: str) -> str:
    """Ledger entries of an account."""
    return f"{account} has paid 120 EUR."


TOOLS = [customer_record, ledger_entries]
QUESTION = "Which payments did the customer {} make?"


def ask(agent, name="Acme", thread="a", question=QUESTION):
    return agent.invoke({"messages": [("user", question.format(name))]}, in_thread(thread))


def in_thread(name):
    return {"configurable": {"thread_id": name}}


def agent_on(models, *more, saver=None, reflector=None, tools=TOOLS):
    learner = ACEMiddleware(reflector=reflector or AceRoles(models=models))
    model = BackboneChatModel(lm=models.lm("generator", "s"))
    return create_agent(model, tools=tools, middleware=[learner, *more], checkpointer=saver or MemorySaver())


def called(state):
    """Names of the tools called since the last question."""
    messages = state["messages"]
    start = max(place for place, message in enumerate(messages) if message.type == "human")
    return [call["name"] for m in messages[start:] if m.type == "ai" for call in m.tool_calls]


def state_bullets(state):
    return Playbook.load(state["ace_playbook"]).bullets


def bullets(state):
    return [bullet.content for bullet in state_bullets(state)]


def test_the_second_run_calls_the_right_tool_at_once(models):
    counted = models()
    agent = agent_on(counted)
    first, second = ask(agent, "Acme"), ask(agent, "Globex")
    assert called(first) == ["customer_record", "ledger_entries"]
    assert called(second) == ["ledger_entries"]
    assert second["messages"][-1].text == "Globex has paid 120 EUR."
    assert bullets(first) == [
        "When asked \"Which payments did the customer Acme make?\", call `ledger_entries(account='Acme')`."
    ]
    assert json.loads(json.dumps(second["ace_playbook"])) == second["ace_playbook"]
    assert second["ace_runs"] == 2
    accounts = counted.ledger.roles(Stage.ADAPT)
    assert {role: account.calls for role, account in accounts.items()} == {"curator": 2, "generator": 5, "reflector": 2}


GAINS = {  # of each run: score, calls, prompt tokens, learning calls, bullets
    "nothing": ((50.0, 19, 1424, 0, 0), (50.0, 19, 1423, 0, 0)),
    "heuristic": ((50.0, 19, 4524, 0, 19), (50.0, 19, 9253, 0, 38)),
    "ace": ((50.0, 19, 3318, 16, 3), (50.0, 16, 3333, 16, 3)),
    "ace_gold": ((50.0, 19, 4697, 16, 8), (100.0, 16, 6608, 16, 8)),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_two_runs_gain(models, learner):
    assert two_runs(models(), learner) == GAINS[learner]
    open_invoices = "Which invoices of the customer Globex are open?"
    assert desk_questions(1)[0] == (open_invoices, "174", "ledger_entries(account='Globex')")


def test_threads_do_not_mix_and_a_new_instance_goes_on(models, tmp_path):
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs langgraph-checkpoint-sqlite")
    with closing(sqlite3.connect(tmp_path / "threads.sqlite", check_same_thread=False)) as connection:
        saver = sqlite.SqliteSaver(connection)
        ask(agent_on(models(), saver=saver), thread="a")
        other = ask(agent_on(models(), saver=saver), thread="b")
        assert called(other) == ["customer_record", "ledger_entries"]
        assert called(ask(agent_on(models(), saver=saver), "Globex", thread="a")) == ["ledger_entries"]
    agent = agent_on(models())
    names = ("Acme", "Globex", "Initech", "Hooli")
    questions = [{"messages": [("user", QUESTION.format(name))]} for name in names]
    for state, name in zip(agent.batch(questions, [in_thread(name) for name in names]), names, strict=True):
        assert [f"account='{name}'" in content for content in bullets(state)] == [True], "side by side, too"


def test_async_and_streaming_learn_the_same(models):
    async def twice(agent):
        await agent.ainvoke({"messages": [("user", QUESTION.format("Acme"))]}, in_thread("a"))
        return await agent.ainvoke({"messages": [("user", QUESTION.format("Globex"))]}, in_thread("a"))

    waited = asyncio.run(twice(agent_on(models())))
    assert called(waited) == ["ledger_entries"]
    agent = agent_on(models())
    ask(agent)
    question = {"messages": [("user", QUESTION.format("Globex"))]}
    updates = [*agent.stream(question, in_thread("a"), stream_mode="updates")]
    nodes = [name for update in updates for name in update]
    assert nodes[-1] == "ACEMiddleware.after_agent"
    assert nodes.count("model") == 2
    assert bullets(agent.get_state(in_thread("a")).values) == bullets(waited)
    texts = [chunk.text for chunk, _ in agent.stream(question, in_thread("a"), stream_mode="messages")]
    assert any("Globex has paid" in text for text in texts)
    assert not any("key_insight" in text for text in texts)


def test_a_subclass_or_a_function_reflects_instead_and_entries_that_cannot_be_used_are_refused(models):
    class Judging(ACEMiddleware):
        def reflect(self, latest):
            checked = DeltaEntry(category="checked", content="Say the sum.", outcome="success")
            return [] if latest.tool_calls else [checked]

    model = BackboneChatModel(lm=models().lm("generator", "s"))
    for learner in (Judging(), ACEMiddleware(reflector=Judging().reflect)):
        state = create_agent(model, tools=TOOLS, middleware=[learner]).invoke({"messages": [("user", "Payments?")]})
        (bullet,) = Playbook.load(state["ace_playbook"]).bullets
        assert (bullet.section, bullet.helpful, bullet.content) == ("checked", 1, "Say the sum.")
    for entry, message in (
        ("text", "must return DeltaEntry values, not str"),
        (DeltaEntry(category="x", content="y", outcome="good"), "success, failure, neutral, not 'good'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(agent_on(models(), reflector=lambda _, entry=entry: [entry]))


def test_entries_are_marked_by_their_outcome_and_stay_apart_by_category_and_outcome(models):
    said = [
        ("tool_use", "Ask the ledger.", "success"),
        ("tool_use", "Ask the ledger.", "failure"),
        ("checked", "Ask the ledger.", "success"),
        ("tool_use", "Ask the archive.", "failure"),
        ("tool_use", "Ask a colleague.", "neutral"),
    ]
    entries = [DeltaEntry(category=category, content=text, outcome=outcome) for category, text, outcome in said]
    prompts = []

    def reflect(reply):
        return entries if not reply.tool_calls else []

    @wrap_model_call
    def read_prompt(request, handler):
        prompts.append(request.system_prompt or "")
        return handler(request)

    agent = agent_on(models(), read_prompt, reflector=reflect)
    for name in ("Acme", "Globex", "Initech", "Hooli"):
        state = ask(agent, name)
    kept = [(b.section, b.content, b.helpful, b.harmful, b.neutral) for b in state_bullets(state)]
    votes = {"success": (4, 0, 0), "failure": (0, 4, 0), "neutral": (0, 0, 4)}
    assert kept == [(category, text, *votes[outcome]) for category, text, outcome in said]
    assert "[+]" not in prompts[0]
    shown = [line for line in prompts[-1].splitlines() if "Ask" in line]
    assert [re.sub(r"^.*?\d\] ?", "", line) for line in shown] == [
        "[+] Ask the ledger.", "[-] Ask the ledger.", "[-] Ask the archive.",
        "[o] Ask a colleague.", "[+] Ask the ledger.",
    ]  # fmt: skip
    assert "[-] has failed" in prompts[-1]


def test_it_learns_beside_summaries_limits_and_retries(models):
    counted = models()
    summary = SummarizationMiddleware(
        model=BackboneChatModel(lm=counted.lm("summariser", "s")), trigger=("messages", 7), keep=("messages", 3)
    )
    agent = agent_on(counted, summary)
    for name in ("Acme", "Globex", "Initech"):
        state = ask(agent, name)
    assert counted.ledger.roles(Stage.ADAPT)["summariser"].calls
    assert state["messages"][0].additional_kwargs["lc_source"] == "summarization"
    assert "call `ledger_entries(account='Acme')`" in bullets(state)[0]
    limited = ask(agent_on(counted, ModelCallLimitMiddleware(thread_limit=2, exit_behavior="end")))
    assert "limit" in limited["messages"][-1].text, "it ends after the call that worked"
    assert "ledger_entries(account='Acme')" in bullets(limited)[0]

    @tool
    def customer_record(name: str) -> str:
        """Payments and address of a customer."""
        raise RuntimeError("payments are in the ledger")

    retried = ToolRetryMiddleware(max_retries=0, on_failure=lambda error: f"Error: {error}")
    agent = agent_on(counted, retried, tools=[customer_record, ledger_entries])
    assert called(ask(agent)) == ["customer_record", "ledger_entries"]
    assert called(ask(agent, "Globex")) == ["ledger_entries"]


def test_new_threads_can_start_with_a_saved_playbook(models, tmp_path):
    lesson = "When asked \"Which payments did the customer Hooli make?\", call `ledger_entries(account='Hooli')`."
    path = tmp_path / "final.json"
    path.write_text(json.dumps(playbook(lesson).dump()))
    model = BackboneChatModel(lm=models().lm("generator", "s"))
    agent = create_agent(model, tools=TOOLS, middleware=[ACEMiddleware(initial=path)])
    assert called(agent.invoke({"messages": [("user", QUESTION.format("Acme"))]})) == ["ledger_entries"]
    path.write_text('{"kind": "instruction", "text": "Be brief.", "demonstrations": []}')
    with pytest.raises(ConfigError, match="is not a playbook"):
        ACEMiddleware(initial=path)


def test_a_thread_of_the_package_goes_on(models):
    """The state is as agent_episodic_memory 0.1.0 leaves it."""
    saver, model = MemorySaver(), BackboneChatModel(lm=models().lm("generator", "s"))
    noted = [f"tool call: {tool.name}" for tool in TOOLS]
    entry = {"category": "tool_use", "outcome": "neutral", "created_at": "2026-11-27T14:07:06+00:00"}
    agent = create_agent(model, tools=TOOLS, middleware=[ACEMiddleware()], checkpointer=saver)
    agent.update_state(in_thread("a"), {"ace_playbook": {"entries": [{**entry, "content": text} for text in noted]}})
    after = bullets(ask(agent, "Globex"))
    assert after[:2] == noted
    assert "Called ledger_entries(account='Globex')." in after


def test_a_role_that_fails_costs_a_lesson_and_not_the_answer(models, caplog):
    class Mute:
        def lm(self, role, session):
            return lambda *_: Completion(text="Hm.", usage=Usage(), seconds=0.0)

    state = ask(agent_on(models(), reflector=AceRoles(models=Mute())))
    assert state["messages"][-1].text == "Acme has paid 120 EUR."
    assert bullets(state) == []
    assert "the reflector failed" in caplog.text
