"""The state of the authors' code that a run follows: what is imported, and what differs from it."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.runners.composing import with_commit_apart
from ace_bench.store.authors_code import (
    APPWORLD,
    FINANCE,
    RECORD,
    UNKNOWN,
    check_commit,
    describe_checkout,
    notes_on_state,
    read_imported,
    state_followed,
    with_record,
)
from tests.outcomes import outcomes


def test_a_checkout_is_named_by_its_commit_and_licence(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
        return subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True)

    source, text = describe_checkout(tmp_path, "them/code")
    assert (source.commit, source.licence, text) == (UNKNOWN, "none found", None)
    (tmp_path / "LICENSE").write_text("MIT License, and so on")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "all")
    source, text = describe_checkout(tmp_path, "them/code")
    assert (source.commit, source.licence) == (git("rev-parse", "HEAD").stdout.strip(), "MIT")
    (tmp_path / "LICENSE").write_text("ours")
    source, text = describe_checkout(tmp_path, "them/code")
    assert (source.commit[40:], source.licence, text) == (", with changes", "of its own", "ours")


def test_an_imported_set_is_read_until_a_file_changes(tmp_path):
    source, _ = describe_checkout(tmp_path, "them/code")
    assert read_imported(tmp_path) is None
    for name, text in with_record({"a.j2": "A"}, [source]).items():
        (tmp_path / name).write_text(text)
    assert read_imported(tmp_path).commits == {"them/code": UNKNOWN}
    for spoil, message in (
        (lambda: (tmp_path / "a.j2").write_text("B"), "a.j2 has changed since it was imported"),
        ((tmp_path / "a.j2").unlink, r"a.j2 cannot be read \(No such file"),
        (lambda: (tmp_path / RECORD).write_text(json.dumps({"sources": []})), f"{RECORD} cannot be read"),
    ):
        spoil()
        with pytest.raises(ConfigError, match=message):
            read_imported(tmp_path)


def test_a_protocol_may_name_the_commit_that_is_meant():
    words = ["a=1", "protocol=official@ba78d34", "protocol=official", "protocol=ours@x"]
    apart = [words[0], "protocol=official", "official_commit='ba78d34'", *words[2:]]
    assert with_commit_apart(words) == apart
    assert check_commit("ba78d34c0ffee", FINANCE) == FINANCE
    assert check_commit("d241ef8", FINANCE) == FINANCE
    assert check_commit("748a9dc", FINANCE) == APPWORLD
    batches = "ace-agent/ace@bcb7cea"
    assert check_commit("bcb7cea", FINANCE) == FINANCE
    assert check_commit("bcb7cea", batches) == batches
    assert check_commit("d241ef8", batches) == FINANCE, "that state has no batches"
    with pytest.raises(ConfigError, match=r"protocol=official@1234567: there is no such state; known are .*ba78d34"):
        check_commit("1234567", FINANCE)


STATES = [
    "[null, {}]",
    '["ba78d34", {"ace-agent/ace": "ba78d34c0ffee"}]',
    '["748a9dc", {}]',
    '[null, {"ace-agent/ace": "unknown"}]',
    '[null, {"ace-agent/ace": "ba78d34, with changes"}]',
]


def test_what_differs_from_the_state_that_is_followed_is_said(snapshot):
    """A case is the commit that is named, and those that were imported."""

    def notes(case):
        return [*notes_on_state(FINANCE, *json.loads(case))]

    assert outcomes(notes, STATES) == snapshot


def test_a_method_or_the_kind_of_a_task_decides_the_state():
    agent, other = SimpleNamespace(prompt_group="agent"), SimpleNamespace(prompt_group="qa")
    assert [state_followed(object(), task) for task in (agent, other)] == [APPWORLD, FINANCE]
    assert state_followed(SimpleNamespace(follows="x@y"), agent) == "x@y"
