"""Sessions, tasks and the agent's messages over an episode of the tests' own, which needs no other package."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest

from ace_bench.contexts.base import NoContext
from ace_bench.core.errors import AceBenchError, ConfigError, DataError, RolloutFault, SettingError
from ace_bench.core.replies import ToolCall, ToolTurn, offer, write_turn
from ace_bench.core.types import NO_USAGE, Attempt, Completion, GeneratorSpec, Message, Sample, Turn
from ace_bench.tasks.environments.agent import EnvironmentAgent, with_system_text, write_calls
from ace_bench.tasks.environments.episode import ReplyRequest, Scores, fault
from ace_bench.tasks.environments.messages import assistant_message, describe_tool, tool_message
from ace_bench.tasks.environments.session import EnvironmentItem, EnvironmentSession, make_grade
from ace_bench.tasks.environments.task import EnvironmentTask, SplitRatio, background_of, draw

SYSTEM, ASKED = Message(role="system", content=" You add. "), Message(role="user", content="1 + 1?")


@dataclass
class Adding:
    """Asks the same ``times``; each right reply is a point. ``error`` is raised at last, ``hangs`` says what hangs."""

    times: int = 2
    error: Exception | None = None
    hangs: str = ""
    judged: bool = False
    said: list[str] = field(default_factory=list)
    closed: bool = False

    async def play(self, ask):
        for _ in range(self.times):
            self.said.append((await ask(ReplyRequest(messages=(SYSTEM, ASKED)))).content)
        if self.hangs == "play":
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    @property
    def final(self):
        return " ".join(self.said)

    async def score(self, ask):
        judged = float((await ask(ReplyRequest(messages=(ASKED,)))).content) if self.judged else 1.0
        return Scores(total=judged * self.said.count("2") / 2, parts={"replies": len(self.said), "judged": judged})

    async def close(self):
        self.closed = True


def item_of(episode, **changes):
    async def make():
        return episode

    return EnvironmentItem(**{"question": "1 + 1?", "gold": "2", "make": make, **changes})


def play(episode, *replies, **settings):
    """Reply in turn; return the open session. With fewer replies than requests the attempt stands where it is."""
    session = EnvironmentSession(item_of(episode), timeout=settings.pop("timeout", 5.0), **settings)
    for reply in replies:
        assert session.next_request().messages == (SYSTEM, ASKED)
        session.reply(ToolTurn(content=reply))
    return session


def judge(messages):
    assert messages == (ASKED,)
    return Completion(text="0.5", usage=NO_USAGE, seconds=0.0)


def test_an_attempt_is_led_by_its_environment_and_scored():
    episode = Adding()
    with closing(play(episode, "2", "3")) as session:
        assert not session.finished
        assert session.next_request() is None
        assert (session.finished, session.final) == (True, "2 3")
        grade = session.grade("anything")
        assert (grade.score, grade.correct, grade.gold, session.grade(None).correct) == (0.5, False, "2", False)
        assert grade.report == "Score: 0.5\nreplies: 2\njudged: 1"
        assert grade.detail == {"score": 0.5, "scorer_replies": 2, "scorer_judged": 1.0}
    assert episode.closed
    session.close()


def test_an_attempt_that_is_stopped_is_scored_as_it_stands():
    for episode, replies in ((Adding(times=3), ("2", "2")), (Adding(hangs="play"), ("2", "2"))):
        with closing(play(episode, *replies)) as session:
            if not episode.hangs:
                assert session.next_request() is not None
            assert session.grade("").score == 1.0
            assert session.finished


@pytest.mark.parametrize(
    ("episode", "kind", "said"),
    [
        (Adding(times=0, error=KeyError("x")), "environment", "KeyError: 'x'"),
        (Adding(times=0, error=fault("tools", "no tools")), "tools", "no tools"),
        (Adding(times=0, hangs="play"), "timeout", "the environment did nothing for 0.2 s (task.timeout)"),
    ],
)
def test_an_environment_that_fails_is_a_fault_of_the_task(episode, kind, said):
    with closing(play(episode, timeout=0.2)) as session, pytest.raises(RolloutFault) as caught:
        session.next_request()
    assert (caught.value.fault.owner, caught.value.fault.kind, caught.value.fault.message) == ("task", kind, said)


def test_a_scorer_calls_the_judge_or_is_a_fault():
    with closing(play(Adding(judged=True), "2", "2")) as session:
        assert session.next_request() is None
        with pytest.raises(RolloutFault, match=r"the scorer calls a model: allow it by task\.judge=true"):
            session.grade("")
    with closing(play(Adding(judged=True), "2", "2", judged_later=True)) as session:
        assert (session.next_request(), session.waits_for_judge, session.grade("").score) == (None, False, 0.0)
        assert session.waits_for_judge
        assert session.score(judge).score == 0.5


def test_another_agent_is_refused():
    with closing(play(Adding())) as session:
        for call in (session.step, session.grade):
            with pytest.raises(ConfigError, match="leads the conversation itself: choose agent=environment"):
                call("x")


def make_task(items, training=None, *, ratio=(2, 0, 1), **more):
    shares = SplitRatio(**dict(zip(("train", "val", "test"), ratio, strict=True)))
    return EnvironmentTask(items, training, split_ratio=shares, split_seed=0, timeout=5.0, sample_allowed=False, **more)


def test_a_task_divides_its_samples_and_tells_what_all_share():
    task = make_task([item_of(Adding(), question=f"{n}?") for n in range(6)])
    samples = {split: task.samples(split) for split in task.splits}
    assert {split: len(some) for split, some in samples.items()} == {"train": 4, "val": 0, "test": 2}
    names = {one.id: dict(one.inputs) for some in samples.values() for one in some}
    assert {name[-4:]: inputs for name, inputs in names.items()} == {
        f"{n + 1:04d}": {"background": "You add.", "question": f"{n}?"} for n in range(6)
    }
    assert {name.rpartition("-")[0] for name in names} == {"environment-train", "environment-test"}
    apart = make_task([item_of(Adding())], [item_of(Adding())] * 3, ratio=(1, 0.5, 1))
    assert [len(apart.samples(split)) for split in apart.splits] == [2, 1, 1]
    first = samples["test"][0]
    assert task.failing_grade(first) == make_grade(item_of(Adding()), None)
    with pytest.raises(DataError, match=f"this task has no sample {first.id} in its split 'train'"):
        task.failing_grade(replace(first, split="train"))
    with pytest.raises(ConfigError, match="this task has no split 'dev'; it has val, train, test"):
        task.samples("dev")
    sums = [make_task([item_of(Adding(), **one)] * 3).checksums for one in ({}, {"gold": "3"}, {"digest": "d"}, {})]
    assert [sums.index(one) for one in sums] == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([], "args: the environment has no samples with these arguments; change them"),
        ([Adding()], "split_ratio: 1 samples are too few for train, test: change the shares, or load more samples"),
        ([Adding(times=0)] * 2, "the environment ends without asking a model, so there is nothing to learn in it"),
        ([Adding(times=0, error=KeyError(1))] * 2, "the environment cannot be started: KeyError: 1"),
    ],
)
def test_a_task_that_cannot_be_used_says_why(items, said):
    with pytest.raises(AceBenchError) as caught:
        make_task(list(map(item_of, items))).samples("train")
    assert str(caught.value) == said


def test_a_judge_scores_the_attempt_that_its_thread_made_last():
    episodes = [Adding(times=0, judged=True, said=["2", "2"]) for _ in range(2)]
    task = make_task([item_of(episode) for episode in [Adding(), *episodes]], judge=True)
    first, second = (one for one in (*task.samples("train"), *task.samples("test")) if one.id[-1] != "1")
    grades = []
    for sample in (first, second):
        with task.open(sample) as session:
            assert session.next_request() is None
            grades.append(session.grade(""))
    assert task.judge(first, "", grades[0], None, judge).score == 0.5
    assert task.judge(first, "", grades[0], None, judge) is grades[0], "there is nothing more to score"
    assert [one.closed for one in episodes] == [first.id[-1] == "2", first.id[-1] == "3"]
    task.close()
    assert all(one.closed for one in episodes)
    assert task.score([make_grade(item_of(Adding()), Scores(total=total)) for total in (1.0, 3.0, 0.0, -1.0)]) == {
        "score": 75.0,
        "success": 50.0,
    }
    assert task.score([]) == {}


def test_shares_are_divided_as_they_say():
    def sizes(total, train, val, test, *, with_test=True):
        drawn = draw(total, SplitRatio(train=train, val=val, test=test), seed=0, with_test=with_test)
        assert sorted(place for places in drawn.values() for place in places) == list(range(total))
        assert all(list(places) == sorted(places) for places in drawn.values())
        return [len(drawn.get(split, ())) for split in ("train", "val", "test")]

    assert sizes(10, 6, 2, 2) == [6, 2, 2]
    assert sizes(3, 98, 1, 1) == [1, 1, 1]
    assert sizes(3, 0.1, 1, 1) == [1, 1, 1]
    assert sizes(8, 3, 1, 9, with_test=False) == [6, 2, 0]
    assert draw(9, SplitRatio(train=1, val=0, test=1), seed=0, with_test=True) != draw(
        9, SplitRatio(train=1, val=0, test=1), seed=1, with_test=True
    )
    for train, test in ((0, 1), (1, 0)):
        with pytest.raises(SettingError, match="split_ratio: train and test need a share above 0"):
            SplitRatio(train=train, val=1, test=test)


def test_the_context_ends_the_system_message():
    assert with_system_text([SYSTEM, ASKED], "") == (SYSTEM, ASKED)
    assert with_system_text([SYSTEM, ASKED], "x") == (Message(role="system", content=" You add. \n\nx"), ASKED)
    assert with_system_text([ASKED], "x") == (Message(role="system", content="x"), ASKED)
    assert with_system_text([], "x") == (Message(role="system", content="x"),)


@dataclass
class Talking(Adding):
    """Goes on with what was said; with tools, a reply's call is answered in its place."""

    tools: bool = False

    async def play(self, ask):
        messages, schema = [SYSTEM, ASKED], offer([describe_tool("add", "", {})]) if self.tools else None
        for _ in range(self.times):
            turn = await ask(ReplyRequest(messages=tuple(messages), schema=schema))
            messages.append(assistant_message(turn, tools=self.tools))
            messages += [tool_message(call.id, f"<{call.name}>") for call in turn.tool_calls]
            messages += [] if turn.tool_calls else [Message(role="user", content="Sure?")]

    @property
    def final(self):
        return ""


class Notes:
    """A template that shows what it is given."""

    def render(self, template, fields):
        return [Message(role="system", content=f"{template}: {fields['reflection']}")]


class Model:
    takes_tools = True

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def __call__(self, messages, schema=None):
        self.asked.append((messages[0].content, len(messages), schema is not None))
        return Completion(text=self.replies.pop(0), usage=NO_USAGE, seconds=0.0)


def solve(episode, model, *, max_turns):
    sample = Sample(id="a", split="test", inputs={})
    agent = EnvironmentAgent(
        prompts=Notes(), generator=GeneratorSpec(template="notes", answer_format="text"), max_turns=max_turns
    )
    with closing(EnvironmentSession(item_of(episode), timeout=5.0)) as session:
        return agent.solve(sample, session, NoContext(), model, None)


def test_an_attempt_records_what_was_said_and_done():
    model = Model("Two [a-00001].", "Yes.")
    assert solve(Talking(), model, max_turns=2) == Attempt(
        answer="Yes.",
        reasoning="Two [a-00001].\n\nYes.",
        cited=("a-00001",),
        reply="Yes.",
        trajectory=(
            Turn(action="", observation="Sure?", thought="Two [a-00001]."),
            Turn(action="", observation="", thought="Yes."),
        ),
        ended="completed",
        counters={"turns": 2, "tool_calls": 0},
    )
    assert model.asked == [(" You add. \n\nnotes: (none)", 2, False), (model.asked[0][0], 4, False)]
    arguments = {"f": '{"a": 1}', "g": "a line\u2028is no call"}
    calls = tuple(ToolCall(id=name, name=name, arguments=text) for name, text in arguments.items())
    attempt = solve(Talking(tools=True), Model(write_turn(ToolTurn(tool_calls=calls))), max_turns=1)
    shown = Turn(action="f(a=1)\ng(a line\u2028is no call)", observation="<f>\n<g>", thought="")
    assert (attempt.answer, attempt.trajectory, attempt.ended) == ("", (shown,), "steps")
    assert attempt.counters == {"turns": 1, "tool_calls": 2}
    alone = solve(Talking(times=1), Model("Two."), max_turns=1)
    assert (alone.answer, alone.trajectory, alone.ended) == ("Two.", (), "completed")
    with pytest.raises(ConfigError, match="this environment has tools, and the backbone cannot be offered any"):
        solve(Talking(tools=True), judge, max_turns=1)


def test_tools_and_calls_are_written():
    parameters = {"type": "object", "properties": {"a": {}, "b": {}}}
    schema = offer([describe_tool("add", "Adds\n two.", parameters), describe_tool("stop", "", {})])
    request = ReplyRequest(messages=(SYSTEM, ASKED), schema=schema)
    assert background_of(request) == "You add.\n\nTools:\n- add(a, b): Adds two.\n- stop(): "
    arguments = ('{"a": "x", "b": [1]}', "", "{}", "[1]", '{"a"', "[" * 100_000)
    texts = ("a='x', b=[1]", "", "", "[1]", '{"a"', "[" * 100_000)
    assert [write_calls([ToolCall(id="", name="f", arguments=one)]) for one in arguments] == [
        f"f({one})" for one in texts
    ]
    assert write_calls([ToolCall(id="", name=name, arguments="{}") for name in "fg"]) == "f()\ng()"
