"""``protocol=official``: which settings it changes, what wins over it, and that other methods still run."""

import pytest

from ace_bench.core.resources import config_folders
from ace_bench.runners.planning import Composer
from tests.launching import launch, options

OFFICIAL = "protocol=official"
_LOOP = {"method.measure_post_update", "method.curator_every", "method.token_budget"}
OF_THE_AUTHORS_LOOPS = {"ace": _LOOP, "combee": {*_LOOP, "method.curator_batch_size"}}
TASKS, METHODS, MODES = map(options, ("task", "method", "mode"))


def keys(config, prefix=""):
    for name, value in config.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{name}.")


@pytest.fixture(scope="module")
def compose():
    return Composer(config_folders())


def test_it_sets_the_switches_of_agent_method_and_mode(compose):
    paper, official = (compose(["task=finer", "method=ace", protocol]) for protocol in ("protocol=paper", OFFICIAL))
    assert (paper["method"]["max_reflection_rounds"], official["method"]["max_reflection_rounds"]) == (5, 3)
    assert official["method"]["_target_"] == "ace_bench.methods.official.finance.OfficialFinance"
    assert (official["mode"]["shuffle"], official["mode"]["select"]) == (False, "best")
    assert official["agent"]["parse_replies"] == "official"
    assert compose([OFFICIAL, "mode=online"])["mode"]["window"] == 15
    assert compose([]) == compose(["protocol=paper"])
    assert "protocol" not in compose([]), "the usual one is not named"


def test_what_the_user_sets_wins_and_a_preset_too(compose):
    chosen = compose([OFFICIAL, "method.max_reflection_rounds=7", "mode.shuffle=true", "experiment=finer_paper"])
    assert chosen["method"]["max_reflection_rounds"] == 7
    assert (chosen["mode"]["shuffle"], chosen["mode"]["before"]) == (True, False)


@pytest.mark.slow
def test_it_adds_no_setting_that_an_option_does_not_have(compose):
    pairs = [(task, method, "offline") for task in TASKS for method in METHODS]
    chosen = [*pairs, *(("finer", "ace", mode) for mode in MODES)]
    for task, method, mode in chosen:
        words = [f"task={task}", f"mode={mode}", f"method={method}"]
        added = set(keys(compose([*words, OFFICIAL]))) - set(keys(compose(words)))
        assert added <= OF_THE_AUTHORS_LOOPS.get(method, set()), words  # methods of their own


def test_other_packages_say_what_it_means_for_their_options(tmp_path):
    (tmp_path / "protocol/official/method").mkdir(parents=True)
    (tmp_path / "protocol/official/method/icl.yaml").write_text("shots: 4\n")
    compose = Composer([*config_folders(), tmp_path])
    assert compose(["method=icl", OFFICIAL])["method"]["shots"] == 4
    assert compose(["method=icl"])["method"]["shots"] != 4


def test_the_state_of_the_authors_code_is_recorded_and_an_unknown_one_refused(compose, tmp_path, capsys):
    assert compose([f"{OFFICIAL}@748a9dc"]) == compose([OFFICIAL, "official_commit=748a9dc"])
    run = ("task=formula", "task.source=sample", "method=dc", "limit=1")
    named = launch(tmp_path, OFFICIAL, "official_commit=1cf258c0", *run)
    assert (named.metrics["protocol"], named.metrics["follows"]) == (
        "official",
        "suzgunmirac/dynamic-cheatsheet@1cf258c",
    )
    assert "protocol=official" in (named.folder / "summary.txt").read_text()
    assert "names a state" not in capsys.readouterr().out
    assert launch(tmp_path, OFFICIAL, *run).folder == named.folder
    capsys.readouterr()
    assert launch(tmp_path, OFFICIAL, "official_commit=ba78d34", *run, "dry_run=true").status == 0
    said = "official@ba78d34 names a state of ace-agent/ace; this run follows suzgunmirac/dynamic-cheatsheet@1cf258c."
    assert said in capsys.readouterr().out
    for words, said in (
        (
            [OFFICIAL, "official_commit=ba78d3"],
            "official@ba78d3: there is no such state; known are ace-agent/ace@ba78d34,",
        ),
        (["official_commit=ba78d34"], "official_commit=ba78d34 is for protocol=official"),
    ):
        assert launch(tmp_path, *words, *run).status == 2, "though such a run is finished"
        assert said in capsys.readouterr().err


def test_too_few_samples_to_be_validated_are_said_before_the_run(tmp_path, capsys):
    sizes = "limit={train: 3, val: 2, test: 2}"
    run = (OFFICIAL, "task=finer", "method=ace", "task.source=sample", sizes, "dry_run=true")
    assert launch(tmp_path, *run).status == 0
    assert "the test is of the context from before adaptation" in " ".join(capsys.readouterr().out.split())
    for enough in ("mode.eval_every=3", "mode.select=final", "method=base"):
        assert launch(tmp_path, *run, enough).status == 0
        assert "before adaptation" not in capsys.readouterr().out
