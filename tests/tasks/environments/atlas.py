"""Small Inspect AI tasks on capitals, one for each thing that a user's task may do; loaded as FILE.py@task."""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.scorer import Score, Target, accuracy, includes, model_graded_qa, scorer
from inspect_ai.solver import Generate, TaskState, generate, solver, system_message, use_tools
from inspect_ai.tool import ToolError, tool

from tests.tasks.environments.capitals import CITIES

SYSTEM = "You answer questions on geography."


def _samples(ask):
    return MemoryDataset([Sample(input=ask(land, city), target=city) for land, city in CITIES.items()])


def _choice(land, city):
    return f"Where does the government of {land} sit? Options: {city}, Springfield."


def _open(land, city):
    return f"Which city is the capital of {land}?"


@task
def choices(lands: int = 10):
    return Task(dataset=_samples(_choice)[:lands], solver=[system_message(SYSTEM), generate()], scorer=includes())


@tool
def atlas(kind: str = "atlas"):
    async def execute(land: str):
        """Look up the capital of a country.

        Args:
            land: Name of the country.
        """
        if kind == "broken":
            raise RuntimeError("the atlas burnt down")
        if land not in CITIES:
            raise ToolError(f"no country {land}")
        return CITIES[land]

    return execute


@task
def lookup(name: str = "atlas"):
    solver = [system_message(SYSTEM), use_tools(atlas(name)), generate()]
    return Task(dataset=_samples(_open), solver=solver, scorer=[includes(), half()], message_limit=20)


@scorer(metrics=[accuracy()])
def half():
    async def score(state: TaskState, target: Target):
        return Score(value=0.5, explanation="always half")

    return score


@scorer(metrics=[accuracy()])
def raising():
    async def score(state: TaskState, target: Target):
        raise KeyError("no such column")

    return score


@task
def unscorable():
    return Task(dataset=_samples(_choice), scorer=raising())


@task
def in_docker():
    return Task(dataset=_samples(_choice), scorer=includes(), sandbox="docker")


@task
def judged():
    return Task(dataset=_samples(_choice), scorer=model_graded_qa())


@scorer(metrics=[accuracy()])
def asks():
    async def score(state: TaskState, target: Target):
        output = await get_model(role="grader").generate(f"Is there a reply? Options: {target.text}, no.")
        return Score(value=float(bool(output.completion)))

    return score


@task
def asking():
    return Task(dataset=_samples(_choice), scorer=asks())


@solver
def ask_again():
    async def solve(state: TaskState, generate: Generate):
        state = await generate(state)
        state.messages.append(ChatMessageUser(content="Are you sure? Options: yes, no."))
        return await generate(state)

    return solve


@task
def dialogue():
    return Task(dataset=_samples(_choice), solver=ask_again(), scorer=includes())
