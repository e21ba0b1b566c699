"""Which code decides a result: it counts by content, and what cannot change a result does not count."""

import ast
import json

import pytest

from ace_bench.store import code
from ace_bench.store.code import CodeReader, changed_modules, code_of, modules_in_words
from tests.outcomes import outcomes

METHOD = '''"""A method."""
from my_pack import helpers
from my_pack.prompts import WORDS  # a comment


class Mine:
    """Docstrings of others count: frameworks send them as prompts."""

    def words(self):
        return [helpers.one(), WORDS]
'''


@pytest.fixture
def pack(tmp_path, monkeypatch):
    """A package of somebody else, on the path."""
    folder = tmp_path / "site" / "my_pack"
    folder.mkdir(parents=True)
    files = {"__init__": "", "method": METHOD, "helpers": "import my_beside\n\ndef one():\n    return 1\n"}
    for name, text in {**files, "prompts": "WORDS = 'a'\n", "unrelated": "X = 1\n", "pyfuncs": ""}.items():
        (folder / f"{name}.py").write_text(text)
    (folder.parent / "my_beside.py").write_text("Y = 1\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("ACE_BENCH_CACHE", str(tmp_path / "cache"))
    return folder


def modules(**groups):
    return code_of({"method": {"_target_": "my_pack.method.Mine"}, **groups}).modules


def test_the_modules_of_a_class_and_what_they_import_count(pack):
    found = [name for name in modules() if not name.startswith("ace_bench.")]
    assert found == ["my_beside", "my_pack", "my_pack.helpers", "my_pack.method", "my_pack.prompts"]
    assert "ace_bench.runners.metrics" in modules()


EDITS = [
    '["my_pack/method.py", "# a comment", "# another comment, and an empty line\\n"]',
    '["my_pack/method.py", "return [helpers.one(), WORDS]", "return [\\n            helpers.one(), WORDS]"]',
    '["my_pack/method.py", "helpers.one()", "helpers.one() + 1"]',
    '["my_pack/method.py", "Docstrings of others", "The docstrings of others"]',
    '["my_pack/prompts.py", "\'a\'", "\'b\'"]',
    '["my_pack/unrelated.py", "1", "2"]',
    '["my_beside.py", "1", "2"]',
]


def test_an_edit_counts_where_it_can_change_a_result(snapshot, pack):
    """A case is a file, a text in it, and the one that replaces it."""
    before = modules()

    def changed(case):
        file, old, new = json.loads(case)
        text = (path := pack.parent / file).read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        found = changed_modules(before, modules())
        path.write_text(text)
        return found

    assert outcomes(changed, EDITS) == snapshot


def test_of_ace_bench_count_the_packages_that_decide_and_no_docstring():
    found = code_of({"method": {"_target_": "ace_bench.ace.settings.make_ace"}}).modules
    assert {"ace_bench.ace.ace", "ace_bench.playbook.apply", "ace_bench.core.replies"} <= set(found)
    rooms = {name.split(".")[1] for name in found}
    assert rooms <= {"ace", "agents", "contexts", "contrib", "core", "methods", "playbook", "runners", "tasks"}
    texts = [f'"""{words}"""\nX = 1\n'.encode() for words in ("One", "Two")]
    one, other = (code._parse_source("ace_bench.a", "a.py", text) for text in texts)
    assert one == other


def test_functions_files_and_packages_that_settings_name_count(pack):
    found = modules(task={"_target_": "ace_bench.tasks.qa.task.Qa", "grader": "python:my_pack.unrelated.same"})
    assert {"my_pack.unrelated", "ace_bench.tasks.qa.task"} <= set(found)
    for named in (f"{pack}/unrelated.py@task", f"{pack}/unrelated.py"):
        assert "unrelated" in modules(task={"name": named})
    assert "my_pack" in modules(task={"environment": "my-pack"})
    assert "my_pack.pyfuncs" in modules(task={"_target_": "my_pack.pyfuncs.Task"})
    assert modules(task={"name": "no_such_package/task"}) == modules()


def test_the_kind_of_a_saved_context_counts(tmp_path):
    file = tmp_path / "context.json"
    file.write_text('{"kind": "workflows"}')
    frozen = {"_target_": "ace_bench.methods.frozen.Frozen", "context": str(file)}
    assert "ace_bench.methods.field.workflows" in modules(method=frozen)
    file.write_text("a playbook as text")
    assert "ace_bench.methods.field.workflows" not in modules(method=frozen)


def test_a_backbone_counts_where_its_code_answers_and_not_where_a_server_does(pack):
    embedded = code_of({"backbone": {"_target_": "ace_bench.backbones.embedded.backbone.EmbeddedBackbone"}})
    assert {"ace_bench.backbones.embedded.backbone", "ace_bench.backbones.embedded.lessons"} <= embedded.backbones
    client = {"_target_": "ace_bench.backbones.openai_compatible.backbone.OpenAICompatible"}
    assert code_of({"backbone": client}).backbones == frozenset()
    assert "my_pack.method" in code_of({"roles": {"judge": {"_target_": "my_pack.method.Mine"}}}).backbones


def test_an_unchanged_text_is_parsed_once_and_a_spoilt_cache_does_no_harm(pack, tmp_path, monkeypatch):
    whole = modules()
    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", None)
        assert modules() == whole
    (tmp_path / "cache" / "code" / "modules.msgpack").write_bytes(b"spoilt")
    assert modules() == whole
    monkeypatch.setenv("ACE_BENCH_CACHE", str(pack / "method.py"))
    assert CodeReader().code_of({"method": {"_target_": "my_pack.method.Mine"}}).modules == whole


def test_what_is_not_recorded_did_not_change_and_long_lists_are_cut():
    assert changed_modules({}, {"a": "1"}) == changed_modules({"a": "1"}, {}) == []
    assert changed_modules({"a": "1", "b": "1"}, {"a": "2", "c": "1"}) == ["a", "b", "c"]
    assert modules_in_words(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more modules"


def test_a_text_that_cannot_be_parsed_counts_as_it_is(pack):
    before = modules()
    (pack / "prompts.py").write_text("WORDS = (\n")
    assert changed_modules(before, modules()) == ["my_pack.prompts"]
