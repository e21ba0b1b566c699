"""The authors' finance loop runs on scripted replies: what the comparison stands on."""

import json
import urllib.request

import pytest

from tests.official.authors import checkout, run_finance
from tests.official.data import finance
from tests.official.replies import FinanceReplies, openings
from tests.official.serving import Reply, serving


def test_the_scripted_server_answers_by_the_prompt_and_names_what_it_cannot_answer():
    def ask(url, text):
        body = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
        with urllib.request.urlopen(f"{url}/chat/completions", json.dumps(body).encode()) as response:
            return json.load(response)["choices"][0]

    def script(messages):
        return Reply(messages[0]["content"].upper(), "length")

    with serving(script) as server:
        said = ask(server.url, "hello")
    assert (said["message"]["content"], said["finish_reason"]) == ("HELLO", "length")
    known = FinanceReplies({"generator": "You answer"}, {}, messy=False)
    with (
        pytest.raises(ValueError, match="'Something else'"),
        serving(known) as server,
        pytest.raises(urllib.error.HTTPError),
    ):
        ask(server.url, "Something else")


@pytest.mark.official
@pytest.mark.parametrize("messy", [False, True], ids=["clean", "messy"])
def test_the_authors_loop_learns_from_the_script(tmp_path, messy):
    code = checkout("ace")
    questions = finance("finer", train=6, val=2, test=2)
    questions.write(tmp_path)
    with serving(FinanceReplies(openings(code), questions.targets, messy=messy)) as server:
        theirs = run_finance(code, tmp_path, server.url, "--task_name", "finer", "--eval_steps", "3")
    assert [(step["epoch"], step["step"]) for step in theirs.steps] == [(1, n) for n in range(1, 7)]
    assert theirs.files["final_playbook.txt"] == theirs.steps[-1]["after"] != theirs.steps[0]["before"]
    assert {call["role"] for call in theirs.calls} == {"generator", "reflector", "curator"}
    assert len(theirs.evaluations) == 4  # test, two validations, test
