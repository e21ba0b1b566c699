"""The field's kinds of context: found by name where contexts are loaded, and text for other programs."""

import json

import pytest

from ace_bench.contexts import system_prompt
from ace_bench.contexts.loading import restore
from ace_field.reasoning_items import Experience, MemoryItem, ReasoningItems
from ace_field.stream_memory import Memory, MemoryEntry
from ace_field.workflows import Workflow, Workflows
from tests.launching import launch

MEMORY = Memory(entries=(MemoryEntry(question="q", answer="a", correct=True, tokens=1),))
ITEMS = ReasoningItems(
    experiences=(Experience(question="q", success=True, items=(MemoryItem(title="Add", content="twice"),)),), top_k=2
)
WORKFLOWS = Workflows(items=(Workflow(title="Add", steps=("Write {a} + {b}.", "Sum up.")),))


@pytest.mark.parametrize("context", [MEMORY, ITEMS, WORKFLOWS], ids=lambda context: context.kind)
def test_a_saved_one_is_loaded_by_the_name_of_its_kind(context):
    assert restore(json.loads(json.dumps(context.dump()))) == context


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (WORKFLOWS, "<workflows>\n## Add\n1. Write {a} + {b}.\n2. Sum up.\n</workflows>"),
        (ITEMS, "<memory_items>\n## Add\ntwice\n</memory_items>"),
    ],
    ids=["workflows", "items"],
)
def test_other_programs_get_it_as_text(context, text):
    assert text in system_prompt(context)
    assert system_prompt(type(context)()) == ""


@pytest.mark.parametrize("context", [MEMORY, ITEMS, WORKFLOWS], ids=lambda context: context.kind)
def test_a_saved_one_can_be_evaluated(context, tmp_path):
    file = tmp_path / "context.json"
    file.write_text(json.dumps(context.dump()))
    task = ("task=formula", "task.source=sample", "limit=2", "embedder=hashing")
    ran = launch(tmp_path, *task, "method=frozen", "mode=evaluate", f"mode.context={file}")
    assert ran.status == 0
    assert ran.metrics["context"]["kind"] == context.kind


@pytest.mark.parametrize(("method", "kept"), [("mem_prompt", "entries"), ("dc_rs", "episodes")])
def test_memories_keep_what_is_asked_and_not_the_schema(method, kept, tmp_path):
    ran = launch(tmp_path, "task=bird_sql", f"method={method}", "mode=online", "labels=correctness", "limit={test: 4}")
    entries = json.loads((ran.folder / "contexts" / "final.json").read_text())[kept]
    assert len(entries) >= 3
    assert not any("CREATE TABLE" in entry["question"] for entry in entries)
