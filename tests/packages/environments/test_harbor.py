"""Harbor tasks on confined folders of this system (bubblewrap): what is refused, and what commands can reach."""

import asyncio
import logging

import pytest

from tests.launching import launch
from tests.packages.environments.machine_tasks import write_tasks
from tests.packages.environments.running import MARKS, rollouts
from tests.wrong.refusing import refusal

pytestmark = [*MARKS["harbor"]]
SMALL = ("task=harbor", "mode.epochs=1", "embedder=hashing", "estimate=false")
MACHINE = "task.machine=bubblewrap"


@pytest.fixture(autouse=True)
def _quiet():
    """Harbor leaves its loggers' levels behind."""
    yield
    logging.getLogger("harbor").handlers.clear()


def test_tests_that_write_no_reward_are_a_fault_of_the_task(tmp_path):
    tasks = write_tasks(tmp_path / "tasks", ("a", "b", "c"), test="#!/bin/bash\nexit 0\n")
    asked = ("method=base", "limit=1", "mode.before=false", f"task.folder={tasks}")
    ran = launch(tmp_path, *SMALL, MACHINE, *asked)
    fault = rollouts(ran)[-1]["fault"]
    assert (ran.status, fault["owner"]) == (0, "task")
    assert "RewardFileNotFoundError" in fault["message"]


@pytest.mark.parametrize(
    ("files", "asked", "said"),
    [
        ({}, "task.folder=null", "task.folder is not set: name a folder of Harbor tasks"),
        ({}, "task.folder=nowhere", "task.folder=nowhere holds no Harbor task"),
        ({}, "task.machine=oven", "task.machine=oven is unknown: give MODULE:CLASS or one of"),
        ({}, "task.machine=nowhere:Oven", "task.machine=nowhere:Oven cannot be used"),
        ({"settings": "[environment]\ncpus = 'many'\n"}, MACHINE, "a cannot be used"),
        ({"dockerfile": "RUN apt-get"}, MACHINE, "has 'RUN apt-get', which machine=bubblewrap cannot do"),
        ({"settings": "[environment]\ngpus = 1\n"}, MACHINE, "bubblewrap environment does not support GPU"),
        (
            {"settings": "[environment]\nskills_dir = '/skills'\n"},
            MACHINE,
            "a needs skills, which is not supported",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(files, asked, said, tmp_path, capsys):
    tasks = write_tasks(tmp_path / "tasks", ("a", "b", "c"), **files)
    given = ["task=harbor", MACHINE, f"task.folder={tasks}", asked]
    assert said in refusal(given, tmp_path / "results", capsys)


def test_a_command_sees_neither_tests_nor_solution(tmp_path):
    printed, scores = _attempt(tmp_path, "ls / /tests /solution")
    assert "tests" not in printed[0].splitlines()
    assert printed[0].count("No such file or directory") == 2
    assert scores.total == 0.0


def test_a_reward_that_a_command_writes_does_not_count(tmp_path):
    forge = "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    assert _attempt(tmp_path, forge)[1].total == 0.0


def test_a_command_that_does_not_end_is_told_to_the_model(tmp_path):
    printed, scores = _attempt(tmp_path, "sleep 30", "echo \0", "touch a.txt", limit=1)
    assert printed[0] == "Error: the command did not end within 1 s"
    assert printed[1].startswith("Error: a command is a text")
    assert scores.total == 1.0


def test_an_attempt_that_is_stopped_is_scored_as_it_stands(tmp_path):
    async def play(episode, ask):
        playing = asyncio.ensure_future(episode.play(ask))
        while len(asked) < 2 and not playing.done():
            await asyncio.sleep(0.01)
        playing.cancel()
        await asyncio.wait([playing])

    asked = []
    _, scores = _attempt(tmp_path, "touch a.txt", None, play=play, asked=asked)
    assert scores.total == 1.0


def _attempt(folder, *commands, play=None, asked=None, limit=60, **files):
    """Play commands on the task ``a``; return what each printed and the scores. ``None``: the model never replies."""
    from harbor.models.task.task import Task

    from ace_environments.harbor_episode import HarborEpisode, Rules

    task = Task(write_tasks(folder / "tasks", ("a",), **files) / "a")
    rules = Rules(
        machine="ace_environments.harbor_bubblewrap:BubblewrapEnvironment", commands="block", command_timeout=limit
    )
    asked = [] if asked is None else asked

    async def ask(request):
        asked.append(request)
        if len(asked) > len(commands):
            return _say("Done.")
        command = commands[len(asked) - 1]
        if command is None:
            await asyncio.Event().wait()
        return _say(f"```bash\n{command}\n```")

    async def attempt():
        episode = HarborEpisode(task, rules)
        try:
            await (episode.play(ask) if play is None else play(episode, ask))
            return await episode.score(ask)
        finally:
            await episode.close()

    scores = asyncio.run(attempt())
    return [message.content for message in asked[-1].messages if message.role == "user"][1:], scores


def _say(text):
    from ace_bench.core.replies import ToolTurn

    return ToolTurn(content=text)
