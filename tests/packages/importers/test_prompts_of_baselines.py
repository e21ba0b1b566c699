"""Prompts of Dynamic Cheatsheet and StreamBench as prompt sets: the words are of this test, the form is theirs."""

from functools import partial

import pytest

from ace_bench.cli.main import start
from ace_bench.contexts.cheatsheet import PastRollout
from ace_bench.contexts.instruction import Demonstration, Demonstrations
from ace_bench.core.resources import prompt_folders
from ace_bench.core.types import Sample
from ace_bench.store.calls import read_calls
from ace_bench.store.prompts import PromptSet
from ace_field.stream_memory import Memory, MemoryEntry
from tests.launching import launch
from tests.packages.importers import stand_ins


@pytest.fixture
def cheatsheet(tmp_path):
    return stand_ins.write_checkout("cheatsheet", tmp_path / "checkout")


def test_the_cheatsheets_prompts_keep_every_byte_and_labels_follow_the_answer(cheatsheet, tmp_path):
    assert start("prompts", [str(cheatsheet), str(tmp_path / "out")]) == 0
    prompts = PromptSet(tmp_path / "out", task="finer", prompt_group="qa")

    def shown(role, **fields):
        given = {"background": "b ", "question": "q?", "feedback": "", "gold": None, "reply": "r", "left": 2}
        return [(one.role, one.content) for one in prompts.render(role, given | fields)]

    assert shown("cheatsheet", cheatsheet="[[QUESTION]]") == [
        ("user", "Solve it {{ so }}.\n[[QUESTION]]\n---\nb q?\n<answer>x</answer>\n")
    ]
    form = "<cheatsheet></cheatsheet>"
    assert shown("cheatsheet_curator", cheatsheet="") == [("user", f"Old: (empty) | b q? | r {form}")]
    told = f"Old: c | b q? | r\n\nFeedback: wrong\n\nReference answer: g {form}"
    assert shown("cheatsheet_curator", cheatsheet="c", feedback="wrong", gold="g") == [("user", told)]
    past = [
        {"episode": PastRollout(question=f"q{n}", output=f"o{n}", reference="g" * n), "similarity": n / 3}
        for n in range(2)
    ]
    solutions = (
        "# SO FAR\n\nWith care.\n\n## 1 (0.00)\nb q0\no0\n---\n\n"
        "## 2 (0.33)\nb q1\no1\n\nReference answer: g\n---\n\n# END"
    )
    assert shown("cheatsheet_synthesis", cheatsheet="c", retrieved=past) == [("user", f"Old: c | {solutions} | b q?")]
    code = "Look:\n```python\n1\n```   EXECUTE CODE!"
    said = "Look:\n```python\n1\n```\nEXECUTE CODE!\n\nIt printed\n5\nand no more"
    assert shown("executed", shown=code, output="5") == [("assistant", said), ("user", "Go on.")]
    assert shown("executed", shown=code, output="5", left=1)[-1] == ("user", "Go on. (The last time.)")


def test_ddxplus_is_asked_with_their_words_and_diagnoses(tmp_path):
    stream_bench = stand_ins.write_checkout("stream_bench", tmp_path / "checkout")
    assert start("prompts", [str(stream_bench), str(tmp_path / "out")]) == 0
    prompts = PromptSet(tmp_path / "out", task="ddxplus", prompt_group="qa")
    options = "0. Cold\n1. Guillain-Barré {syndrome}"
    items = (Demonstration(question="p1\n  x", answer="0. Cold"), Demonstration(question="p2", answer="1. G"))
    sample = Sample(id="s", split="test", inputs={"background": "ours", "question": "Age: 5  \n - cough"})
    fields = {**sample.inputs, "scaffold": "own", **Demonstrations(items=items).render(sample)}
    (base,), (shots,) = prompts.render("base", fields), prompts.render("demonstrated", fields)
    assert base.content == f"Who is ill?\nAge: 5\n- cough\nOf these or none:\n{options}"
    examples = "p1\n  x\nIt was 0. Cold\n\n\np2\nIt was 1. G"
    entries = (MemoryEntry(question="p3", rationale="hot", answer="0. Cold", correct=False),)
    (told,) = prompts.render("remembered", {**fields, **Memory(entries=entries).render(sample)})
    assert "\n\np3\nRationale: hot\nYou said 0. Cold\nYour answer is not correct\n\nAnd" in told.content
    assert prompts.render("remembered", {**fields, **Memory().render(sample)}) == (base,)
    memories = (Memory().render(sample), Memory(entries=entries, verdicts=False).render(sample))
    first, later = (prompts.render("remembered", {**fields, **one, "scaffold": "json"})[0] for one in memories)
    assert first.content == f'Think. Age: 5\n- cough {options} {{"rationale": "", "answer": ""}}'
    assert later.content == f"Think. Age: 5\n- cough p3\nRationale: hot\nIt was 0. Cold {options}"
    assert shots.content == f"{options}\nSuch as:\n\n{examples}\n\nAnd Age: 5\n- cough?"


ASKED = {
    "qa/inducer": "Induce {it}.\n\nLike so.\n\n# From\n\ne1\n\ne2\n\n# To",
    "qa/experience": "Q q?\n<r|a>",
    "agent/experience": "Q q?\nsteps",
    "qa/extractor": "Q q?: <r|a> It succeeded: why",
    "qa/contrast": "Q q?\nNo 1:\none\n\nNo 2:\ntwo\n\n",
    "qa/self_reflection": "Eg. b q?\nThought: r\nAction: Finish[a]\nObservation: Answer is INCORRECT Why?",
    "agent/self_reflection": "Two. q?\nsteps Before:\nTrial #0: n\n Now?",
}


def test_memories_ask_with_their_words_and_our_fields(tmp_path):
    named = ("awm", "reasoning_bank", "reflexion")
    checkouts = [str(stand_ins.write_checkout(name, tmp_path / name)) for name in named]
    assert start("prompts", [*checkouts, str(tmp_path / "out")]) == 0
    defaults = [folder / "default" for folder in prompt_folders()]
    given = {"background": "b", "question": "q?", "reasoning": "r", "answer": "a", "success": True, "reasons": "why"}
    given["attempts"] = [{"reply": "one", "trajectory": ""}, {"reply": "two", "trajectory": ""}]
    for name, text in ASKED.items():
        group, role = name.split("/")
        steps = "steps" if group == "agent" else ""
        more = {"trajectory": steps, "experiences": ["e1", "e2"], "reflections": "Trial #0: n"}
        prompts = PromptSet(tmp_path / "out", *defaults, task="finer", prompt_group=group)
        messages = prompts.render(role, given | more)
        assert messages[-1].content == text
        said = {"extractor": ["Well {done}"], "contrast": ["All {x}"]}
        assert [one.content for one in messages[:-1] if role in said] == said.get(role, [])


CURATOR, AGENT = "ace/prompts/curator.py", "experiments/code/ace/adaptation_react.py"
CHEATSHEET, DDXPLUS = "prompts/generator_prompt.txt", "stream_bench/benchmarks/ddxplus.py"
MODEL = "dynamic_cheatsheet/language_model.py"
APPS = "experiments/prompts"
WRONG = [  # a checkout, its file, what is changed in it (None: it is gone), and what is said
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "", "GENERATOR_PROMPT: fewer than 4 placeholders"),
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "{} {}", "unknown placeholder"),
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "{", "not a format string"),
    ("small_finance", "ace/prompts/generator.py", "GENERATOR_PROMPT", "A", "assigns no text to GENERATOR_PROMPT"),
    ("small_finance", CURATOR, "{playbook_stats}", "{other}", "unknown placeholder: {other}"),
    ("small_finance", "ace/prompts/reflector.py", "REFLECTOR_PROMPT = ", "def (", "not valid Python"),
    ("appworld", f"{APPS}/look_after.txt", None, "", "no file looks like the Curator; name it with --curator"),
    ("appworld", f"{APPS}/study.txt", "{{test_report}}", "{{other}}", "unknown placeholder: {{other}}"),
    ("appworld", f"{APPS}/look_after.txt", "{guidebook}", "{other}", "unknown placeholder: {other}"),
    ("appworld", f"{APPS}/with_playbook.txt", "I look.", "{% if x %}", "not a placeholder"),
    ("appworld", AGENT, None, "", "adaptation_react.py cannot be read"),
    ("appworld", AGENT, "def truncate_output", "def other", "has no function truncate_output"),
    ("appworld", AGENT, '"Do better."', "better", "is not of the form of"),
    ("cheatsheet", CHEATSHEET, "[[QUESTION]]", "", "generator_prompt.txt: no placeholder [[QUESTION]]"),
    ("cheatsheet", CHEATSHEET, "[[QUESTION]]", "[[QUESTION]] [[X]]", "an unknown placeholder: X"),
    ("cheatsheet", "prompts/curator_prompt_for_dc_cumulative.txt", None, "", "dc_cumulative.txt cannot be read"),
    ("cheatsheet", MODEL, "def generate", "def other", "has no function generate"),
    ("cheatsheet", MODEL, "{similarity:.2f}", "", "words no earlier solutions"),
    ("cheatsheet", "dynamic_cheatsheet/utils/execute_code.py", "{python_output}", "", "no texts around the output"),
    ("stream_bench", DDXPLUS, "LABEL2TEXT = {", "LABELS = {", "has no list of diagnoses LABEL2TEXT"),
    ("stream_bench", DDXPLUS, "'Cold'", "name()", "LABEL2TEXT holds more than numbers and names"),
    ("stream_bench", DDXPLUS, "{profile}", "{patient}", "get_cot_prompt: an unknown placeholder: patient"),
    ("stream_bench", DDXPLUS, 'f"""\\\n        Who', '"""\\\n        Who', "get_zeroshot_prompt has no f-string"),
    ("awm", "webarena/induce_prompt.py", '"# To"', "", "no heading before the examples and one behind them"),
    ("awm", "webarena/induce_prompt.py", "{t}|", "", "format_trajectory words no thought and action"),
    ("reasoning_bank", "WebArena/induce_memory.py", "{status_label}", "", "main has no text with status_label"),
    ("reflexion", "alfworld_runs/generate_reflections.py", 'query += " Now?"', "pass", "no earlier plans and no end"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[-1][:40])
def test_a_checkout_of_another_form_is_one_sentence_and_nothing_is_written(case, tmp_path, capsys):
    name, file, old, new, message = case
    write = stand_ins.appworld if name == "appworld" else partial(stand_ins.write_checkout, name)
    path = write(tmp_path / "checkout") / file
    if old is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    assert start("prompts", [str(tmp_path / "checkout"), str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_with_the_cheatsheets_prompts_asks_with_them(cheatsheet, tmp_path):
    assert start("prompts", [str(cheatsheet), str(tmp_path / "out")]) == 0
    settings = ("task=formula", "method=dc", "task.source=sample", "limit=2", f"prompts={tmp_path / 'out'}")
    ran = launch(tmp_path / "runs", *settings, "mode.epochs=1", "labels=none")
    assert not any(ran.metrics["faults"].values())
    requests = [record.request for record in read_calls(ran.folder)]
    first = [request.messages[0].content.partition("\n")[0] for request in requests if request is not None]
    assert {text[:5] for text in first} == {"Solve", "Old: "}
