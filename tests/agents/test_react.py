"""The ReAct agent: the conversation it leads, when it stops, and what it leaves out when there is no room."""

from dataclasses import replace

import pytest

from ace_bench.contexts.base import NoContext
from ace_bench.contexts.instruction import Demonstration, Demonstrations, Instruction
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import Fault, GeneratorSpec, Usage
from ace_bench.playbook.playbook import Playbook
from ace_bench.store.prompts import PromptSet
from tests.agents.world import COMPLETE, DOC, Replies, World, code, make_agent, sample
from tests.launching import ROOT
from tests.outcomes import outcomes
from tests.playbook.making import playbook

BASE = GeneratorSpec(template="base", answer_format="text")
WITH_PLAYBOOK = GeneratorSpec(template="generator", answer_format="json")
LOOKUP = "print(apis.api_docs.show_api_doc(app_name='music', api_name='login'))"
PROMPTS_OF_AGENTS = ROOT / "prompts" / "default" / "agent"


def solve(lm, world=None, context=None, reflection=None, generator=WITH_PLAYBOOK, **settings):
    context = Playbook.start(["others"]) if context is None else context
    return make_agent(generator, **settings).solve(sample(), world or World(), context, lm, reflection)


def test_an_episode_runs_the_code_of_each_reply_until_the_task_is_complete():
    lm = Replies(code("x = 6 * 7", "First."), code("print(x)\n1 / 0", "Then."), code(COMPLETE), code("never"))
    world = World()
    attempt = solve(lm, world)
    assert world.steps == ["x = 6 * 7", "print(x)\n1 / 0", COMPLETE]
    assert [turn.action for turn in attempt.trajectory] == world.steps
    assert [turn.thought for turn in attempt.trajectory] == ["First.", "Then.", ""]
    assert "ZeroDivisionError" in attempt.trajectory[1].observation
    assert (attempt.answer, attempt.reasoning) == (COMPLETE, "First.\n\nThen.")
    assert attempt.counters["steps"] == 3
    assert "Execution successful." in lm.prompts[1][-1][1]
    assert "ZeroDivisionError" in lm.prompts[2][-1][1]


def test_the_conversation_only_grows_at_its_end():
    lm = Replies(*[code(f"print({n})") for n in range(5)], code(COMPLETE))
    solve(lm, demonstrations="default")
    for before, after in zip(lm.prompts, lm.prompts[1:], strict=False):
        assert after[: len(before)] == before
    roles = [role for role, _ in lm.prompts[-1]]
    assert roles[0] == "system"
    assert roles[1:] == ["user", "assistant"] * (len(roles) // 2 - 1) + ["user"]


def test_the_first_prompt_shows_rules_person_task_playbook_and_reflection():
    lm = Replies(code(COMPLETE))
    context = playbook("count the pages")
    solve(lm, context=context, reflection="you missed a page")
    (system, task) = (text for _, text in lm.prompts[0])
    assert "apis.supervisor.complete_task(answer=" in system
    parts = ["music: songs", context.bullets[0].line, "Ida Reed", "5550100", "Do world-train-0.", "you missed a page"]
    places = [task.index(part) for part in parts]
    assert places == sorted(places), "from stable to volatile"
    plain = Replies(code(COMPLETE))
    solve(plain, context=NoContext(), generator=BASE)
    assert "playbook" not in str(plain.prompts[0])


@pytest.mark.parametrize(
    ("template", "context", "shown"),
    [
        (
            "demonstrated",
            Demonstrations(items=(Demonstration(question="wave", answer="apis.hand.wave()"),)),
            "hand.wave",
        ),
        ("instructed", Instruction(text="Read every page."), "Read every page."),
    ],
)
def test_contexts_of_other_methods_are_shown_by_their_templates(template, context, shown):
    lm = Replies(code(COMPLETE))
    solve(lm, context=context, generator=GeneratorSpec(template=template, answer_format="text"))
    assert shown in str(lm.prompts[0])


def test_worked_examples_come_from_the_prompt_set_a_file_or_nowhere(tmp_path):
    path = tmp_path / "examples.txt"
    path.write_text("USER:\nTask: wave.\nASSISTANT:\nI wave.\nUSER: Output: waved\n")
    shown = Replies(code(COMPLETE))
    solve(shown, demonstrations=str(path))
    assert [role for role, _ in shown.prompts[0]] == ["system", "user", "assistant", "user"]
    assert shown.prompts[0][2] == ("assistant", "I wave.")
    assert shown.prompts[0][3][1].startswith("Output: waved\n\n<task>"), "roles alternate"
    default = Replies(code(COMPLETE))
    solve(default, demonstrations="default")
    assert str(default.prompts[0]).count("Worked example,") == 3


# Files of worked examples that cannot be used.
DIALOGUES = [
    "no turns at all",
    "ASSISTANT: hello\nUSER: you",
    "loose words\nUSER: a\nASSISTANT: b",
    "USER: only me",
    "USER: My name is {{ main_user.first_name }}\nASSISTANT: hi",
]


def test_a_dialogue_that_cannot_be_used_is_refused_as_recorded(snapshot, tmp_path):
    path = tmp_path / "examples.txt"
    with pytest.raises(ConfigError, match="cannot be read"):
        make_agent(WITH_PLAYBOOK, demonstrations=str(path))

    def build(text):
        path.write_text(text)
        return make_agent(WITH_PLAYBOOK, demonstrations=str(path))

    assert outcomes(build, DIALOGUES, {str(tmp_path): "FOLDER"}) == snapshot


def test_a_reply_without_code_is_a_step_and_three_in_a_row_end_the_attempt():
    lm = Replies("I think.", "", code("print(1)"), "Hm.", "Well.", "```json\n{}\n```", code("never"))
    world = World()
    attempt = solve(lm, world)
    assert world.steps == ["print(1)"]
    assert attempt.counters["steps"] == 6
    assert attempt.counters["steps_without_code"] == 5
    assert "held no code" in lm.prompts[1][-1][1]
    assert all(text for prompt in lm.prompts for _, text in prompt), "servers refuse empty messages"
    silent = solve(Replies(""))
    assert (silent.answer, len(silent.trajectory)) == (None, 3)


def test_replies_without_code_leave_the_conversation_once_the_agent_acts_again():
    said = (code("print(1)"), "I think.", "I plan.", code("print(2)"), "Hm.", code("print(3)"), code(COMPLETE))
    kept, left = Replies(*said), Replies(*said)
    before, after = solve(kept), solve(left, keep_text_replies=False)
    texts = [[text for role, text in prompt if role == "assistant"] for prompt in left.prompts]
    one, two, three = (f"```python\nprint({n})\n```" for n in (1, 2, 3))
    assert texts == [
        [],
        [one],
        [one, "I think."],
        [one, "I think.", "I plan."],
        [one, two],
        [one, two, "Hm."],
        [one, two, three],
    ]
    assert "held no code" in left.prompts[3][-1][1]
    assert not any("held no code" in text for _, text in left.prompts[4])
    assert before == after, "what is recorded of the attempt is the same"
    sizes = [sum(len(text) for prompt in lm.prompts for _, text in prompt) for lm in (left, kept)]
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("keep", [True, False])
def test_the_conversation_shown_to_other_roles_is_the_one_that_was_led(keep):
    lm = Replies(code("print(1)"), "I think.", code("print(2)"), "Hm.")
    context = Playbook.start(["others"])
    asked = make_agent(WITH_PLAYBOOK, keep_text_replies=keep)
    attempt = asked.solve(sample(), World(), context, lm, None)
    shown = [(message.role, message.content) for message in asked.conversation(sample(), context, attempt, None)]
    assert shown[:-1] == lm.prompts[-1]


def test_outputs_are_left_out_and_looked_up_by_their_place_among_the_turns_that_stayed():
    acts = [code(LOOKUP), *(code(f"print('{n}' * 3000)") for n in range(8))]
    said = [part for act in acts for part in ("Hm.", act)]
    lm = Replies(*said, code(LOOKUP), code(COMPLETE))
    attempt = solve(lm, keep_text_replies=False, memory="execution", history_chars=20_000)
    assert 0 < attempt.counters["outputs_left_out"] < 9
    again = lm.prompts[-1][-1][1]
    assert "(from memory)" in again
    assert DOC in again, "the output of the first look-up has left the conversation"


def test_cited_bullets_are_those_named_in_thoughts_and_code():
    first = code("x = [1]  # as in [ucsat-00005]", "By [sahr-00001] and [vc-00002, tap-00003]; not [note 4].")
    attempt = solve(Replies(first, code(COMPLETE, "[sahr-00001]")))
    assert attempt.cited == ("sahr-00001", "vc-00002", "tap-00003", "ucsat-00005")


COUNTED = (*(code(f"print('{n}' * 400)") for n in range(9)), code(COMPLETE))
DIALOGUE = (
    "USER:\n{{ background }}\nASSISTANT:\nYes.\nUSER:\nOutput:\n9\nASSISTANT:\nSo.\nUSER:\nTask: {{ question }}\n"
)
RETRY = "{% block user_exact_1 %}Output:\nno{% endblock %}{% block assistant_exact_2 %}{{ reflection }}{% endblock %}"
LETTERS = {"left out)": "-", "grew too long)": "-", "steps are left out.)": "T"}


def shape(prompt):
    """The user's messages: t or T the task, without and with the words that steps are left out; outputs, - left out."""
    ends = [text.strip().removesuffix("```").strip() for role, text in prompt if role == "user"]
    letters = [next((LETTERS[words] for words in LETTERS if text.endswith(words)), "") for text in ends]
    return "".join(
        letter or (text[-1] if text[-1].isdigit() else "t") for letter, text in zip(letters, ends, strict=True)
    )


def size(prompt):
    return sum(len(text) for _, text in prompt)


WHOLE = ["t", "t0", "t01", "t012", "t0123", "t01234", "t012345", "t0123456", "t01234567", "t012345678"]


def test_a_conversation_over_its_limit_gives_up_its_oldest_outputs_a_quarter_of_it_at_a_time():
    plain = Replies(*COUNTED)
    solve(plain)
    assert [*map(shape, plain.prompts)] == WHOLE
    first, last = size(plain.prompts[0]), size(plain.prompts[-1])
    for limit, shapes in (
        (last, WHOLE),
        (last - 1, [*WHOLE[:-1], "t-----5678"]),
        (first + 2000, [*WHOLE[:5], "t----4", "t----45", "t----456", "t-------7", "t-------78"]),
        (first, ["t", "t0", *(f"t{'-' * n}{n}" for n in range(1, 9))]),
    ):
        lm = Replies(*COUNTED)
        attempt = solve(lm, history_chars=limit)
        assert [*map(shape, lm.prompts)] == shapes
        assert attempt.counters["outputs_left_out"] == shapes[-1].count("-")


@pytest.mark.parametrize(
    ("limit", "shapes"),
    [
        (3_000, [*WHOLE[:6], "t-12345", "t--23456", "t---34567", "t----45678"]),
        (1_000, ["t", "t0", *(f"T{n}" for n in range(1, 9))]),
        (300, ["t", *["T"] * 9]),
    ],
)
def test_official_trimming_leaves_out_the_oldest_outputs_and_then_whole_steps(limit, shapes):
    lm = Replies(*COUNTED)
    solve(lm, parse_replies="official", history_chars=limit)
    assert [*map(shape, lm.prompts)] == shapes


@pytest.mark.parametrize("reflection", [None, "I missed a page."])
def test_official_trimming_spares_the_examples_of_a_dialogue_and_does_not_count_the_task(reflection, tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "generator.j2").write_text(f"{{% block dialogue %}}{DIALOGUE}{{% endblock %}}")
    (tmp_path / "agent" / "retry.j2").write_text(f"{RETRY}{{% block user_exact_3 %}}again{{% endblock %}}")
    for name in ("observation", "left_out"):
        (tmp_path / "agent" / f"{name}.j2").write_text((PROMPTS_OF_AGENTS / f"{name}.j2").read_text())
    prompts = PromptSet(tmp_path, task="appworld", prompt_group="agent")
    settings = {"parse_replies": "official", "prompts": prompts, "reflection": reflection}
    whole, cut = (["t9t0123456", "t9t-123456"], ["t9ttt0123456", "t9t-t-123456"])[reflection is not None]
    plain = Replies(*COUNTED[:7], COUNTED[-1])
    solve(plain, **settings)
    assert shape(plain.prompts[-1]) == whole
    text = "".join(f"{role.upper()}:\n{content}" for role, content in plain.prompts[-1])
    length = len(text.partition("Task: ")[2])
    for limit, expected in ((length, whole), (length - 1, cut)):
        lm = Replies(*COUNTED[:7], COUNTED[-1])
        solve(lm, history_chars=limit, **settings)
        assert shape(lm.prompts[-1]) == expected


class Short(Replies):
    """A backbone with little room, in characters."""

    def __init__(self, room, *texts):
        super().__init__(*texts)
        self._room = room

    def __call__(self, messages, schema=None):
        if sum(len(message.content) for message in messages) > self._room:
            raise RolloutFault(Fault(owner="model", kind=CONTEXT_LENGTH, message="too long"))
        return super().__call__(messages, schema)


def test_a_prompt_over_the_context_length_loses_outputs_and_then_bullets():
    texts = [code(f"print('{n}' * 1000)") for n in range(4)] + [code(COMPLETE)]
    book = playbook(*(f"lesson {n} " + "x" * 500 for n in range(8)))
    first = Replies(code(COMPLETE))
    solve(first, context=book)
    room = size(first.prompts[0])
    outputs_only = solve(Short(room + 2500, *texts), context=book)
    assert (outputs_only.counters["outputs_left_out"], outputs_only.dropped) == (2, 0)
    both = solve(Short(room - 1000, *texts), context=book)
    assert (both.counters["outputs_left_out"], both.dropped) == (3, 5)
    with pytest.raises(RolloutFault) as caught:
        solve(Short(100, *texts), context=book)
    assert caught.value.fault.kind == CONTEXT_LENGTH


@pytest.mark.parametrize("memory", ["execution", "off"])
def test_repeated_lookups_are_answered_from_memory(memory):
    world = World()
    lm = Replies(code(LOOKUP), code("print(1)"), code(LOOKUP), code(COMPLETE))
    attempt = solve(lm, world, memory=memory)
    remembers = memory == "execution"
    assert world.steps.count(LOOKUP) == (1 if remembers else 2)
    assert attempt.counters["lookups_saved"] == (1 if remembers else 0)
    assert [turn.action for turn in attempt.trajectory].count(LOOKUP) == 2, "the record shows what the agent did"
    assert ("from memory" in attempt.trajectory[2].observation) is remembers
    newest = [["<memory>" in text for _, text in prompt] for prompt in lm.prompts]
    assert [sum(marks) for marks in newest] == ([0, 0, 1, 1] if remembers else [0] * 4)
    if remembers:
        assert newest[-1][-1], "only the newest message carries the memory"
        assert "api_docs.show_api_doc(app_name='music', api_name='login'): names username, password" in str(
            lm.prompts[2]
        )


def test_findings_can_stand_at_the_end_of_the_system_message():
    replies = [code(LOOKUP), code("print(1)"), code(COMPLETE)]
    system, newest = Replies(*replies), Replies(*replies)
    solve(system, memory="execution", memory_place="system")
    solve(newest, memory="execution")
    assert system.prompts[0] == newest.prompts[0], "nothing is known yet"
    (role, before), (_, after) = newest.prompts[2][0], system.prompts[2][0]
    assert role == "system"
    assert after.removeprefix(before) == (
        "\n\n# Execution memory\n\nAPI documentation already read:\n"
        "- step 1: api_docs.show_api_doc(app_name='music', api_name='login'): names username, password"
    )
    assert "<memory>" not in str(system.prompts)
    assert [text.partition("\n\n<memory>")[0] for _, text in newest.prompts[2][1:]] == [
        text for _, text in system.prompts[2][1:]
    ]


@pytest.mark.parametrize("place", ["newest", "system"])
def test_no_finding_carries_over_to_the_next_attempt(place):
    one = make_agent(WITH_PLAYBOOK, memory="execution", memory_place=place)
    playbook, worlds = Playbook.start(["others"]), [World(), World()]
    lms = [Replies(code(LOOKUP), code("print(1)"), code(COMPLETE)) for _ in worlds]
    attempts = [one.solve(sample(), world, playbook, lm, None) for world, lm in zip(worlds, lms, strict=True)]
    assert lms[0].prompts == lms[1].prompts
    assert attempts[0] == attempts[1]
    assert [world.steps.count(LOOKUP) for world in worlds] == [1, 1]


class Paid(Replies):
    """Replies that cost some dollars each."""

    def __init__(self, *texts, usd):
        super().__init__(*texts)
        self._usd = usd

    def __call__(self, messages, schema=None):
        return replace(super().__call__(messages, schema), usage=Usage(usd=self._usd))


@pytest.mark.parametrize(("limit", "ended", "steps"), [({"max_usd": 1.0}, "cost", 2), ({"max_steps": 7}, "steps", 7)])
def test_limits_end_an_attempt_without_a_fault_and_one_of_cost_needs_dollars(limit, ended, steps):
    world = World()
    attempt = solve(Paid(code("x = 1"), usd=0.5), world, **limit)
    assert (attempt.ended, attempt.answer, len(attempt.trajectory), len(world.steps)) == (ended, "x = 1", steps, steps)
    with pytest.raises(ConfigError, match=r"agent\.max_usd=1 needs dollars"):
        solve(Paid(code("x = 1"), usd=None), max_usd=1.0)


def test_official_replies_run_empty_code_and_never_end_an_attempt_early():
    lm = Replies("I think.", "", "```py\nx = 1\n```", "Open:\n```python\nx = 2", code(COMPLETE, "Done.") + "\nmore")
    world = World()
    attempt = solve(lm, world, parse_replies="official")
    assert world.steps == ["", "", "", "x = 2", COMPLETE]
    assert attempt.ended == "completed"
    kept = [text for role, text in lm.prompts[-1] if role == "assistant"]
    assert kept == ["I think.\n\n", "\n\n", "```py\nx = 1\n```\n\n", "Open:\n```python\nx = 2\n```\n\n"]
