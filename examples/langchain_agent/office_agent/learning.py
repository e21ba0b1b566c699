"""Ask a LangChain agent about two customers; ACE learns from the first run what the second needs."""

from collections.abc import Sequence

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.contrib.langchain import ACEMiddleware, AceRoles, BackboneChatModel, CountedModels
from office_agent import TOOLS


def main(arguments: Sequence[str]) -> int:
    """Ask about the customers that ``arguments`` name, one run each, in one thread."""
    models = CountedModels(backbone=EmbeddedBackbone())
    agent = create_agent(
        BackboneChatModel(lm=models.lm("generator", "office")),  # or any chat model of LangChain
        tools=TOOLS,
        middleware=[ACEMiddleware(reflector=AceRoles(models=models))],
        checkpointer=MemorySaver(),
    )
    thread: RunnableConfig = {"configurable": {"thread_id": "office:anna"}}
    printed = 0
    for name in arguments or ("Acme", "Globex"):
        question = HumanMessage(f"Which payments did the customer {name} make?")
        messages = agent.invoke({"messages": [question]}, thread)["messages"]
        tools = [call["name"] for message in messages[printed:] for call in getattr(message, "tool_calls", ())]
        print(f"{messages[-1].text} Tools called: {', '.join(tools)}")
        printed = len(messages)
    for bullet in agent.get_state(thread).values["ace_playbook"]["bullets"]:
        print(f"Learnt: {bullet['content']}")
    print(f"{models.ledger.total.calls} calls")
    return 0
