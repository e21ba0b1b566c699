"""Templates become messages: blocks, folders that come before others, fields, and the words of mistakes."""

import json
import shutil
from pathlib import Path

import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.store.prompts import PromptSet
from tests.launching import ROOT
from tests.outcomes import outcome, outcomes

TEMPLATES = Path(__file__).parent / "templates"


def prompts_in(folder, **settings):
    return PromptSet(folder, **{"task": "mytask", "prompt_group": "qa", **settings})


PROMPTS = [
    'generator {"question": "<why> & {{ x }}?"}',
    'generator {"qestion": "?"}',
    "curator {}",
    "reflector {}",
    "unclosed {}",
    "merger {}",
    'tailed {"who": "I"}',
    'retry {"x": "USER:\\n"}',
    'dialogue {"x": "see User:\\nnow"}',
    "no_dialogue {}",
]


def test_templates_become_messages_and_mistakes_name_them(snapshot):
    """A case is a role and the fields of its template."""
    prompts = prompts_in(TEMPLATES)

    def rendered(case):
        role, _, fields = case.partition(" ")
        found = outcome(prompts.render, role, json.loads(fields))
        messages = [(message.role, message.content) for message in found] if isinstance(found, tuple | list) else found
        return str(messages).replace(str(TEMPLATES), "FOLDER").partition(" Jinja was looking")[0]

    assert outcomes(rendered, PROMPTS) == snapshot
    assert [prompts.is_dialogue(role) for role in ("dialogue", "retry")] == [True, False]
    with pytest.raises(ConfigError, match="neither a folder other/ nor others/"):
        prompts_in(TEMPLATES, task="other", prompt_group="others")


def test_a_digest_counts_what_a_task_may_use(tmp_path):
    root = shutil.copytree(TEMPLATES, tmp_path / "set")
    before = prompts_in(root).digest
    (root / "qa" / "mine").mkdir()
    (root / "qa" / "mine" / "b.j2").write_text("{% block user %}b{% endblock %}")
    others, mine = (prompts_in(root, module=name) for name in ("", "mine"))
    assert others.render("b", {})[0].content == "b", "templates of a module are found by all"
    assert (others.digest == before, mine.digest == before) == (True, False), "and count for its own methods"
    (root / "common" / "_tail.j2").write_text("or {{ who }}.")
    assert prompts_in(root).digest != before


def test_a_template_may_ask_only_for_the_fields_that_there_are():
    prompts = prompts_in(TEMPLATES)
    prompts.check("asking", {"a", "d", "e", "f", "more"})
    with pytest.raises(ConfigError, match=r"asking\.j2 in .* asks for d, e, f, and its fields are a: correct"):
        prompts.check("asking", {"a"})
    assert [field for field in "abcdefgx" if prompts.uses("asking", field)] == list("abcdef")


def test_default_generator_prompts_share_their_prefix_up_to_the_first_change():
    prompts = PromptSet(ROOT / "prompts" / "default", task="finer", prompt_group="qa")
    fields = {"background": "TAGS " * 500, "reflection": "(none)", "scaffold": "own", "counters": "(none)"}
    lesson = "[a-00001] (s) first lesson"
    one = prompts.render("generator", {**fields, "playbook": lesson, "question": "one?"})
    two = prompts.render(
        "generator", {**fields, "playbook": f"{lesson}\n[a-00002] (s) second", "counters": "x", "question": "two?"}
    )
    assert one[:-1] == two[:-1]
    shared = one[-1].content.split(lesson)[0] + lesson
    assert two[-1].content.startswith(shared)
    order = [two[-1].content.index(part) for part in ("TAGS", "first lesson", "<counters>", "two?", "<reflection>")]
    assert order == sorted(order)
