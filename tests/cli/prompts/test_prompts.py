"""Prompts of the authors' format as a prompt set: the words are of this test, the form is theirs."""

import hashlib
import json
import re
import subprocess

import pytest

from ace_bench.cli.main import start
from ace_bench.core.errors import ConfigError
from ace_bench.store.authors_code import read_imported
from ace_bench.store.calls import read_calls
from ace_bench.store.prompts import PromptSet
from ace_bench.tasks.appworld.engine import find_engine
from tests.cli.prompts import stand_ins
from tests.launching import launch
from tests.runners.scripted import Scripted, answer, delta, play, reflection


@pytest.fixture
def checkout(tmp_path):
    return stand_ins.write_checkout("small_finance", tmp_path / "checkout")


@pytest.fixture
def apps(tmp_path):
    return stand_ins.appworld(tmp_path / "apps")


def test_a_run_uses_the_set(checkout, tmp_path):
    assert start("prompts", [str(checkout), str(tmp_path / "out")]) == 0
    scripted = Scripted(
        generator=lambda _: answer("wrong"), reflector=lambda _: reflection("why"), curator=lambda _: delta("a lesson")
    )
    ran = play(tmp_path / "runs", f"prompts={tmp_path / 'out'}", script=scripted, train=2, test=1)
    assert ran.status == 0
    last = scripted.of("generator")[-1].prompt
    assert "Playbook: ## STRATEGIES\n\n## OTHERS\n[others-00001] helpful=0 harmful=0 :: a lesson |" in last
    curator = scripted.of("curator")[0].prompt
    assert curator.startswith('gold 80000 1/2 {\n  "total_bullets": 0,\n')
    assert f"}}\n{json.dumps(reflection('why'))} || ## STRATEGIES" in curator


def test_the_newer_layout_makes_the_same_set_and_its_own_prompts_replace_some(checkout, tmp_path):
    assert start("prompts", [str(checkout), str(tmp_path / "older")]) == 0
    (checkout / "eval").mkdir()
    (checkout / "finance").rename(checkout / "eval" / "finance")
    reflector = checkout / "ace" / "prompts" / "reflector.py"
    names = ["question", "reasoning_trace", "predicted_answer", "environment_feedback", "bullets_used"]
    fields = iter([*names[:3], "ground_truth", *names[3:], *names])
    reflector.write_text(re.sub(r"(?<!\{)\{\}(?!\})", lambda _: f"{{{next(fields)}}}", reflector.read_text()))
    generator = checkout / "ace" / "prompts" / "generator.py"
    generator.write_text(
        generator.read_text().replace("GENERATOR_PROMPT", "GENERATOR_PROMPT_JSON")
        + "\nGENERATOR_PROMPT = GENERATOR_PROMPT_JSON\n"
    )
    assert start("prompts", [str(checkout), str(tmp_path / "newer")]) == 0
    older, newer = (read_imported(tmp_path / name).files for name in ("older", "newer"))
    assert newer == older
    replaced = checkout / "eval" / "finance" / "prompts"
    replaced.mkdir()
    (replaced / "reflector.py").write_text('REFLECTOR_PROMPT = "Study {question}."\n')
    assert start("prompts", [str(checkout), str(tmp_path / "partial")]) == 0
    partial = read_imported(tmp_path / "partial").files
    assert {name for name in partial if partial[name] != newer[name]} == {"qa/reflector.j2", "formula/reflector.j2"}
    without_gold = (tmp_path / "newer" / "qa" / "reflector.j2").read_text().partition("{% else %}")[2]
    text = (tmp_path / "partial" / "qa" / "reflector.j2").read_text()
    assert "Study {{ background }}{{ question }}." in text
    assert without_gold.partition("{% endif %}")[0] in text


def test_no_checkout_and_a_taken_folder_are_told(checkout, tmp_path, capsys):
    generator = checkout / "ace" / "prompts" / "generator.py"
    whole = generator.read_text()
    generator.write_text("A = GENERATOR_PROMPT\nGENERATOR_PROMPT = A\n")
    assert start("prompts", [str(checkout), str(tmp_path / "out")]) == 2
    assert "assigns no text to GENERATOR_PROMPT" in capsys.readouterr().err
    generator.write_text(whole)
    assert start("prompts", [str(tmp_path), str(tmp_path / "out")]) == 2
    assert "is it a checkout" in capsys.readouterr().err
    assert start("prompts", [str(checkout), str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("style", [("**", ":**"), ("## ", ""), ("", ":")])
def test_the_embedded_reader_learns_from_such_a_set_as_from_ours(style, tmp_path):
    out = tmp_path / "out"
    assert start("prompts", [str(stand_ins.finance(tmp_path / "checkout", style)), str(out)]) == 0
    settings = ("task=formula", "task.source=sample", "mode.epochs=1", "limit={train: 30, test: 30}")
    ours = launch(tmp_path / "ours", *settings).metrics["headline"]
    theirs = launch(tmp_path / "theirs", *settings, f"prompts={out}").metrics["headline"]
    assert theirs["after"] > theirs["before"] + 10
    assert abs(theirs["after"] - ours["after"]) < 10


def test_files_are_recognised_by_what_they_fill_then_the_configured_then_by_name_unless_one_is_named(
    snapshot, apps, tmp_path, capsys
):
    folder = apps / "experiments" / "prompts"
    said = []

    def make(*words):
        status = start("prompts", [*map(str, words), str(tmp_path / f"out{len(said)}")])
        said.append(f"{status}: " + "".join(capsys.readouterr()).replace(str(tmp_path), "TMP"))

    make(apps)
    (folder / "second.txt").write_text((folder / "study.txt").read_text())
    make("--reflector", "experiments/prompts/second.txt", apps)
    make("--reflector", "experiments/prompts/second.txt", stand_ins.finance(tmp_path / "finance"))
    for name in ("plan.txt", "react.txt"):
        (folder / name).write_text((folder / "without_playbook.txt").read_text())
    named = 'local folder = "/experiments/prompts";\n{"reflector_prompt_file_path": folder + "/second.txt", }'
    (apps / "experiments" / "configs").mkdir()
    (apps / "experiments" / "configs" / "adapt.jsonnet").write_text(named)
    make(apps)
    make("--react", "plan.txt", apps)
    assert "\n".join(said) == snapshot


def test_several_checkouts_make_one_set_that_says_where_it_comes_from(checkout, apps, tmp_path, capsys):
    (checkout / "LICENSE.txt").write_text("   Apache License\n Version 2.0")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(checkout), *words], check=True)
    out = tmp_path / "out"
    assert start("prompts", [str(checkout), str(apps), str(out)]) == 0
    printed = capsys.readouterr().out
    assert "ace-agent/ace-appworld: commit unknown, licence none found, 7 templates" in printed
    imported = read_imported(out)
    ace = imported.sources[0]
    assert (ace.repository, ace.licence, len(ace.commit)) == ("ace-agent/ace", "Apache-2.0", 40)
    curator = (out / "agent" / "curator.j2").read_bytes()
    assert imported.files["agent/curator.j2"] == hashlib.sha256(curator).hexdigest()
    assert {"qa/generator.j2", "agent/generator.j2", "licences/ace-agent_ace.txt"} <= {*imported.files}
    settings = ("task=formula", "method=base", "task.source=sample", "limit=1", f"prompts={out}")
    ran = launch(tmp_path / "runs", *settings, "protocol=official")  # not imported: it is of our set
    assert (
        f"prompts are of ace-agent/ace at {ace.commit}; protocol=official follows ba78d34." in capsys.readouterr().out
    )
    assert ran.metrics["prompts"]["sources"] == {"ace-agent/ace": ace.commit, "ace-agent/ace-appworld": "unknown"}
    assert start("prompts", [str(apps), str(checkout), str(apps / "."), str(tmp_path / "two")]) == 2
    assert "are both checkouts of ace-agent/ace-appworld: name one of them" in capsys.readouterr().err
    template, sources = out / "qa" / "curator.j2", out / "sources.json"
    for damage, said in (
        (lambda: template.write_text("{% block user %}mine{% endblock %}"), "qa/curator.j2 has changed"),
        (template.unlink, "qa/curator.j2 cannot be read (No such file"),
        (lambda: sources.write_text("{"), "sources.json cannot be read"),
    ):
        damage()
        with pytest.raises(ConfigError, match=re.escape(said)):
            read_imported(out)


def test_a_long_output_of_an_agents_code_is_cut(apps, tmp_path):
    assert start("prompts", [str(apps), str(tmp_path / "out")]) == 0
    acting = PromptSet(tmp_path / "out", task="appworld", prompt_group="agent")
    for size, text in ((20_000, "x" * 20_000), (20_001, "x" * 20_000 + "\n[CUT]")):
        (shown,) = acting.render("observation", {"output": "", "raw_output": "x" * size, "memory": ""})
        assert shown.content == f"Output:\n```\n{text}```\n\n"


def test_a_run_with_the_cheatsheets_prompts_asks_with_them(tmp_path):
    cheatsheet = stand_ins.write_checkout("cheatsheet", tmp_path / "checkout")
    assert start("prompts", [str(cheatsheet), str(tmp_path / "out")]) == 0
    settings = ("task=formula", "method=dc", "task.source=sample", "limit=2", f"prompts={tmp_path / 'out'}")
    ran = launch(tmp_path / "runs", *settings, "mode.epochs=1", "labels=none")
    assert not any(ran.metrics["faults"].values())
    requests = [record.request for record in read_calls(ran.folder)]
    first = [request.messages[0].content.partition("\n")[0] for request in requests if request is not None]
    assert {text[:5] for text in first} == {"Solve", "Old: "}


@pytest.mark.thorough
@pytest.mark.usefixtures("one_warm_engine")
def test_an_agents_roles_fill_a_playbook_with_the_imported_set(apps, tmp_path):
    try:
        find_engine()
    except ConfigError as error:
        pytest.skip(str(error))
    assert start("prompts", [str(apps), str(tmp_path / "out")]) == 0
    settings = ("task=appworld", "task.source=sample", "limit=1", "mode.epochs=1", f"prompts={tmp_path / 'out'}")
    ran = launch(tmp_path / "runs", *settings)
    assert ran.metrics["context"]["items"] > 0
    assert not any(ran.metrics["faults"].values())
