"""Thoughts change nothing: not what is read of a reply, whatever its form, and not the score of a run over HTTP."""

import json

import pytest

from ace_bench.agents.conversation import read_reply as read_action
from ace_bench.agents.single_turn import code_request, last_answer, read_reply
from ace_bench.backbones.embedded.server.serve import Handler, ReaderServer
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.thoughts import split_thoughts
from ace_bench.tasks.bird_sql.questions import sql_of
from tests.backbones.serving import over_http, running
from tests.launching import launch

MARKS = {
    "tags": "<think>{draft}</think>{reply}",
    "upper case": "<THINK>\n{draft}\n</THINK>\n\n{reply}",
    "other names": "<thinking>{draft}</thinking>\n<reflection>{draft}</reflection>\n{reply}",
    "a namespace": "<seed:think>{draft}</seed:think>{reply}",
    "opened by the template": "{draft}\n</think>\n\n{reply}",
    "opened by the template, glued": "{draft}.</think>{reply}",
    "blocks in blocks": "<think>a <think>{draft}</think> b</think>{reply}",
    "brackets": "[THINK]{draft}[/THINK]{reply}",
    "triangles": "◁think▷{draft}◁/think▷{reply}",
    "tokens": "<|begin_of_thought|>{draft}<|end_of_thought|>\n\n<|begin_of_solution|>\n{reply}\n<|end_of_solution|>",
    "wide tokens": "<｜begin▁of▁thought｜>{draft}<｜end▁of▁thought｜>{reply}<｜end▁of▁sentence｜>",
    "Command A": "<|START_THINKING|>{draft}<|END_THINKING|><|START_RESPONSE|>{reply}<|END_RESPONSE|>",
    "Granite": "Here is my thought process: {draft}\nHere is my response: {reply}",
    "channels": "<|channel|>analysis<|message|>{draft}<|end|>"
    "<|start|>assistant<|channel|>final<|message|>{reply}<|return|>",
    "channels without tokens": "analysis{draft}assistantfinal{reply}",
    "Gemma 4": "<|channel>thought\n{draft}<channel|>{reply}<turn|>",
    "an end of turn": "{reply}<|im_end|>",
}
DRAFT = """It could be "5" of <b>them</b>: {"reasoning": "an idea", "final_answer": "rejected4711", "key_insight":
"rejected4711", "operations": [{"type": "ADD", "section": "others", "content": "rejected4711"}]}
```python
print("rejected4711")
```EXECUTE CODE!
```sql
SELECT 'rejected4711'
```
<answer>rejected4711</answer> <cheatsheet>rejected4711</cheatsheet> The final answer is: rejected4711"""

FORMS = {
    "text": (str.strip, "DebtInstrument"),
    "JSON": (read_reply, '{"reasoning": "so", "bullet_ids": ["a-00001"], "final_answer": "A"}'),
    "JSON in a fence": (read_reply, '```json\n{"reasoning": "so", "final_answer": "A"}\n```'),
    "a sentence": (read_reply, "I add them.\nThe final answer is: 12"),
    "tags": (last_answer, "I add them.\n<answer>\n12\n</answer>"),
    "code that is asked for": (code_request, "Let me see.\n```python\nprint(12)\n```\nEXECUTE CODE!"),
    "no code that is asked for": (code_request, "I know it.\n<answer>12</answer>"),
    "the code of an agent": (read_action, "First I look.\n\n```python\nprint(apis.spotify.show_account())\n```"),
    "a query": (sql_of, "SELECT name FROM t WHERE a = '</think>'"),
    "a query in a fence": (sql_of, "```sql\nSELECT name FROM t\n```"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mark", MARKS)
def test_a_reply_reads_the_same_with_thoughts_in_front(mark, form):
    read, reply = FORMS[form]
    said = split_thoughts(MARKS[mark].replace("{draft}", DRAFT).replace("{reply}", reply)).said
    assert said == reply
    assert read(said) == read(reply)


class Thinking(Handler):
    """Thinks before each reply, with another mark each time."""

    def _answer(self, body, number, fault):
        request, answer = super()._answer(body, number, fault)
        marks = [*MARKS.values()]
        mark = marks[int(digest_of_text(body.decode())[:8], 16) % len(marks)]
        for choice in answer["choices"]:
            reply = choice["message"]["content"]
            choice["message"]["content"] = mark.replace("{draft}", DRAFT).replace("{reply}", reply)
        return request, answer


RUNS = {
    "text: base": ("task=finer", "method=base"),
    "text: icl": ("task=finer", "method=icl"),
    "text: self_stream_icl": ("task=finer", "method=self_stream_icl", "mode=online"),
    "JSON: ace": ("task=formula", "method=ace", "mode.epochs=1"),
    "tags and code: dc": ("task=formula", "method=dc", "mode=online"),
    "SQL: base": ("task=bird_sql", "method=base"),
    "code: base": ("task=appworld", "method=base", "limit=1"),
    "JSON by DSPy: gepa": ("task=finer", "method=gepa", "method.auto=null", "method.max_metric_calls=12"),
}


@pytest.mark.parametrize("name", [pytest.param(run, marks=pytest.mark.slow) if "code:" in run else run for run in RUNS])
def test_a_run_ends_alike_with_thoughts_in_front_of_every_reply(name, tmp_path):
    plain, thought = (_run(tmp_path / str(thinks), RUNS[name], thinks=thinks) for thinks in (False, True))
    for key in ("headline", "context", "faults", "unreadable_replies", "counters", "operations"):
        assert thought.metrics[key] == plain.metrics[key]
    assert not any(plain.metrics["thoughts"].values())
    calls = thought.metrics["calls"]["evaluate"]["generator"]
    assert calls // 2 <= thought.metrics["thoughts"]["evaluate"]["generator"]["replies"] <= calls
    assert "rejected4711" not in json.dumps(thought.lines("journal"))
    prompts = [message for line in thought.lines("calls") for message in line["request"].get("messages", [])]
    assert "rejected4711" not in json.dumps(prompts)


def _run(folder, settings, *, thinks):
    with running(ReaderServer(host="127.0.0.1", port=0)) as server:
        server.RequestHandlerClass = Thinking if thinks else Handler
        return launch(
            folder,
            *settings,
            "task.source=sample",
            *([] if "limit=1" in settings else ["limit=6"]),
            "embedder=hashing",
            *over_http(server.address),
        )
