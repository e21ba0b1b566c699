"""`ace-bench learn` over logs that the real Inspect AI writes and reads."""

import json

import pytest

from ace_bench.api import load_run
from ace_traces.learn import main

pytest.importorskip("inspect_ai", reason="needs the extra inspect: make test-environments")

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, includes, scorer
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolError, tool

SAID = "It is Lima, where else would it be? " * 20 + "."
"""Long enough to be an attachment of the log."""


@tool
def atlas():
    async def execute(country: str):
        """Look a capital up.

        Args:
            country: Its name.
        """
        raise ToolError(f"no country {country}")

    return execute


@scorer(metrics=[accuracy()])
def unsure():
    async def score(state, target):
        return Score(value=float("nan"), explanation="nobody knows")

    return score


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["eval", "json"])
def test_each_sample_of_each_epoch_is_an_attempt_with_its_scores(form, tmp_path):
    made = [
        one
        for _ in range(4)
        for one in (
            ModelOutput.for_tool_call("mockllm/model", "atlas", {"country": "Peru"}),
            ModelOutput.from_content("mockllm/model", SAID),
        )
    ]
    outputs = [one.model_copy(update={"usage": ModelUsage()}) for one in made]  # else it loads a tokenizer from the web
    asked = Task(
        dataset=[
            Sample(id="peru", input="Capital of Peru?", target="Lima"),
            Sample(input="Of Kenya?", target="Nairobi"),
        ],
        solver=[system_message("You know geography."), use_tools(atlas()), generate()],
        scorer=[includes(), unsure()],
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    eval(asked, model=model, epochs=2, log_dir=f"{tmp_path}/logs", log_format=form, display="none", max_samples=1)
    for words, judged in (((), True), (("task.score=unsure",), False)):
        results = f"results={tmp_path}/{judged}"
        assert main([f"{tmp_path}/logs", results, *words]) == (0 if judged else 2)
    (folder,) = tmp_path.glob("True/*/*/*/seed0")
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    found = {line["sample"]: line for line in lines if line["kind"] == "rollout"}
    assert sorted(found) == ["2", "2,_epoch_2", "peru", "peru,_epoch_2"]
    (turn, last), grade = found["peru"]["attempt"]["trajectory"], found["peru"]["grade"]
    assert (turn["action"], turn["observation"]) == ("atlas(country='Peru')", "Error: no country Peru")
    assert last["thought"] == SAID
    assert (grade["score"], grade["gold"], found["2"]["grade"]["correct"]) == (1.0, "Lima", False)
    assert "nobody knows" in grade["report"]
    assert load_run(folder).score == 50.0


def test_a_file_that_is_no_log_is_one_sentence(tmp_path, capsys):
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04 cut")
    assert main([str(tmp_path / "a.eval"), f"results={tmp_path}"]) == 2
    assert "a.eval: not a log of Inspect AI" in capsys.readouterr().err
