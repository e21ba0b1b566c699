import pytest

from ace_bench.core.errors import ConfigError
from ace_bench.store.prompts import PromptSet
from tests.launching import ROOT


def make(root, **templates):
    for name, text in templates.items():
        folder, role = name.split("__", 1)
        (root / folder).mkdir(exist_ok=True)
        (root / folder / f"{role}.j2").write_text(text)
    return PromptSet(root, task="mytask", prompt_group="qa")


def test_blocks_become_messages_and_the_task_overrides_its_family(tmp_path):
    prompts = make(
        tmp_path,
        qa__generator="{% block system %}S{% endblock %}{% block user %}Q: {{ question }}{% endblock %}",
        qa__curator="{% block user %}family{% endblock %}",
        mytask__curator="{% block user %}task{% endblock %}",
    )
    messages = prompts.render("generator", {"question": "<why> & {{ x }}?"})
    assert [(m.role, m.content) for m in messages] == [("system", "S"), ("user", "Q: <why> & {{ x }}?")]
    assert prompts.render("curator", {})[0].content == "task"


def test_mistakes_name_the_template(tmp_path):
    prompts = make(tmp_path, qa__generator="{% block user %}{{ qestion }}{% endblock %}", qa__bad="{% block user %}")
    with pytest.raises(ConfigError, match=r"generator\.j2.*qestion"):
        prompts.render("generator", {"question": "?"})
    with pytest.raises(ConfigError, match=r"no prompt template reflector\.j2"):
        prompts.render("reflector", {})
    with pytest.raises(ConfigError, match=r"bad\.j2"):
        prompts.render("bad", {})
    with pytest.raises(ConfigError, match="neither a folder other/ nor others/"):
        PromptSet(tmp_path, task="other", prompt_group="others")


def test_a_template_shared_by_all_families_is_found_last_and_may_be_a_part_of_others(tmp_path):
    shared = "{% block user %}shared{% endblock %}"
    prompts = make(
        tmp_path,
        common__merger=shared,
        common___tail="and {{ who }}.",
        qa__a='{% block user %}You {% include "_tail.j2" %}{% endblock %}',
    )
    assert prompts.render("merger", {})[0].content == "shared"
    assert prompts.render("a", {"who": "I"})[0].content == "You and I."
    digest = prompts.digest
    assert make(tmp_path, common___tail="or {{ who }}.").digest != digest
    own = make(tmp_path, qa__merger="{% block user %}own{% endblock %}")
    assert own.render("merger", {})[0].content == "own"


def test_templates_of_a_module_are_found_by_all_and_count_for_its_own_methods(tmp_path):
    before = make(tmp_path, qa__a="{% block user %}a{% endblock %}").digest
    (tmp_path / "qa" / "mine").mkdir()
    (tmp_path / "qa" / "mine" / "b.j2").write_text("{% block user %}b{% endblock %}")
    others, mine = (PromptSet(tmp_path, task="mytask", prompt_group="qa", module=name) for name in ("", "mine"))
    assert others.render("b", {})[0].content == "b"
    assert (others.digest == before, mine.digest == before) == (True, False)


def test_a_template_may_ask_only_for_the_fields_that_there_are(tmp_path):
    prompts = make(
        tmp_path,
        qa__generator="{% block user %}{{ a }}{% if b is defined %}{{ b }}{% endif %}{{ c | default('none') }}"
        "{{ d | upper }}{% if 'x' in e %}x{% endif %}{% set g = 1 %}{% include '_part.j2' %}{% endblock %}",
        qa___part="{{ f }}{{ g }}",
    )
    prompts.check("generator", {"a", "d", "e", "f", "more"})
    with pytest.raises(ConfigError, match=r"generator\.j2 in .* asks for d, e, f, and its fields are a: correct"):
        prompts.check("generator", {"a"})
    assert [field for field in "abcdefgx" if prompts.uses("generator", field)] == list("abcdef")


def test_default_generator_prompts_share_their_prefix_up_to_the_first_change():
    prompts = PromptSet(ROOT / "prompts" / "default", task="finer", prompt_group="qa")
    fields = {"background": "TAGS " * 500, "reflection": "(none)", "scaffold": "own", "counters": "(none)"}
    lesson = "[a-00001] (s) first lesson"
    one = prompts.render("generator", {**fields, "playbook": lesson, "question": "one?"})
    two = prompts.render(
        "generator", {**fields, "playbook": f"{lesson}\n[a-00002] (s) second", "counters": "x", "question": "two?"}
    )
    assert one[0] == two[0]
    shared = one[1].content.split(lesson)[0] + lesson
    assert two[1].content.startswith(shared)
    order = [two[1].content.index(part) for part in ("TAGS", "first lesson", "<counters>", "two?", "<reflection>")]
    assert order == sorted(order)


def test_exact_blocks_keep_every_byte_and_their_order(tmp_path):
    names = ("user_exact_1", "assistant_exact_2", "user_exact_3")
    exact = "".join(f"{{% block {name} %}}\n {{{{ x }}}}\n\n{{% endblock %}}" for name in names)
    shown = make(tmp_path, qa__retry=exact).render("retry", {"x": "USER:\n"})
    assert [message.role for message in shown] == ["user", "assistant", "user"]
    assert {message.content for message in shown} == {"\n USER:\n\n\n"}


def test_a_dialogue_is_split_after_it_is_filled_and_adjacent_turns_stay_apart(tmp_path):
    text = "USER:\nOne.\n\nUSER: not a turn\n{{ x }}\n\nUSER:\nTwo.\nassistant:\nThree"
    prompts = make(
        tmp_path,
        qa__ask=f"{{% block dialogue %}}{text}{{% endblock %}}",
        qa__bad="{% block dialogue %}Hello\nUSER:\n{% endblock %}",
    )
    assert [(message.role, message.content) for message in prompts.render("ask", {"x": "see User:\nnow"})] == [
        ("user", "One.\n\nUSER: not a turn\nsee "),
        ("user", "now\n\n"),
        ("user", "Two.\n"),
        ("assistant", "Three"),
    ]
    assert prompts.is_dialogue("ask")
    with pytest.raises(ConfigError, match="does not begin with USER:"):
        prompts.render("bad", {})
