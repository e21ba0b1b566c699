"""Plays the mini-world's tasks in the engine's interpreter; prints one JSON line an episode.

Usage: ``<engine's python> miniworld_agents.py DATASET AGENT...``, with ``APPWORLD_ROOT`` set. Outputs stay under the
root's ``experiments/outputs/<agent>``.
"""

import json
import os
import sys
from pathlib import Path

from appworld import AppWorld, load_task_ids

ROOT = Path(os.environ["APPWORLD_ROOT"])


def code(agent, task):
    if agent == "reference":
        solution = ROOT / "data" / "tasks" / task / "ground_truth" / "compiled_solution.py"
        return solution.read_text() + "\nsolution(apis, requester)"
    if agent == "naive":
        return (ROOT / "naive_solutions" / f"{task}.py").read_text()
    return "apis.supervisor.complete_task()"  # the idle one


def main(dataset, *agents):
    for agent in agents:
        for task in load_task_ids(dataset):
            with AppWorld(task_id=task, experiment_name=agent) as world:
                world.execute(code(agent, task))
                result = world.evaluate(suppress_errors=True).to_dict()
            sys.stdout.write(json.dumps({"agent": agent, "task": task, **result}) + "\n")


main(*sys.argv[1:])
