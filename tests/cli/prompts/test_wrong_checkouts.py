"""A checkout whose files are not of the form that is known is refused in one sentence."""

from functools import partial

import pytest

from ace_bench.cli.main import start
from tests.cli.prompts import stand_ins

CURATOR, AGENT = "ace/prompts/curator.py", "experiments/code/ace/adaptation_react.py"
CHEATSHEET, DDXPLUS = "prompts/generator_prompt.txt", "stream_bench/benchmarks/ddxplus.py"
MODEL = "dynamic_cheatsheet/language_model.py"
APPS = "experiments/prompts"
WRONG = [  # a checkout, its file, what is changed in it (None: it is gone), and what is said
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "", "GENERATOR_PROMPT: fewer than 4 placeholders"),
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "{} {}", "unknown placeholder"),
    ("small_finance", "ace/prompts/generator.py", "| Context: {}", "{", "not a format string"),
    ("small_finance", "ace/prompts/generator.py", "GENERATOR_PROMPT", "A", "assigns no text to GENERATOR_PROMPT"),
    ("small_finance", CURATOR, "{playbook_stats}", "{other}", "unknown placeholder: other"),
    ("small_finance", "ace/prompts/reflector.py", "REFLECTOR_PROMPT = ", "def (", "not valid Python"),
    ("appworld", f"{APPS}/look_after.txt", None, "", "no file looks like the Curator; name it with --curator"),
    ("appworld", f"{APPS}/study.txt", "{{test_report}}", "{{other}}", "unknown placeholder: other"),
    ("appworld", f"{APPS}/look_after.txt", "{guidebook}", "{other}", "unknown placeholder: other"),
    ("appworld", f"{APPS}/with_playbook.txt", "I look.", "{% if x %}", "not a placeholder"),
    ("appworld", AGENT, None, "", "adaptation_react.py cannot be read"),
    ("appworld", AGENT, "def truncate_output", "def other", "has no function truncate_output"),
    ("appworld", AGENT, '"Do better."', "better", "is not of the form of"),
    ("cheatsheet", CHEATSHEET, "[[QUESTION]]", "", "generator_prompt.txt: no placeholder [[QUESTION]]"),
    ("cheatsheet", CHEATSHEET, "[[QUESTION]]", "[[QUESTION]] [[X]]", "an unknown placeholder: X"),
    ("cheatsheet", "prompts/curator_prompt_for_dc_cumulative.txt", None, "", "dc_cumulative.txt cannot be read"),
    ("cheatsheet", MODEL, "def generate", "def other", "has no function generate"),
    ("cheatsheet", MODEL, "{similarity:.2f}", "", "advanced_generate has no text with i + 1, similarity"),
    (
        "cheatsheet",
        "dynamic_cheatsheet/utils/execute_code.py",
        "{python_output}",
        "",
        "extract_and_run_python_code has no text with python_output",
    ),
    ("stream_bench", DDXPLUS, "LABEL2TEXT = {", "LABELS = {", "has no list of diagnoses LABEL2TEXT"),
    ("stream_bench", DDXPLUS, "'Cold'", "name()", "LABEL2TEXT holds more than numbers and names"),
    ("stream_bench", DDXPLUS, "{profile}", "{patient}", "get_cot_prompt: an unknown placeholder: patient"),
    ("stream_bench", DDXPLUS, 'f"""\\\n        Who', '"""\\\n        Who', "get_zeroshot_prompt has no f-string"),
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
