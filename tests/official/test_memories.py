"""``method.protocol=authors``: memories ask and remember, call by call, as the authors' code does."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ace_bench.cli.main import start
from ace_bench.store.prompts import PromptSet
from ace_bench.tasks.ddxplus import CONDITIONS, answer_of
from ace_field.reflexion import keep_note, show_reflector
from tests.official import ours
from tests.official.authors import checkout, induce, run_attempts, run_memory
from tests.official.comparing import compare
from tests.official.serving import Reply, draw_by, serving
from tests.runners.scripted import Scripted, answer, gold, play

pytestmark = pytest.mark.official

_TOP_K = 4
_ONLINE = ("mode=online", "mode.before=false", "mode.shuffle=false", "method.protocol=authors")
_WORDS = ("cough", "{braces}", "\\d+", "chest pain", "2\\n weeks,", "100%", "naïve;", "smokes", "--", "{{ Peru }}")


def _rows(number: int) -> list[dict[str, str]]:
    draw = random.Random(3)

    def row(place: int) -> dict[str, str]:
        case = draw.randrange(len(CONDITIONS))
        lines = [" ".join(draw.choices(_WORDS, k=6)) for _ in range(3)]
        profile = f"  Patient {place}: case {case}\n" + "\n".join(f"  - {line} " for line in lines)
        return {"PATIENT_PROFILE": profile, "PATHOLOGY": CONDITIONS[case]}

    return [row(place) for place in range(number)]


def _diagnose(messages: Sequence[dict[str, str]]) -> Reply:
    """Right in two of three cases; with a rationale where the prompt asks for one."""
    case = int(re.findall(r"case (\d+)", messages[-1]["content"])[-1])
    draw = draw_by(messages, "model")
    diagnosis = answer_of(case if draw.random() < 2 / 3 else draw.randrange(len(CONDITIONS)))
    if "<your_rationale>" not in messages[-1]["content"]:
        return Reply(diagnosis)
    said = json.dumps({"rationale": f"{draw.choice(_WORDS)}\n {{x}}", "answer": diagnosis})
    return Reply(f"Step by step:\n{said}")


@pytest.mark.parametrize(
    ("agent", "method", "settings"),
    [
        ("self_stream_icl", "self_stream_icl", ()),
        ("mem_prompt", "mem_prompt", ()),
        ("self_stream_icl_cot", "self_stream_icl", ("agent.scaffold=json",)),
    ],
)
def test_each_call_equals_the_authors(agent: str, method: str, settings: Sequence[str], tmp_path: Path) -> None:
    code = checkout("stream-bench")
    rows = _rows(40)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    data = tmp_path / "data"
    data.mkdir()
    for split, of in {"train": _rows(1), "val": _rows(1), "test": rows}.items():
        (data / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
    with serving(_diagnose) as server:
        expected = run_memory(code, tmp_path, server.url, agent=agent, top_k=_TOP_K)
        done = ours.run(
            code, tmp_path, server.url, "task=ddxplus", f"task.data_dir={data}", "task.train_size=null",
            "task.test_seed=null", "labels=correctness", "mode=online", "mode.shuffle=false", "mode.before=false",
            "embedder=hashing", f"method.top_k={_TOP_K}", "method.protocol=authors", *settings,
            method=method, protocol="paper",
        )  # fmt: skip
    assert compare(expected, ours.spoken_calls(done)) == len(rows)


def _imported(code: Path, folder: Path) -> Path:
    """Make a prompt set from a checkout."""
    assert start("prompts", [str(code), str(folder)]) == 0
    return folder


def _attempt(right: Sequence[bool], call: Any) -> Any:
    """Answer a sample as ``right`` says of its number."""
    place = int(call.sample[-1])
    return answer(gold(call.sample) if right[place] else f"guess {place}")


def test_awm_induces_from_the_attempts_that_the_authors_show(tmp_path: Path) -> None:
    code = checkout("agent-workflow-memory")
    right = [False, True, False, True, True, False, True]

    prompts = _imported(code, tmp_path / "set")
    script = Scripted(generator=partial(_attempt, right), inducer=lambda _: {"workflows": []})
    settings = (*_ONLINE, "labels=correctness", f"prompts={prompts}")
    play(tmp_path, *settings, script=script, method="awm", test=len(right))
    attempts = [_webarena(n, won) for n, won in enumerate(right)]
    theirs = induce("induce_prompt", code, tmp_path, attempts)["calls"]
    expected = [prompt for prompt, won in zip(theirs, right, strict=True) if won]
    ours_ = [call.prompt for call in script.of("inducer")]
    (form,) = {prompt.removesuffix(one) for prompt, one in zip(ours_, expected, strict=True)}
    assert form.endswith('"<second step>"]}]}\n')


@pytest.mark.parametrize("labels", ["correctness", "none"])
def test_reasoning_bank_extracts_and_keeps_what_the_authors_do(labels: str, tmp_path: Path) -> None:
    code = checkout("reasoning-bank")
    right = [False, True, True, False, True]
    replies = [f"# Memory Item 1\n## Title t{n}\n\n## Content\n\n\n{{{{ {n} }}}} \\d\n\n" for n in range(len(right))]
    judged = ["" if labels == "correctness" else f"It is {won} that {n}." for n, won in enumerate(right)]
    prompts = _imported(code, tmp_path / "set")

    script = Scripted(
        generator=partial(_attempt, right),
        extractor=lambda call: replies[int(call.sample[-1])],
        self_judge=lambda call: {"reasoning": judged[int(call.sample[-1])], "success": right[int(call.sample[-1])]},
    )
    settings = (*_ONLINE, f"labels={labels}", f"prompts={prompts}")
    play(tmp_path, *settings, script=script, method="reasoning_bank", test=len(right))
    attempts = [
        {**_webarena(n, won), "judged": why, "reply": reply}
        for n, (won, why, reply) in enumerate(zip(right, judged, replies, strict=True))
    ]
    theirs = induce("induce_memory", code, tmp_path, attempts)
    calls = [call.prompt for call in script.of("extractor")]
    assert calls == [f"{call['system']}\n{call['prompt']}" for call in theirs["calls"]]
    assert {call["temperature"] for call in theirs["calls"]} == {1.0}
    kept = ["\n\n".join(parts).strip() for parts in theirs["stored"]]
    for number, call in enumerate(script.of("generator")[1:], 1):
        shown = call.prompt.partition("<memory_items>\n")[2].partition("\n</memory_items>")[0]
        assert shown in kept[:number]


def test_reflexion_reflects_and_shows_notes_as_the_authors_do(tmp_path: Path) -> None:
    code = checkout("reflexion")
    right_at = [0, 2, 3, 9]
    prompts = _imported(code, tmp_path / "set")

    def attempt(sample: str, trial: int) -> str:
        return gold(sample) if trial >= right_at[int(sample[-1])] else f"guess {trial}"

    def note(sample: str, trial: int) -> str:
        return f"  On {sample}:\n try {trial + 1} {{x}}\n"

    script = Scripted(
        generator=lambda call: answer(attempt(call.sample, call.trial)),
        reflector=lambda call: note(call.sample, call.trial),
    )
    settings = (*_ONLINE[:1], *_ONLINE[2:], "labels=correctness", "method.trials=4", f"prompts={prompts}")
    play(tmp_path, *settings, "concurrency=1", script=script, method="reflexion", test=len(right_at))
    names = [f"toy-test-{n}" for n in range(len(right_at))]
    attempts = [
        {
            "query": f"ask {name}?", "key": gold(name), "steps": "> look {x}\nNothing.",
            "trials": [
                {"thought": f"thought of {text}", "action": text, "note": note(name, trial)}
                for trial in range(4) for text in [attempt(name, trial)]
            ],
        }
        for name in names
    ]  # fmt: skip
    theirs = run_attempts("authors_reflexion.py", code, tmp_path, attempts)
    reflected = [call.prompt for call in script.of("reflector")]
    assert reflected == theirs["reflections"]
    shown = [
        call.prompt.partition("<reflection>\n")[2].partition("\n</reflection>")[0] for call in script.of("generator")
    ]
    assert [text for text in shown if text] == [text.partition("Reflections:\n")[2] for text in theirs["shown"]]
    agents, acting = PromptSet(prompts, task="appworld", prompt_group="agent"), list[str]()
    for one in attempts:
        notes = [keep_note(trial["note"], authors=True, acts=True) for trial in one["trials"]]
        for number in range(len(notes)):
            earlier = show_reflector(notes[:number][-3:], authors=True, acts=True)
            fields = {"question": one["query"], "trajectory": one["steps"], "reflections": earlier}
            acting += [message.content for message in agents.render("self_reflection", fields)]
    assert acting == theirs["acting"]


def _webarena(place: int, won: bool) -> dict[str, Any]:
    text = f"gold of toy-test-{place}" if won else f"guess {place}"
    return {"query": f"ask toy-test-{place}?", "thought": f"thought of {text}", "action": text, "success": won}
