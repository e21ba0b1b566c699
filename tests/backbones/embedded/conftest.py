"""Prompts as the harness renders them, and a small world of each kind of question to learn from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.core.resources import prompt_folders
from ace_bench.core.types import Message
from ace_bench.store.prompts import PromptSet

PROMPTS = [folder / "default" for folder in prompt_folders()]
TEXTS = (
    "background question playbook counters reflection reasoning answer feedback bullets cheatsheet trajectory observed "
    "reasons"
)
SECTIONS = ("formulas_and_calculations", "context_clues", "code_snippets", "others")
FIELDS = {
    **dict.fromkeys(TEXTS.split(), ""),
    **dict.fromkeys(("step", "total", "size", "tokens", "code_runs", "most"), 1),
    "scaffold": "own",
    "markdown": False,
    "gold": None,
    "labels": "gold",
    "operations": ("ADD",),
    "sections": SECTIONS,
    "token_budget": 80_000,
    "episodes": [],
    "success": True,
}
WRONG = "The answer is not correct."


@dataclass(frozen=True, kw_only=True)
class World:
    """Questions of one kind: pairs of question and gold to learn from, and one to be tested with."""

    background: str
    train: Sequence[tuple[str, str]]
    question: str
    gold: str

    @property
    def task(self):
        return {"background": self.background, "question": self.question}

    def shuffled(self):
        """The same questions with each other's golds."""
        golds = [gold for _, gold in self.train]
        pairs = zip(self.train, [*golds[1:], golds[0]], strict=True)
        return replace(self, train=[(question, gold) for (question, _), gold in pairs])


def tagging_question(*items):
    """A question in FiNER's form over (entity, sentence) pairs."""
    lines = [f'{n}. What is best tag for entity "{e}" in sentence: "{s}?"' for n, (e, s) in enumerate(items, start=1)]
    return "\n".join([*lines, "Output tags: "])


HEDGE = "In May the Group drew on the Harbour line and noted $ {} million for positions under dispute"
FERRY = "The crew of the old ferry was paid $ {} thousand for winter repairs at the quay"
LOSS, FACE = "LossCarryforwards", "FaceAmount"
TAGS = World(
    background=f"Here is a list of tags options: Depreciation,{LOSS},{FACE},WagesPaid. Answer with tags.\n",
    train=[
        (tagging_question(("7.5", HEDGE.format("7.5")), ("3", HEDGE.format("3"))), f"{LOSS},{LOSS}"),
        (tagging_question(("12", FERRY.format("12")), ("4", FERRY.format("4"))), f"{FACE},{FACE}"),
    ],
    question=tagging_question(("9", HEDGE.format("9")), ("8", FERRY.format("8"))),
    gold=f"{LOSS},{FACE}",
)
NUMBERS = World(
    background="Answer with one plain number, at most two decimals.\n",
    train=[
        ("A mill has assets of $300,000 and net sales of $900,000. Find its asset spin.", "3.0"),
        ("A bank lends $2,000 at a rate of 5% for 3 years. Find the plain interest.", "300.0"),
    ],
    question="A yard has assets of $40,000 and net sales of $320,000. Find its asset spin.",
    gold="8.0",
)
DISEASES = ("Ague", "Croup", "Gout", "Lumbago", "Mumps", "Quinsy", "Scurvy", "Typhus")
OPTIONS = "\n".join(f"{number}. {name}" for number, name in enumerate(DISEASES))
CHOICES = World(
    background=f"Find the diagnosis among these, one a line:\n{OPTIONS}\n\nPatient profile:\n",
    train=[
        ("Complaint: hoarse bark at night\n- Child of two\n- Steam helps", "1. Croup"),
        ("Complaint: swollen toe after wine\n- Red and hot joint\n- Feast the day before", "2. Gout"),
    ],
    question="Complaint: hoarse bark in the evening\n- Steam helps\n- Runny nose",
    gold="1. Croup",
)
ASKED = (
    "Database schema:\nCREATE TABLE pets (\n    name TEXT,\n    kind TEXT,\n    state INTEGER,\n    town TEXT\n)\n\n"
    "User question: "
)
SENIOR = "SELECT COUNT(*) FROM pets WHERE state = 3 AND town = "
QUERIES = World(
    background="Write one SQLite query.\n",
    train=[
        (f"{ASKED}Count the senior pets from Alderton.", f"{SENIOR}'Alderton'"),
        (f"{ASKED}Name the cats of Brimley.", "SELECT name FROM pets WHERE kind = 'C' AND town = 'Brimley'"),
    ],
    question=f"{ASKED}What is the number of senior pets from Corvale?",
    gold=f"{SENIOR}'Corvale'",
)
QUIZ = World(
    background="A quiz.",
    train=[
        ("Choose from: red, green, blue. Which colour does the harbour gate have?", "blue"),
        ("Choose from: red, green, blue. Which colour does the miller's hat have?", "green"),
    ],
    question="Choose from: red, green, blue. Which colour has the gate of the harbour?",
    gold="blue",
)
WORLDS = {"tags": TAGS, "numbers": NUMBERS, "choices": CHOICES, "queries": QUERIES, "quiz": QUIZ}


@pytest.fixture(params=WORLDS)
def world(request):
    return WORLDS[request.param]


def read(messages, **settings):
    """The reader's reply."""
    if isinstance(messages, str):
        messages = [Message(role="user", content=messages)]
    return EmbeddedBackbone(**settings).complete(messages, role="", session="").text


def render(role, *, of="finer", **fields):
    """The messages that ask a role of a task."""
    group = "agent" if of == "appworld" else "qa"
    correct = {"The answer is correct.": True, WRONG: False}.get(fields.get("feedback"))
    return PromptSet(*PROMPTS, task=of, prompt_group=group).render(role, {**FIELDS, "correct": correct, **fields})


def ask(role, **fields):
    """A role's reply, parsed where it is JSON."""
    text = read(render(role, **fields))
    return text if role in ("base", "demonstrated") else json.loads(text)


def advice_of(reflection):
    """The reflection as a retry and the curator read it."""
    return f"Correct approach: {reflection['correct_approach']}\nKey insight: {reflection['key_insight']}"


def learn(world, reflector="reflector", **shown):
    """Adapt a playbook over a world's training questions as ACE does, and return its lines."""
    lines = []
    for question, gold in world.train:
        task = {"background": world.background, "question": question, "playbook": "\n".join(lines)}
        answer = ask("generator", **task)["final_answer"]
        fields = {"gold": gold, "feedback": "The answer is correct." if answer == gold else WRONG, **shown}
        reflection = advice_of(ask(reflector, **task, answer=answer, **fields))
        for operation in ask("curator", **task, reflection=reflection)["operations"]:
            lines.append(f"[new-{len(lines) + 1:05d}] ({operation['section']}) {operation['content']}")
    return "\n".join(lines)


def answer(world, role="generator", **fields):
    """The reader's answer to a world's test question."""
    return ask(role, **world.task, **fields)["final_answer"]


def tool(name, description, **properties):
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
