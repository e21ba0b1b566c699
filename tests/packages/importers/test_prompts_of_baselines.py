"""Prompts of Dynamic Cheatsheet and StreamBench as prompt sets: the words are of this test, the form is theirs."""

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

GENERATOR = "Solve it {{ so }}.\n[[CHEATSHEET]]\n---\n[[QUESTION]]\n<answer>x</answer>\n"
CURATOR = "Old: [[PREVIOUS_CHEATSHEET]] | [[QUESTION]] | [[MODEL_ANSWER]] <cheatsheet></cheatsheet>"
SYNTHESIS = "Old: [[PREVIOUS_CHEATSHEET]] | [[PREVIOUS_INPUT_OUTPUT_PAIRS]] | [[NEXT_INPUT]]"
MODEL = r"""
raise RuntimeError("never run")
class Model:
    def generate(self, flag, output_prefix, executed_code, depth):
        current_output = f"{output_prefix}\n{code_execution_flag}\n\n{executed_code}"
        warning_txt = ""
        if depth:
            warning_txt = f" (The last time.)"
        return {"role": "user", "content": f"Go on.{warning_txt}"}

    def advanced_generate(self, approach):
        if approach == "history":
            curated_cheatsheet = "# SO FAR\n\n"
            curated_cheatsheet += f"## {i+1}: {previous_input_txt} {previous_output_txt}"
            curated_cheatsheet += "# END"
        else:
            curated_cheatsheet = "# SO FAR\n\nWith care.\n\n"
            curated_cheatsheet += f"## {i+1} ({similarity:.2f})\n{previous_input_txt}\n{previous_output_txt}\n---\n\n"
            curated_cheatsheet += "\n\n# END"
"""
CODE = r"""
def extract_and_run_python_code(text):
    return f"It printed\n{python_output}\nand no more"
"""
DDXPLUS = r'''
class Bench:
    LABEL2TEXT = dict()

    @staticmethod
    def get_zeroshot_prompt(profile, option_text):
        prompt = textwrap.dedent(f"""\
        Who is ill?
        {profile}BLANKS
        Of these {{or none}}:
        {option_text}""")
        return strip_all_lines(prompt)

    def get_cot_prompt(profile, option_text):
        return strip_all_lines(f"""Think. {profile} {option_text} {{"rationale": "", "answer": ""}}""")

    def get_fewshotcot_template(profile, option_text):
        return strip_all_lines(f"""Think. {profile} {{fewshot_text}} {option_text}""")

    def get_shot_template(self):
        return strip_all_lines(textwrap.dedent(f"""\
        {{question}}
        It was {{answer}}"""))

    def get_memprompt_template(self):
        return strip_all_lines(textwrap.dedent(f"""\
        {{question}}
        You said {{answer}}
        {{correctness}}"""))

    def get_fewshot_template(self, profile, option_text):
        return textwrap.dedent(f"""\
        {option_text}
        Such as:

        {{fewshot_text}}

        And {profile}?""")

class Other(Bench):
    LABEL2TEXT = {
        0: 'Cold',
        1: 'Guillain-Barré {syndrome}',
    }
'''.replace("{{or none}}", "or none").replace("BLANKS", "   ")
QUERIES = r'''
def get_zeroshot_prompt(schema, question):
    return f"""{schema} {question}"""

def get_shot_template():
    return f"""{{question}}: {{answer}}"""

def get_memprompt_template():
    return f"""{{question}}: {{answer}}, {{correctness}}"""

def get_fewshot_template(schema, question):
    return f"""{schema} {{fewshot_text}} {question}"""
'''


@pytest.fixture
def cheatsheet(tmp_path):
    files = {
        "prompts/generator_prompt.txt": GENERATOR,
        "prompts/curator_prompt_for_dc_cumulative.txt": CURATOR,
        "prompts/curator_prompt_for_dc_retrieval_synthesis.txt": SYNTHESIS,
        "dynamic_cheatsheet/language_model.py": MODEL,
        "dynamic_cheatsheet/utils/execute_code.py": CODE,
    }
    return written(tmp_path / "checkout", files)


@pytest.fixture
def stream_bench(tmp_path):
    files = {"stream_bench/benchmarks/ddxplus.py": DDXPLUS, "stream_bench/benchmarks/text_to_sql.py": QUERIES}
    return written(tmp_path / "checkout", files)


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


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


def test_ddxplus_is_asked_with_their_words_and_diagnoses(stream_bench, tmp_path):
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


MEMORIES = {
    "webarena/prompt/instruction.txt": "Induce {it}.",
    "webarena/prompt/one_shot.txt": "Like so.",
    "webarena/induce_prompt.py": r"""
def format_trajectory(thoughts, actions):
    return f"<{t}|{acts}>"
def format_examples(examples):
    text = f"Q {ex['query']}\n{trajectory}"
    return "".join(["# From"] + [text] + ["# To"])
""",
    "WebArena/prompts/memory_instruction.py": (
        "SUCCESSFUL_SI = 'Well {done}'\nFAILED_SI = 'Badly'\nPARALLEL_SI = 'All {x}'"
    ),
    "WebArena/induce_scaling.py": r"""
def main():
    for i in range(2):
        if i == 0:
            text += f"Q {ex['query']}\n"
        text += f"No {i+1}:\n"
""",
    "WebArena/induce_memory.py": r"""
def format_trajectory(thoughts, actions):
    return f"<{t}|{acts}>"
def main():
    text = f"Q {ex['query']}: {trajectory}" + f" It {status_label}: {autoeval_thoughts}"
""",
    "hotpotqa_runs/prompts.py": "COT_REFLECT_INSTRUCTION = '{examples} {context} {question}{scratchpad} Why?'",
    "hotpotqa_runs/fewshots.py": "COT_REFLECT = 'Eg.'",
    "alfworld_runs/reflexion_few_shot_examples.txt": "Two.",
    "alfworld_runs/generate_reflections.py": r"""
def _generate_reflection_query(log, memory):
    query = f"{FEW_SHOT_EXAMPLES} {scenario}"
    if memory:
        query += " Before:\n"
    query += " Now?"
""",
}
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
    for repository in ("webarena", "WebArena", "hotpotqa_runs"):
        beside = "alfworld_runs" if repository == "hotpotqa_runs" else repository
        files = {name: text for name, text in MEMORIES.items() if name.split("/")[0] in (repository, beside)}
        written(tmp_path / repository, files)
    assert start("prompts", [*(str(folder) for folder in sorted(tmp_path.iterdir())), str(tmp_path / "out")]) == 0
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


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("prompts/generator_prompt.txt", ("[[QUESTION]]", ""), "generator_prompt.txt: no placeholder [[QUESTION]]"),
        ("prompts/generator_prompt.txt", ("[[QUESTION]]", "[[QUESTION]] [[X]]"), "an unknown placeholder: X"),
        ("prompts/curator_prompt_for_dc_cumulative.txt", None, "curator_prompt_for_dc_cumulative.txt cannot be read"),
        ("dynamic_cheatsheet/language_model.py", ("def generate", "def other"), "has no function generate"),
        ("dynamic_cheatsheet/language_model.py", ("{similarity:.2f}", ""), "words no earlier solutions"),
        ("dynamic_cheatsheet/utils/execute_code.py", ("{python_output}", ""), "no texts around the output of code"),
    ],
)
def test_a_checkout_of_another_form_is_one_sentence(*, file, change, message, cheatsheet, tmp_path, capsys):
    path = cheatsheet / file
    if change is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(*change))
    assert start("prompts", [str(cheatsheet), str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("LABEL2TEXT = {", "LABELS = {"), "has no list of diagnoses LABEL2TEXT"),
        (("'Cold'", "name()"), "LABEL2TEXT holds more than numbers and names"),
        (("{profile}", "{patient}"), "get_cot_prompt: an unknown placeholder: patient"),
        (('f"""\\\n        Who', '"""\\\n        Who'), "get_zeroshot_prompt has no f-string"),
    ],
)
def test_another_stream_bench_is_one_sentence(*, change, message, stream_bench, tmp_path, capsys):
    path = stream_bench / "stream_bench" / "benchmarks" / "ddxplus.py"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    assert start("prompts", [str(stream_bench), str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_a_run_with_the_cheatsheets_prompts_asks_with_them(cheatsheet, tmp_path):
    assert start("prompts", [str(cheatsheet), str(tmp_path / "out")]) == 0
    settings = ("task=formula", "method=dc", "task.source=sample", "limit=2", f"prompts={tmp_path / 'out'}")
    ran = launch(tmp_path / "runs", *settings, "mode.epochs=1", "labels=none")
    assert not any(ran.metrics["faults"].values())
    requests = [record.request for record in read_calls(ran.folder)]
    first = [request.messages[0].content.partition("\n")[0] for request in requests if request is not None]
    assert {text[:5] for text in first} == {"Solve", "Old: "}
