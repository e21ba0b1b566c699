"""Every task with every method in every mode, on sample data with the embedded backbone."""

import pytest

from tests.launching import brief, launch, optimises, options, pairs, quick, retries

SMALL = ("limit={train: 2, val: 1, test: 2}", "task.source=sample")


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """Launch offline runs once for all tests of this module, by task and method."""
    done = {}

    def run(task, method):
        if (task, method) not in done:
            results = tmp_path_factory.mktemp("offline")
            settings = ("mode.epochs=1", "mode.select=best", *SMALL, *brief(task), *quick(method))
            done[task, method] = launch(results, f"task={task}", f"method={method}", *settings)
        return done[task, method]

    return run


@pytest.mark.parametrize(("task", "method"), pairs())
@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=() if mode == "offline" else pytest.mark.slow) for mode in options("mode")]
)
def test_every_task_with_every_method_in_every_mode(task, method, mode, offline, tmp_path):
    if retries(method) and mode != "online":
        assert launch(tmp_path, f"task={task}", f"method={method}", f"mode={mode}", *SMALL).status == 2
        return
    ran = None if retries(method) else offline(task, method)
    if mode == "online":
        given = quick(method) if method == "frozen" else ()
        ran = launch(tmp_path, f"task={task}", f"method={method}", "mode=online", *SMALL, *brief(task), *given)
        if optimises(method):
            assert ran.status == 2
            return
    elif mode == "evaluate":
        saved = ran.folder / "contexts" / "tested.json"
        expected = ran.metrics["headline"]["after"]
        settings = ("mode=evaluate", f"mode.context={saved}", *SMALL, *brief(task))
        ran = launch(tmp_path, f"task={task}", f"method={method}", *settings)
        assert ran.metrics["headline"]["after"] == expected
        assert ran.metrics["calls"]["adapt"] == {}
    assert ran.status == 0
    metrics = ran.metrics
    assert (metrics["task"], metrics["method"], metrics["mode"]) == (task, method, mode)
    assert metrics["simulated"] is True
    assert metrics["source"] == "sample"
    assert metrics["headline"]["n"] == metrics["splits"]["test"]["after"]["n"] == 2
    assert 0 <= metrics["headline"]["after"] <= 100
    assert metrics["faults"] == {"adapt": {}, "evaluate": {}}
    made = sum(sum(roles.values()) for roles in metrics["calls"].values())
    assert made == len(ran.lines("calls")) > 0
    assert (ran.folder / "summary.txt").read_text().startswith(f"{task} · {method}")
