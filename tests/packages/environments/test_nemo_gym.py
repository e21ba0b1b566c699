"""Runs on resources servers of NeMo Gym over HTTP: one of the tests', and the package's own where it is installed."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.core.replies import ToolCall, ToolTurn
from ace_environments.nemo_gym_episode import Conversation, NemoGymEpisode
from tests.backbones.serving import running, wait_for_port
from tests.launching import launch
from tests.packages.environments.gym_server import GymServer, row, write_rows
from tests.packages.environments.running import SMALL, rollouts
from tests.wrong.refusing import refusal


def _task(server, file):
    return ("task=nemo_gym", f"task.server={server.address}", f"task.samples={file}")


def test_the_server_verifies_the_whole_conversation_and_the_row(tmp_path):
    with running(GymServer()) as gym:
        ran = launch(tmp_path, *_task(gym, write_rows(tmp_path, tool=True)), *SMALL, "limit=1", "method=base")
    assert ran.metrics["splits"]["test"]["after"]["scorer_used_the_tool"] == 100.0
    verified = gym.verified
    call, result, said = verified[-1]["response"]["output"]
    assert (call["type"], call["name"], call["call_id"]) == ("function_call", "atlas", result["call_id"])
    assert verified[-1]["expected_answer"] in result["output"]
    assert (said["role"], said["content"][0]["type"]) == ("assistant", "output_text")
    assert verified[-1]["responses_create_params"]["input"][0]["role"] == "developer"


def test_what_a_model_calls_wrongly_reaches_no_tool():
    nan = ToolCall(id="nan", name="atlas", arguments="NaN")
    turns = iter([ToolTurn(tool_calls=(_call("verify"), _call("../verify"), _call("atlas"), nan)), ToolTurn()])
    asked = []

    async def ask(request):
        asked.append(request)
        return next(turns)

    async def play():
        episode = NemoGymEpisode(gym.address, row("Peru", tool=True))
        await episode.play(ask)
        await episode.close()

    with running(GymServer()) as gym:
        asyncio.run(play())
        assert gym.verified == []
    results = [message.content for message in asked[-1].messages if message.role == "tool"]
    for result, said in zip(results, ("no tool verify", "no tool ../verify", "no JSON", "no JSON"), strict=True):
        assert said in result


def test_earlier_turns_of_a_row_are_messages():
    call = {"type": "function_call", "call_id": "c1", "name": "atlas", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "burnt"}
    said = {"role": "assistant", "content": "I look it up."}
    given = [{"role": "user", "content": "Where?"}, said, call, result]
    request = Conversation({"instructions": "Be brief.", "input": given}).request()
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert json.loads(request.messages[2].content)["tool_calls"][0]["name"] == "atlas"


@pytest.mark.parametrize(
    ("does", "given", "said"),
    [
        ("works", {"responses_create_params": 1}, "there is no object responses_create_params"),
        ("works", {"responses_create_params": {"input": []}}, "input has no message of a user"),
        ("works", {"tools": [{"type": "web_search"}]}, "tools of the type web_search are not supported"),
        ("works", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "shows input_image"),
        ("works", {"input": "Hi", "tools": [{"type": "function", "name": "maps"}]}, "has no tool maps"),
        ("steps", {}, "steps through turns (/step), which is not supported"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(does, given, said, tmp_path, capsys):
    made = row("Peru", tool=True)
    made |= given if "responses_create_params" in given else {}
    if isinstance(made["responses_create_params"], dict):
        made["responses_create_params"] |= given.get("responses_create_params", given)
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(made))
    with running(GymServer(does)) as gym:
        assert said in refusal(_task(gym, file), tmp_path / "results", capsys)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("verify_raises", "answered /verify with 500"),
        ("masks", "its reward does not count: the judge was away"),
    ],
)
def test_a_server_that_fails_is_a_fault_of_the_task(does, said, tmp_path):
    with running(GymServer()) as gym:
        file = write_rows(tmp_path, tool=False)
        task = (*_task(gym, file), "method=base", "limit=1", "estimate=false")
        gym.does = does
        ran = launch(tmp_path, *task)
    fault = rollouts(ran)[-1]["fault"]
    assert (ran.status, fault["owner"]) == (0, "task")
    assert said in fault["message"]


@pytest.fixture(scope="module")
def weather():
    """The package's own server of its example, from the environment of the Python that $NEMO_GYM names."""
    if (python := os.environ.get("NEMO_GYM")) is None:
        pytest.skip("needs nemo-gym: NEMO_GYM=PYTHON, a Python in whose environment it is installed")
    name = "example_single_tool_call"
    find = "import nemo_gym, pathlib; print(pathlib.Path(nemo_gym.__file__).parents[1])"
    root = Path(subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.split()[-1])
    port = free_port()
    served = {"entrypoint": "app.py", "domain": "agent", "host": "127.0.0.1", "port": port}
    settings = {"head_server": {"host": "127.0.0.1", "port": 1}, "dry_run": False}
    told = {
        "NEMO_GYM_CONFIG_PATH": name,
        "NEMO_GYM_CONFIG_DICT": json.dumps({**settings, name: {"resources_servers": {name: served}}}),
        "PYTHONPATH": str(root),
    }
    folder = root / "resources_servers" / name
    process = subprocess.Popen([python, "app.py"], cwd=folder, env={**os.environ, **told})
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}", folder / "data" / "example.jsonl"
    finally:
        process.terminate()
        process.wait(30)


def test_a_server_of_the_package_is_played_and_verifies(weather, tmp_path):
    address, file = weather
    ran = launch(tmp_path, "task=nemo_gym", f"task.server={address}", f"task.samples={file}", *SMALL)
    assert (ran.status, ran.metrics["faults"]) == (0, {"adapt": {}, "evaluate": {}})
    played = [(one["attempt"]["counters"]["tool_calls"] > 0, one["grade"]["correct"]) for one in rollouts(ran)]
    assert all(called == right for called, right in played)  # its reward is 1 where the tool was called
    assert any(called for called, _ in played)


def _call(name):
    return ToolCall(id=name, name=name, arguments="{")
