"""A run with a real model makes each of its parts, and loads its context, once; its rehearsals included."""

from collections import Counter

import pytest

from ace_bench.contexts import loading
from ace_bench.core import settings
from tests.backbones.serving import over_http
from tests.launching import PLAYBOOK, launch

PARTS = ("task", "method", "mode", "agent", "backbone")


@pytest.mark.parametrize(
    "words",
    [
        ("method=ace", f"method.initial={PLAYBOOK}", "mode.select=best", "mode.epochs=1", "mode.before=true"),
        ("method=ace", "mode=evaluate", f"mode.context={PLAYBOOK}", "mode.before=true"),
        ("method=frozen", f"method.context={PLAYBOOK}", "protocol=official@ba78d34"),
    ],
)
def test_parts_are_made_and_a_context_is_loaded_once(words, reader, tmp_path, monkeypatch):
    made = Counter()
    make, load = settings.make_part, loading.read_text

    def counted(target, given, path, **parts):
        made[path] += 1
        return make(target, given, path, **parts)

    def counted_load(*given, **named):
        made["context"] += 1
        return load(*given, **named)

    monkeypatch.setattr(settings, "make_part", counted)
    monkeypatch.setattr(loading, "read_text", counted_load)
    served = over_http(reader.address, prices="{input: 2, cached_input: 2, output: 8}")
    sizes = "limit={train: 2, val: 2, test: 2}"
    assert launch(tmp_path, "task=finer", "task.source=sample", *served, *words, sizes).status == 0
    assert {part: made[part] for part in (*PARTS, "context")} == dict.fromkeys((*PARTS, "context"), 1)
