"""What replies can name is what their prompts show: bullets, sections, operations and verdicts, for every role."""

import re

import pytest

from tests.methods.playing import ONE, starting_from
from tests.runners.scripted import Scripted, answer, delta, gold, play, reflection

PLAYBOOK = "## OTHERS\n" + "".join(
    f"[others-0000{number}] helpful=0 harmful=0 :: {text}\n" for number, text in enumerate(("tea", "maps", "trains"), 1)
)
ALL = "method.operations=[ADD,UPDATE,MERGE,REMOVE,TAG]"
SHOWN = re.compile(r"^\[(others-\d+)\]", re.MULTILINE)
SETTINGS = {
    "all": (),
    "harmful": ("method.harmful_every=1",),
    "retrieval": ("method.retrieval.mode=bm25", "method.retrieval.top_k=1"),
    "nearest": ("method.curator_sees=1",),
    "combee": ("method.groups=2", "mode.batch_size=4", "method.reflection_window=1"),
    "without a reflector": ("method.reflector='off'",),
}


def cites(call):
    """The first bullet that the prompt shows, and one that does not exist."""
    return answer(gold(call.sample), *SHOWN.findall(call.prompt)[:1], "others-99999")


def enums(schema, name=""):
    """Yield the closed sets of a schema with the names of their fields."""
    if "enum" in schema:
        yield name, schema["enum"]
    for inner, part in schema.get("properties", {}).items():
        yield from enums(part, inner)
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from enums(part, name)


def fields(schema):
    """Return the values of each closed field; of several with one name they must be the same, but for ``type``."""
    found = {}
    for name, values in enums(schema):
        if name == "type":
            found.setdefault(name, []).extend(values)
        else:
            assert found.setdefault(name, values) == values
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_ids_are_those_of_the_bullets_that_the_prompt_shows(name, tmp_path):
    script = Scripted(generator=cites, curator=lambda _: delta("a new one"), merger=lambda _: delta("a new one"))
    method = "combee" if name == "combee" else "ace"
    sizes = {**ONE, "train": 4} if name == "combee" else ONE
    ran = play(tmp_path, starting_from(tmp_path, PLAYBOOK), ALL, *SETTINGS[name], script=script, method=method, **sizes)
    assert ran.status == 0
    asked = [(role, call.prompt, fields(call.schema)) for role, call in script.calls]
    assert {"generator", "curator"} <= {role for role, *_ in asked}
    for role, prompt, closed in asked:
        shown = SHOWN.findall(prompt)
        ids = closed.get("bullet_ids") if role == "generator" else closed.get("id", closed.get("ids"))
        assert (ids or []) == shown[: 1 if role == "reflector" else None]
        assert role == "generator" or closed["tag"] == ["helpful", "harmful", "neutral"]
        if role in ("curator", "merger"):
            assert closed["type"] == ["ADD", "UPDATE", "MERGE", "REMOVE", "TAG"]
            assert closed["section"] == ["strategies", "others"]
            assert closed["ids"] == shown


@pytest.mark.parametrize("method", ["ace", "combee", "ace_empty"])
def test_an_empty_playbook_has_nothing_to_name(method, tmp_path):
    script = Scripted(generator=cites, merger=lambda _: delta())
    own = (ALL,) if method != "ace_empty" else ()
    play(tmp_path, *own, script=script, method=method, **ONE)
    for role, call in script.calls:
        properties = call.schema["properties"]
        assert "bullet_ids" not in properties
        assert "bullet_tags" not in properties
        if role == "curator":
            assert fields(call.schema)["type"] == ["ADD"]


def test_what_a_method_without_bullets_asks_for_has_no_ids(tmp_path):
    script = Scripted(generator=lambda call: {"reasoning": "r", "final_answer": gold(call.sample)})
    play(tmp_path, "agent.scaffold=json", script=script, method="base", **ONE)
    assert [*script.calls[0][1].schema["properties"]] == ["reasoning", "final_answer"]


def test_sections_are_closed(tmp_path):
    script = Scripted()
    play(tmp_path, "method.operations=[ADD]", script=script, **ONE)
    (curator,) = script.of("curator")
    assert fields(curator.schema).get("section") == ["strategies", "others"]
    assert fields(curator.schema)["type"] == ["ADD"]


LINES = ("helpful 0, harmful 0, neutral 0", "helpful | harmful | neutral", "<verdict>", "helpful 1", "", "Helpful!")


@pytest.mark.parametrize("line", LINES)
def test_a_copied_line_is_no_vote_where_the_server_ignores_the_schema(line, tmp_path):
    script = Scripted(generator=cites, reflector=lambda _: reflection(others_00001=line))
    ran = play(tmp_path, starting_from(tmp_path, PLAYBOOK), script=script, **ONE)
    assert ran.metrics["operations"] == {"rejected": 1}
