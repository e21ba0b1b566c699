"""The single-turn agent: what it asks, and how a reply becomes an answer."""

import json

import pytest

from ace_bench.agents.sandbox import REFUSED, Sandbox
from ace_bench.agents.single_turn import SingleTurn
from ace_bench.contexts.base import NoContext
from ace_bench.contexts.cheatsheet import Cheatsheet
from ace_bench.core.errors import ConfigError, RolloutFault
from ace_bench.core.types import Fault, GeneratorSpec, Sample
from ace_bench.playbook.playbook import Playbook
from ace_bench.store.prompts import PromptSet
from tests.agents.world import Replies
from tests.launching import ROOT
from tests.playbook.making import playbook

PROMPTS = PromptSet(ROOT / "prompts" / "default", task="finer", prompt_group="qa")
SAMPLE = Sample(id="s", split="test", inputs={"background": "Shared text. ", "question": "How much?"})
STRUCTURED = GeneratorSpec(template="generator", answer_format="json")
PLAIN = GeneratorSpec(template="base", answer_format="text")
TAGGED = GeneratorSpec(template="cheatsheet", answer_format="xml", code_runs=2)


def solve(lm, generator=STRUCTURED, context=None, *, reflection=None, prompts=PROMPTS, **settings):
    sandbox = Sandbox(seconds=3, memory_mib=256, output_chars=500)
    chosen = {"parse_replies": "lenient", "scaffold": "own", **settings}
    agent = SingleTurn(prompts=prompts, generator=generator, sandbox=sandbox, **chosen)
    return agent.solve(SAMPLE, None, Playbook.start(["others"]) if context is None else context, lm, reflection)


def test_reasoning_and_cited_bullets_are_kept():
    reply = {"reasoning": "as in o-1", "bullet_ids": ["others-00001", "nonsense"], "final_answer": "x"}
    attempt = solve(Replies(f"Here you are:\n```json\n{json.dumps(reply)}\n```"))
    assert (attempt.reasoning, attempt.cited) == ("as in o-1", ("others-00001", "nonsense"))
    assert attempt.trajectory == ()


@pytest.mark.parametrize("scaffold", ["answer_alone", "json"])
@pytest.mark.parametrize("generator", [STRUCTURED, PLAIN, TAGGED])
def test_a_scaffold_asks_all_methods_for_one_form_of_reply(scaffold, generator):
    context = {STRUCTURED: None, PLAIN: NoContext(), TAGGED: Cheatsheet(text="")}[generator]
    lm = Replies(json.dumps({"final_answer": "5"}) if scaffold == "json" else "5")
    assert solve(lm, generator, context, scaffold=scaffold).answer == "5"
    (prompt,) = lm.texts
    assert ('"final_answer":' in prompt) == (scaffold == "json")
    assert "<answer>" not in prompt
    assert "step by step" not in prompt or scaffold == "json"


def test_prompts_without_a_scaffolds_form_are_refused(tmp_path):
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa" / "base.j2").write_text("{% block user %}{{ question }}{% endblock %}")
    mine = PromptSet(tmp_path, task="finer", prompt_group="qa")
    with pytest.raises(ConfigError, match="template base of these prompts has no such form"):
        solve(Replies("5"), PLAIN, NoContext(), prompts=mine, scaffold="json")


@pytest.mark.parametrize(
    "unreadable", ["no JSON at all", '{"reasoning": "no answer"}', '{"final_answer": null}', '{"final_answer": {}}', ""]
)
def test_an_unreadable_reply_is_asked_for_once_more_with_the_reason(unreadable):
    lm = Replies(unreadable, '{"final_answer": "x"}')
    assert solve(lm).answer == "x"
    assert lm.texts[1].startswith(lm.texts[0])
    assert "could not be read" in lm.texts[1]

    with pytest.raises(RolloutFault) as caught:
        solve(Replies(unreadable, unreadable))
    assert (caught.value.fault.owner, caught.value.fault.kind) == ("model", "unreadable_reply")


def test_the_raw_reply_is_kept_for_prompts_that_show_it_whole():
    said = 'So. {"reasoning": "r", "final_answer": "x",}'
    assert solve(Replies(said)).reply == said


def fail(kind):
    def lm(*_):
        raise RolloutFault(Fault(owner="model", kind=kind, message="nothing"))

    return lm


def test_official_replies_are_asked_for_once_and_always_answer():
    attempt = solve(Replies("By [calc-00001]: 5"), parse_replies="official")
    assert (attempt.answer, attempt.reasoning, attempt.reply) == (
        "No final answer found",
        "By [calc-00001]: 5",
        "By [calc-00001]: 5",
    )
    assert (attempt.cited, attempt.counters) == (("calc-00001",), {"without_answer": 1})
    assert solve(Replies('{"final_answer": ["a", 1]}'), parse_replies="official").answer == "['a', 1]"
    assert solve(Replies(""), parse_replies="official").answer == "No final answer found"
    silent = solve(fail("no_content"), parse_replies="official")
    assert silent.answer == "No final answer found"
    assert silent.reply.startswith("INCORRECT_DUE_TO_EMPTY_RESPONSE, INCORRECT")
    with pytest.raises(RolloutFault, match="breaks off"):
        solve(Replies("[" * 100_000), parse_replies="official")


def test_a_plain_reply_is_the_answer_and_an_empty_one_a_fault():
    lm = Replies("  Cash,Debt \n")
    assert solve(lm, generator=PLAIN, context=NoContext()).answer == "Cash,Debt"
    assert lm.texts == ["Shared text. How much?"], "the base prompt is the task's own and nothing else"
    with pytest.raises(RolloutFault) as caught:
        solve(Replies(" \n"), generator=PLAIN, context=NoContext())
    assert caught.value.fault.kind == "empty_reply"


def test_the_prompt_shows_playbook_and_reflection():
    lm = Replies('{"final_answer": "x"}', '{"final_answer": "x"}')
    context = playbook("count the zeros")
    solve(lm, context=context)
    solve(lm, context=context, reflection="you forgot a zero")
    first, second = lm.texts
    assert context.bullets[0].line in first
    assert "<reflection>\n(none)\n</reflection>" in first
    assert "<reflection>\nyou forgot a zero\n</reflection>" in second


def test_a_prompt_with_the_raw_reflection_tells_an_empty_one_from_none(tmp_path):
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa" / "generator.j2").write_text("{% block user %}[{{ raw_reflection }}]{% endblock %}")
    prompts = PromptSet(tmp_path, task="finer", prompt_group="qa")
    lm = Replies(*['{"final_answer": "x"}'] * 2)
    for reflection in (None, ""):
        solve(lm, reflection=reflection, parse_replies="official", prompts=prompts)
    assert lm.texts == ["[(empty)]", "[]"]


def test_a_reply_in_tags_without_an_answer_is_counted():
    for text, answer in (("I think. <answer>Cash</answer>", "Cash"), ("no tag at all", None)):
        attempt = solve(Replies(text), generator=TAGGED, context=Cheatsheet())
        assert (attempt.answer, attempt.reasoning) == (answer, text)
        assert attempt.counters == {"code_runs": 0, "without_answer": int(answer is None)}


def block(code):
    return f"Let me see.\n```python\n{code}\n```\nEXECUTE CODE!\nOutput: made up"


def test_code_is_run_and_its_output_shown_as_often_as_the_method_allows():
    lm = Replies(block("print(6 * 7)"), block("1 / 0"), block("print('third')") + "<answer>42</answer>")
    attempt = solve(lm, generator=TAGGED, context=Cheatsheet())
    if attempt.trajectory[0].observation == REFUSED:
        pytest.skip("this machine cannot confine code")
    assert [turn.action for turn in attempt.trajectory] == ["print(6 * 7)", "1 / 0"]
    assert attempt.trajectory[0].observation == "42"
    assert "ZeroDivisionError" in attempt.trajectory[1].observation
    assert attempt.answer == "42"
    assert attempt.counters["code_runs"] == 2
    first, second, third = lm.texts
    assert second.startswith(first)
    assert third.startswith(second)
    assert "made up" not in third
    assert "no more code will be run" in third.removeprefix(second)
    assert "no more code will be run" not in second


def test_a_template_may_write_the_turn_that_asked_for_code_itself(tmp_path):
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa" / "cheatsheet.j2").write_text("{% block user %}{{ question }}{% endblock %}")
    said = (
        "{% block assistant_exact_1 %}{{ shown }} Done.{% endblock %}{% block user_exact_2 %}It has run.{% endblock %}"
    )
    (tmp_path / "qa" / "executed.j2").write_text(said)
    lm = Replies(block("print(1)"), "<answer>1</answer>")
    prompts = PromptSet(tmp_path, task="finer", prompt_group="qa")
    attempt = solve(lm, generator=TAGGED, context=Cheatsheet(), prompts=prompts)
    asked = "Let me see.\n```python\nprint(1)\n```\nEXECUTE CODE! Done."
    assert lm.prompts[1] == [("user", "How much?"), ("assistant", asked), ("user", "It has run.")]
    assert attempt.reply == f"{asked}\n\n<answer>1</answer>"


def test_without_code_the_prompt_does_not_offer_it_and_nothing_is_run():
    lm = Replies(block("print(1)") + "<answer>1</answer>")
    spec = GeneratorSpec(template="cheatsheet", answer_format="xml")
    attempt = solve(lm, generator=spec, context=Cheatsheet(text="- add"))
    assert attempt.trajectory == ()
    assert "EXECUTE" not in lm.texts[0]
    assert "<cheatsheet>\n- add\n</cheatsheet>" in lm.texts[0]


@pytest.mark.parametrize(
    ("reply", "lenient", "official"),
    [
        ("<answer>5</answer>", "5", "<answer>5</answer>"),
        ("<Output>\n5\n</Output>", "5", "<Output>\n5\n</Output>"),
        ("<answer>5</answer> or <answer>6</answer>", *["<answer>5</answer> or <answer>6</answer>"] * 2),
    ],
)
def test_an_answer_alone_may_stand_between_tags(reply, lenient, official):
    for rules, answer in (("lenient", lenient), ("official", official)):
        assert solve(Replies(reply), PLAIN, NoContext(), parse_replies=rules).answer == answer
