"""Files and variables that cannot be used are named, before anything is made or sent."""

import os
import shutil

import pytest

from ace_bench.store.prompts import PromptSet
from tests.launching import ROOT, launch
from tests.outcomes import outcomes_by_name
from tests.wrong.refusing import refusal

SAMPLES = ROOT / "ace_bench" / "tasks" / "samples"
SMALL = ("limit=2", "mode.epochs=1", "task.source=auto")
TASKS = ("finer", "formula", "ddxplus", "bird_sql")


@pytest.fixture
def data(tmp_path):
    def folder(task: str, content: bytes) -> list[str]:
        made = tmp_path / "data"
        shutil.copytree(SAMPLES / task, made)
        (made / "test.jsonl").write_bytes(content)
        sizes = ["task.train_size=null"] if task == "ddxplus" else []
        return [f"task={task}", f"task.data_dir={made}", *sizes, *SMALL]

    return folder


@pytest.mark.parametrize("task", TASKS)
def test_a_bad_line_is_named_with_its_file(task, data, tmp_path, capsys):
    said = refusal(data(task, b'{"id": 1}'), tmp_path / "results", capsys)
    assert "data/test.jsonl, line 1: field" in said


@pytest.mark.parametrize("task", ["finer", "bird_sql"])
@pytest.mark.parametrize("made", [os.remove, lambda path: (path.unlink(), path.mkdir())], ids=["absent", "a folder"])
def test_a_file_that_is_none_is_named(task, made, data, tmp_path, capsys):
    overrides = data(task, b"")
    made(tmp_path / "data" / "test.jsonl")
    assert "lacks test.jsonl" in refusal(overrides, tmp_path / "results", capsys)


def test_marks_and_line_ends_of_other_systems_are_no_mistake(data, tmp_path):
    shipped = (SAMPLES / "formula" / "test.jsonl").read_bytes()
    plain = launch(tmp_path / "a", *data("formula", shipped), "method=base")
    (tmp_path / "data" / "test.jsonl").write_bytes(b"\xef\xbb\xbf" + shipped.replace(b"\n", b"\r\n"))
    other = launch(tmp_path / "b", "task=formula", f"task.data_dir={tmp_path / 'data'}", *SMALL, "method=base")
    assert plain.metrics["headline"] == other.metrics["headline"]


# A context's file, and the settings that name it.
FILES = {
    "context": [
        ("method.initial=FILE", b""),
        ("mode=evaluate mode.context=FILE", b"## OTHERS\n\xff\xfe"),
        ("mode=evaluate method=frozen mode.context=FILE", b'{"kind": "poem"}'),
        ("method.initial=FILE", b'{"kind": "playbook"}'),
        ("mode=evaluate mode.context=FILE", b"## OTHERS\n[o-00001] helpful=many harmful=0 :: text\n"),
        ("method.initial=FILE", b'{"kind": "none"}'),
        ("method=dc method.initial=FILE", b'{"kind": "none"}'),
        ("mode=evaluate mode.context=FILE", b'{"kind": "none"}'),
    ],
    # A template of the prompts, and what stands in it.
    "template": [
        ("generator", b"{% block user %}\xff{% endblock %}"),
        ("generator", b"{{ question }}"),
        ("curator", b""),
        ("generator", b"{% block user %}{{ question }}"),
        ("generator", b"{% block user %}{{ qestion }}{% endblock %}"),
        ("reflector", b"{% block user %}{% if gold is none %}{{ hint }}{% endif %}{% endblock %}"),
        ("curator", b"{% block user %}{{ gold }}{% endblock %}"),
        ("generator", b'{% block user %}{% include "_x.j2" %}{% endblock %}'),
        ("_attempt", b"{{ attempt }}"),
    ],
}


def test_contexts_and_templates_that_cannot_be_used_are_refused_as_recorded(snapshot, tmp_path, capsys):
    def refuse_context(case):
        words, content = case
        (tmp_path / "context.json").write_bytes(content)
        words = words.replace("FILE", str(tmp_path / "context.json"))
        return refusal([SMALL[0], "task.source=sample", *words.split()], tmp_path / "results", capsys)

    def refuse_template(case):
        name, content = case
        prompts = shutil.copytree(ROOT / "prompts" / "default", tmp_path / "mine")
        (prompts / "qa" / f"{name}.j2").write_bytes(content)
        try:
            return refusal(["task.source=sample", *SMALL[:2], f"prompts={prompts}"], tmp_path / "results", capsys)
        finally:
            shutil.rmtree(prompts)

    cases = {"context": refuse_context, "template": refuse_template}
    assert outcomes_by_name(cases, FILES, {str(tmp_path): "FOLDER", str(ROOT): "ROOT"}) == snapshot


def test_a_prompt_set_for_other_tasks_is_refused(tmp_path, capsys):
    (tmp_path / "mine" / "agent").mkdir(parents=True)
    overrides = ["task.source=sample", f"prompts={tmp_path / 'mine'}"]
    assert "has neither a folder finer/ nor qa/" in refusal(overrides, tmp_path / "results", capsys)


def test_optional_fields_of_a_template_need_not_be_known(tmp_path):
    prompts = tmp_path / "mine"
    shutil.copytree(ROOT / "prompts" / "default", prompts)
    careful = "{% if hint is defined %}{{ hint }}{% endif %}{{ tip | default('') }}{{ question }}"
    (prompts / "qa" / "base.j2").write_text(f"{{% block user %}}{careful}{{% endblock %}}")
    ran = launch(tmp_path / "results", "task.source=sample", "method=base", "limit=1", f"prompts={prompts}")
    assert ran.status == 0


@pytest.mark.parametrize("place", ["/nowhere", __file__])
def test_a_folder_of_data_that_is_none_is_named_with_its_variable(place, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ACE_BENCH_DATA", place)
    assert f"ACE_BENCH_DATA={place} is not a folder" in refusal([], tmp_path / "results", capsys)


def test_a_cache_that_is_none_is_refused_before_the_folder(tmp_path, capsys):
    held = tmp_path / "held"
    held.write_text("a file")
    small = ["task.source=sample", *SMALL[:2]]
    said = refusal([*small, f"response_cache={held}"], tmp_path / "results", capsys)
    assert said.startswith(f"response_cache={held} cannot be used")


FILLED = (
    "method.refiner.threshold=0.5 method.harmful_every=2",
    "method.update=rewrite",
    "method=dc",
    "method=dc_rs mode=online",
    "method=awm labels=none",
    "method=awm_offline",
    "method=reasoning_bank labels=none",
)


@pytest.mark.parametrize("case", FILLED)
def test_templates_get_the_fields_that_they_are_checked_by(case, tmp_path, monkeypatch):
    checked, filled = {}, {}
    check, render = PromptSet.check, PromptSet.render
    monkeypatch.setattr(
        PromptSet, "check", lambda self, role, f: (checked.update({role: set(f)}), check(self, role, f))[1]
    )
    monkeypatch.setattr(
        PromptSet, "render", lambda self, role, f: (filled.update({role: set(f)}), render(self, role, f))[1]
    )
    small = ["task=formula", "task.source=sample", "limit=8"]
    online = [] if "mode=online" in case else ["mode.epochs=1"]
    assert launch(tmp_path, *small, *online, *case.split()).status == 0
    assert len(filled) > 1
    assert filled == {role: checked[role] for role in filled}
