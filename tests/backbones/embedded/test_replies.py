"""What the reader says on the sample sets, to the letter: recorded replies must not be those of another reader.

Where a reply shall change, raise ``READER_VERSION`` and update the snapshots.
"""

import json
from itertools import product

import pytest

from ace_bench.backbones.embedded import EmbeddedBackbone
from ace_bench.backbones.embedded.kinds import read_items
from ace_bench.backbones.embedded.lessons import Entry
from ace_bench.contexts.cheatsheet import PastRollout
from ace_bench.core.replies import ToolCall, ToolResult, ToolTurn, offer, write_turn
from ace_bench.core.types import Message
from ace_bench.tasks.catalog import make_task
from tests.backbones.embedded.conftest import (
    QUIZ,
    TAGS,
    WORLDS,
    WRONG,
    World,
    advice_of,
    ask,
    read,
    render,
    tool,
)

LEARNT, TESTED = 16, 16
NAMES = ("finer", "formula", "ddxplus", "bird_sql", *WORLDS, "roles", "tools")
RIGHT = "The answer is correct."


def world_of(name):
    """A world, or what a sample set holds: questions with golds, and the inputs of those to be answered."""
    if name in WORLDS:
        return WORLDS[name], [WORLDS[name].task]
    task = make_task(name, source="sample", sample_allowed=True)
    train = [(one.inputs["question"], task.failing_grade(one).gold) for one in task.samples("train")[:LEARNT]]
    tested = [one.inputs for one in task.samples("test")[:TESTED]]
    return World(background=tested[0]["background"], train=train, question="", gold=""), tested


def replies(name):
    """Yield replies while a playbook is learnt, and then to questions with it, and with a part of it."""
    world, tested = world_of(name)
    lines = []
    for question, gold in world.train:
        task = {"background": world.background, "question": question, "playbook": "\n".join(lines)}
        said = ask("generator", **task)
        yield said
        bullets = [line for line in lines if line[1:10] in said["bullet_ids"]]
        shown = {"bullets": "\n".join(bullets), "answer": said["final_answer"], "gold": gold}
        reflection = ask("reflector", **task, **shown, feedback=RIGHT if shown["answer"] == gold else WRONG)
        yield reflection
        for operation in ask("curator", **task, reflection=advice_of(reflection))["operations"]:
            lines.append(f"[new-{len(lines) + 1:05d}] ({operation['section']}) {operation['content']}")
    yield lines
    for item in read_items(world.background, tested[0]["question"]):
        index = item.index([Entry(id="", content=line) for line in lines])
        yield [f"{place}: {likeness:.4f}" for likeness, place in index.nearest(item.cue, len(lines))]
    shown = "\n\n".join(f"Question: {question}\nAnswer: {gold}" for question, gold in world.train)
    yield ask("demonstrated", **tested[0], demonstrations=shown)
    for place, inputs in enumerate(tested):
        yield ask("generator", **inputs, playbook="\n".join(lines[: None if place % 2 else len(lines) // 2]))


LONG = "Choose from: red, green, blue. Which colour does the gate of the harbour have, if it is seen from the old mill?"
LESSON = 'When asked "Which colour does the harbour gate have?", answer `blue`, not `red`.'
ATTEMPTS = (
    "<attempts>\n## Attempt 1: failed\nHm.\n\nAnswer: red\nFeedback: No.\n{}\n## Attempt 3\nAnswer: green\n</attempts>"
)
PAST = "[1]\nQuestion: a\nAnswer: b\nFeedback: The answer is not correct.\n\n[2]\nQuestion: c\nAnswer: d\nFeedback: {}"
REFUSED = 'When asked "Which colour has the harbour?", do not answer `red`.'
MEMORIES = [
    (role, name, text)
    for role, name in (("workflows", "workflows"), ("reasoning_bank", "memory_items"))
    for text in ("", REFUSED, REFUSED.replace("red", "blue"))
]
OFFICE = "Tools:\n- ledger(account): Payments.\n- desk(name): Rooms.\n"
STEP = "### Step {}\n```python\n{}(account='Acme')\n```\nOutput:\n```\n{}\n```\n"


def role_replies():
    """Yield the replies of the roles besides Generator, Reflector and Curator, and of these to odd prompts."""
    question, gold = QUIZ.train[0]
    asked = {"background": QUIZ.background, "question": question}
    bullets = "\n".join(f"[o-{n}] (others) entry {n} {'word ' * 20}" for n in range(1, 5))
    for collapse, reflection in product((None, 60, 400), ("", f"Key insight: {LESSON}")):
        yield read(render("rewriter", **asked, playbook=bullets, reflection=reflection), collapse=collapse)
        sheet = bullets.replace("[o", "- [o")
        fields = {**asked, "answer": "red", "cheatsheet": sheet, "labels": "none"}
        yield read(render("cheatsheet_curator", **fields), collapse=collapse)
    for sheet in ("", f"- {LESSON}"):
        yield read(render("cheatsheet", **asked, cheatsheet=sheet))
        yield read(render("cheatsheet_curator", **asked, answer="red", gold=gold, cheatsheet=sheet))
    episode = PastRollout(question=question, output="So.\n<answer>red</answer>", reference=gold).text
    yield read(render("cheatsheet_synthesis", background=QUIZ.background, question="Next?", episodes=[episode]))
    attempts = ("## Attempt 2: succeeded\nAnswer: blue\nIn the eyes of a judge without the reference: yes", "")
    reply = '"memory_items": []'
    for some, hint in product(attempts, ("", "Say why the attempt failed.")):
        yield read(f"{hint}\n<question>\n{LONG}\n</question>\n{ATTEMPTS.format(some)}\n{reply}")
    for success, shown in product((True, False), ({"gold": gold}, {}, {"trajectory": "(none)"})):
        yield ask("extractor", **asked, answer="red", success=success, **shown)
    yield ask("inducer", background=QUIZ.background, experiences=[f"Question: {LONG}\nOutput: <answer>blue</answer>"])
    for reference, said in (("Blue.\nAzure", "azure!"), ("Blue", "red")):
        shown = f"<reference_answer>\n{reference}\n</reference_answer>\n<predicted_answer>\n{said}\n</predicted_answer>"
        yield read(f'{shown}\n{{"verdict": ""}}')
    yield from (
        ask("judge", of="bird_sql", schema="s", gold="SELECT 'A'", predicted=one) for one in ("select 'A'", "1")
    )
    yield from (ask(role, **asked, **{name: f"{LESSON} {text}"}) for role, name, text in MEMORIES)
    for (task, answers), feedback in product(
        ((asked, ("blue", "red")), (TAGS.task, (TAGS.gold, "x,y"))), (RIGHT, WRONG)
    ):
        for said in answers:
            yield ask("reflector_harmful", **task, answer=said, gold=answers[0], feedback=feedback)
            yield ask("reflector_harmful", **task, answer=said, feedback=feedback, labels="correctness")
    yield ask("self_reflection", **asked, answer="red\nor so", reflections=[], as_text=False)
    for said, observed in (("blue", ""), ("(None)", ""), ("blue", "Traceback: x")):
        yield ask("self_judge", **asked, answer=said, observed=observed)
    yield from (
        read(f'<past_answers>\n{PAST.format(one)}\n</past_answers>\n{{"operation": ""}}') for one in (RIGHT, WRONG)
    )
    yield read('<past_answers>\n(none)\n</past_answers>\n{"operation": ""}')
    task = {"background": OFFICE, "question": "What did Acme pay?"}
    for first, second in (("Error: no", "120"), ("5", "Error: no"), ("5", "120")):
        for shown in ({}, {"gold": "ledger(account='Acme')", "feedback": WRONG}):
            yield ask(
                "reflector",
                of="appworld",
                **task,
                trajectory=STEP.format(1, "desk", first) + STEP.format(2, "ledger", second),
                **shown,
            )
    for note in (
        "The answer here is `green`.",
        "The answer `blue` was not right",
        LESSON,
        json.dumps({"a": LESSON, "b": 1}),
    ):
        yield ask("generator", **asked, reflection=note)
        yield ask("generator", **TAGS.task, reflection=note)
    counted = {"playbook": f"[o-1] (others) {LESSON}\n[o-2] x\n[o-3] y", "operations": ("ADD", "REMOVE")}
    counters = "o-1: helpful 3, harmful 3\no-2: helpful 2, harmful 3\no-3: helpful 0, harmful 2"
    for sections in (("tips", "clues"), ("Patterns", "clues and more"), ()):
        yield ask(
            "curator", **counted, counters=counters, sections=sections, reflection=LESSON.replace("blue", "green")
        )
    yield ask("generator", background=QUIZ.background, question="Choose from: red. Which colour has the gate?")
    yield read("")


TOOLS = [
    tool("weather", "Weather in a city.", days={"type": "integer"}, city={"type": "string"}),
    tool("climate_of", "Averages by place, in degrees", place={}, height={"type": "number"}),
]
ASKED = (
    "What will the weather in Paris be for 3 days?",
    'The climate of "Upper Town" at 12.5 m, for a week?',
    "The climate of the climate?",
    "Choose from: red, green. Is a frog green?",
)
TAUGHT = "When asked \"How warm is Rome in June?\", call `climate_of(place='Rome'); weather(city='Rome', days=1)`."


def tool_replies():
    """Yield the replies to questions with tools: at first, after an error, after two, and after a result."""
    for question, taught in product(
        (*ASKED, "How warm is Lima in June?"), ("", f"<playbook>\n[api-1] {TAUGHT}\n</playbook>")
    ):
        talk = [Message(role="system", content=taught), Message(role="user", content=question)]
        for output in ("Error: see the climate averages", " Traceback: no", "12 degrees", "never asked for"):
            said = EmbeddedBackbone().complete(talk, role="", session="", schema=offer(TOOLS)).text
            yield json.loads(said)
            calls = json.loads(said).get("tool_calls") or [{"id": "none"}]
            results = [write_turn(ToolResult(tool_call_id=one["id"], content=output)) for one in calls]
            talk += [Message(role="assistant", content=said), *(Message(role="tool", content=one) for one in results)]
    broken = write_turn(ToolTurn(tool_calls=(ToolCall(id="1", name="weather", arguments="["),)))
    talk = [Message(role="user", content=ASKED[0]), Message(role="assistant", content=broken)]
    yield json.loads(EmbeddedBackbone().complete(talk, role="", session="", schema=offer(TOOLS)).text)


@pytest.mark.parametrize("name", NAMES)
def test_replies_stay(snapshot, name):
    made = {"roles": role_replies, "tools": tool_replies}.get(name, lambda: replies(name))
    assert "".join(json.dumps(one) + "\n" for one in made()) == snapshot
