"""Every command that takes a folder looks at hostile run folders, and nothing that they hold is executed."""

from __future__ import annotations

import re

import pytest

from ace_bench import api
from ace_bench.cli.main import all_commands, start
from ace_bench.cli.playbook.command import all_commands as playbook_commands
from ace_bench.core.errors import AceBenchError
from tests.hostile.folders import MODULE, SECRET, plant_all

WORDS = ("task=finer", "task.source=sample", "limit={train: 2, val: 1, test: 2}", "method=ace", "mode.epochs=1")
TABLE = ("table=2", "backbone=embedded", "limit=1", "task.source=sample")
EACH = "FOLDER"
"""Stands for each hostile run folder; RESULTS is the folder of all."""
COMMANDS = {
    "ls": [["RESULTS"], ["RESULTS", "--json"], ["RESULTS", "method=ace"]],
    "doctor": [["RESULTS"], ["RESULTS", "--repair"], ["RESULTS", "--repair", "--json"]],
    "tables": [["--results", "RESULTS", "--rows", "method"], ["--results", "RESULTS", "--out", "OUT/tables", *TABLE]],
    "figures": [["--results", "RESULTS", "--x", "method", "--out", "OUT/figure"]],
    "plan": [["RESULTS"]],
    "report": [
        ["RESULTS", "--out", "OUT/report.html"],
        [EACH, "--out", "OUT/one.html"],
        ["RESULTS", "--out", "OUT/site"],
    ],
    "view": [],  # serves the pages of a site
    "reproduce": [[*TABLE, "results=RESULTS", "--dry-run"]],
    "leaderboard": [[EACH, "--name", "x", "--method", "x", "--llm", "x", "--into", "OUT/board"]],
    "validity": [["placebo", *WORDS, "results=RESULTS", "seed=0", "--other", "formula", "--dry-run"]],
    "prompts": [[EACH, "OUT/set"]],
    "retrieval": [["--playbook", f"{EACH}/contexts/final.json", "--limit", "1"]],
    "run": [[*WORDS, "results=RESULTS", "name=planted0", "--cfg", "job"]],
    "playbook": [],  # below
}
PLAYBOOK = {
    "show": [[EACH], [f"{EACH}/contexts/final.json"]],
    "diff": [[EACH, EACH]],
    "export": [[EACH, "--out", "OUT/texts"], [EACH, "--as", "agents", "--out", "OUT/AGENTS.md"]],
    "import": [[EACH, "--into", "OUT/imported.json", "--dry-run"]],
    "forget": [[EACH, "--source", "x", "--dry-run"]],
    "feedback": [[EACH, "--bullet", "x", "--helpful", "--out", "OUT/voted.json"]],
}
NO_FOLDER = {"init", "data", "check", "appworld", "serve"}
"""Commands that read no folder of runs, prompts or code."""
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """All hostile folders in one folder of results, and the folder of traces."""
    top = tmp_path_factory.mktemp("planted")
    honest = api.run(results=top / "honest", overrides=WORDS, progress=False).folder
    (top / "trace").mkdir()
    (top / "here").mkdir()
    code = f"open({str(top / 'trace' / MODULE)!r}, 'w')\ndef make(*_, **__):\n    return None\n"
    (top / "here" / f"{MODULE}.py").write_text(code)
    return plant_all(honest, top / "results", top / "trace"), top


@pytest.fixture
def looked_at(planted, monkeypatch):
    """The hostile folders; what looks at them must leave no trace."""
    folders, top = planted
    monkeypatch.chdir(top / "here")
    monkeypatch.syspath_prepend(str(top / "here"))
    monkeypatch.setenv(SECRET, "value-of-the-variable")
    monkeypatch.setattr("ace_bench.cli.leaderboard.find_engine", lambda: None)  # which may not be installed
    yield folders, top
    traces = sorted((top / "trace").iterdir())
    for path in traces:
        path.unlink()
    assert [path.name for path in traces] == []


def called(command, arguments, folders, top, capsys):
    """Call a command, for each hostile folder if it takes one; it ends with a sentence and prints nothing unsafe."""
    whole = any(EACH in word for word in arguments)
    for folder in folders.values() if whole else [top]:
        words = [
            word.replace(EACH, str(folder)).replace("RESULTS", str(top / "results")).replace("OUT", str(top / "out"))
            for word in arguments
        ]
        try:
            status = start(command, words)
        except SystemExit as ended:
            status = ended.code
        printed = "".join(capsys.readouterr())
        assert status in (0, 1, 2, None), words
        assert "Traceback" not in printed, words
        assert "value-of-the-variable" not in printed, words
        assert not UNSAFE.search(printed), (words, UNSAFE.search(printed))


SLOW = (["RESULTS", "--out", "OUT/site"], ["RESULTS", "--repair", "--json"])
"""Calls that read all that another call reads, and take seconds."""
CALLS = [
    pytest.param(name, call, marks=pytest.mark.slow if call in SLOW else ())
    for name, calls in COMMANDS.items()
    for call in calls
]
CALLS += [("playbook", [name, *call]) for name, calls in PLAYBOOK.items() for call in calls]


@pytest.mark.parametrize(("command", "arguments"), CALLS, ids=lambda one: one if isinstance(one, str) else one[0])
def test_no_command_executes_what_a_folder_holds(command, arguments, looked_at, capsys):
    folders, top = looked_at
    (top / "out").mkdir(exist_ok=True)
    called(command, arguments, folders, top, capsys)


def test_every_command_that_takes_a_folder_is_looked_at():
    assert set(all_commands()) == {*COMMANDS, *NO_FOLDER}
    assert set(playbook_commands()) == set(PLAYBOOK)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_nothing_that_python_reads_executes_it(looked_at):
    folders, top = looked_at
    for folder in folders.values():
        for ask in (
            lambda folder: str(api.load_run(folder)),
            lambda folder: api.load_run(folder).settings,
            lambda folder: api.load_run(folder).contexts,
            lambda folder: list(api.load_run(folder).steps()),
            lambda folder: api.load_run(folder).frames(prompts=True),
            lambda folder: api.load_run(folder).value("episodes.steps"),
            lambda folder: api.load_run(folder).value("accuracy"),
            lambda folder: api.load_run(folder).certificate,
            lambda folder: api.load_context(folder / "contexts" / "final.json"),
        ):
            try:
                ask(folder)
            except AceBenchError:
                continue
    api.load_runs(top / "results").frame()


def test_a_run_is_continued_by_its_command_alone(planted, looked_at, tmp_path):
    folders, _ = looked_at
    for name in ("class of the method", "class of a tracker", "bomb of YAML", "command"):
        folder = folders[name]
        (folder / "metrics.json").unlink(missing_ok=True)
        try:
            api.run(results=folder.parents[3], overrides=(*WORDS, f"name={folder.parents[2].name}"), progress=False)
        except AceBenchError:
            continue
