"""What all environments of other packages promise, on the real packages and servers."""

from importlib.util import find_spec

import pytest

from ace_bench.backbones.embedded.server.serve import ReaderServer
from tests.backbones.serving import over_http, running
from tests.doubles import Recording
from tests.interference import cases, check_pair
from tests.launching import launch
from tests.tasks.environments.running import ATLAS, CITIES, NEEDED, PACKAGES, SMALL, case, rollouts, settings_of
from tests.wrong.refusing import refusal

ALL = [case(name) for name in ("inspect", "verifiers")]


@pytest.mark.parametrize("environment", ALL)
@pytest.mark.slow
def test_ace_learns_by_tools_over_http_and_a_run_that_is_continued_ends_the_same(environment, tmp_path):
    with running(ReaderServer(host="127.0.0.1", port=0)) as model:
        asked = (*settings_of(environment), *SMALL, "concurrency=1", *over_http(model.address))
        assert launch(tmp_path / "cut", *asked, "budget.calls=7").status == 3
        continued, whole = (launch(tmp_path / place, *asked) for place in ("cut", "whole"))
    assert continued.lasting() == whole.lasting()
    assert len(continued.lines("calls")) == len(whole.lines("calls"))
    assert (whole.status, whole.metrics["faults"]) == (0, {"adapt": {}, "evaluate": {}})
    record, after = rollouts(whole)[-1], whole.metrics["splits"]["test"]["after"]
    first, last = record["attempt"]["trajectory"]
    assert first["action"].startswith("atlas(land=")
    if environment == "inspect":  # a scorer gives each half of its points
        assert (after["score"], after["success"]) == (75.0, 0.0)
        assert (after["scorer_includes"], after["scorer_half"]) == (100.0, 50.0)
    else:
        assert (after["score"], after["success"]) == (100.0, 100.0)
    assert first["observation"] in last["thought"]
    assert record["grade"]["gold"] in record["attempt"]["answer"]


@pytest.mark.parametrize("labels", ["gold", "none"])
@pytest.mark.parametrize("environment", ALL)
def test_the_context_ends_the_system_message_and_references_follow_the_labels(environment, labels, tmp_path):
    made = []

    def recording(inner):
        made.append(Recording(inner))
        return made[-1]

    task = settings_of(environment, tool=False)
    assert launch(tmp_path, *task, *SMALL, f"labels={labels}", backbone=recording).status == 0
    assert any("reference_answer" in text for _, _, text in made[0].asked) == (labels == "gold")
    generator = [text for role, _, text in made[0].asked if role == "generator"]
    assert all("You answer questions on geography." in text for text in generator)
    assert "<playbook>" in generator[-1]
    assert not any("there is no fruit" in text for _, _, text in made[0].asked if labels == "none")


@pytest.mark.parametrize(
    "one",
    cases({"inspect": (), "verifiers": ()}, (("method", "labels"), ("labels", "mode"), ("task", "mode"))),
)
def test_what_is_hidden_changes_no_message(one, tmp_path):
    pytest.importorskip(PACKAGES[one.task], reason=f"needs the extra {one.task}: make test-environments")
    if one.method in NEEDED:
        pytest.importorskip(NEEDED[one.method])
    check_pair(one, tmp_path, *settings_of(one.task, tool=False))


REFUSED = [
    case("inspect", ["task.name=null"], "task.name is not set: give the task as FILE.py@task or package/task"),
    case("inspect", [f"{ATLAS}@nothing"], "cannot be loaded"),
    case("inspect", [ATLAS], "is a file: name one of its tasks as"),
    case("inspect", [f"{ATLAS}@choices", "task.args={colour: red}"], "has no argument colour; there are lands"),
    case("inspect", [f"{ATLAS}@in_docker"], "has sandbox, which is not supported"),
    case("inspect", [f"{ATLAS}@judged"], "is graded by a model (model_graded_qa): set task.judge=true"),
    case("verifiers", ["task.environment=null"], "environment is not set: name an installed taskset of verifiers"),
    case("verifiers", ["task.environment=no_such_taskset"], "task.environment=no_such_taskset cannot be loaded"),
    case("verifiers", ["task.environment=nowhere.py"], "task.environment=nowhere.py is not a file"),
    case("verifiers", [CITIES, "task.args={colour: red}"], "cannot be loaded with args={'colour': 'red'}"),
    case("verifiers", [CITIES, "task.answer=colour"], "task.answer=colour is not a field of the tasks of"),
]


@pytest.mark.parametrize(("environment", "asked", "said"), REFUSED)
def test_what_cannot_work_is_refused_before_anything_is_spent(environment, asked, said, tmp_path, capsys):
    assert said in refusal([f"task={environment}", *asked], tmp_path / "results", capsys)


@pytest.mark.parametrize("environment", [name for name in PACKAGES if find_spec(PACKAGES[name]) is None])
def test_a_missing_package_is_one_sentence(environment, tmp_path, capsys):
    named = {"inspect": "name=x.py@x", "verifiers": "environment=x"}[environment]
    said = refusal([f"task={environment}", f"task.{named}"], tmp_path / "r", capsys)
    assert f"needs {PACKAGES[environment]}: pip install 'ace-bench[{environment}]'" in said


SLOW = "did nothing for 0.5 s (task.timeout)"
FAILS = [
    case("inspect", [f"{ATLAS}@lookup", "task.args={name: broken}"], "RuntimeError: the atlas burnt down"),
    case("inspect", [f"{ATLAS}@unscorable"], "KeyError: 'no such column'"),
    case("verifiers", [CITIES, "task.args={task: {reward: raises}}"], "no such column"),
    case("verifiers", [CITIES, "task.args={task: {reward: judge}}"], "allow it by task.judge=true"),
    case("verifiers", [CITIES, "task.args={task: {tool: hangs}}", "task.timeout=0.5"], SLOW),
]


@pytest.mark.parametrize(("environment", "asked", "said"), FAILS)
def test_an_environment_that_fails_is_a_fault_of_the_task(environment, asked, said, tmp_path):
    ran = launch(tmp_path, f"task={environment}", "method=base", "limit=1", "mode.before=false", *asked)
    assert (ran.status, ran.metrics["headline"]["after"]) == (0, 0.0)
    fault = rollouts(ran)[-1]["fault"]
    assert fault["owner"] == "task"
    assert said in fault["message"]


JUDGED = [
    case("inspect", [f"{ATLAS}@asking"]),
    case("verifiers", [CITIES, "task.args={task: {reward: judge}}"]),
]


@pytest.mark.parametrize(("environment", "asked"), JUDGED)
def test_scorers_that_call_a_model_pass_the_counted_gateway_as_the_judge(environment, asked, tmp_path):
    given = ("method=base", "mode.before=false", "task.judge=true", "backbone@roles.judge=embedded")
    ran = launch(tmp_path, f"task={environment}", *asked, *given)
    assert ran.status == 0
    assert ran.metrics["calls"]["evaluate"]["judge"] == 4
    assert ran.metrics["headline"]["after"] == 100.0
