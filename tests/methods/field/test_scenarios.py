"""What each memory leads to: every prompt about the last sample of a run, what is kept, and the counts of the run."""

import re
from itertools import chain

import pytest

from ace_bench.report.records import read_run
from tests.methods.field.making import BROKEN, Themed, even_right_as_text, item, learn, note_workflow
from tests.methods.playing import context_of
from tests.runners.scripted import answer, events, gold, steps

PARTS = re.compile(r"<(\w+)>\n.*?\n</\1>", re.DOTALL)
TEXTS = {"generator": even_right_as_text}


def guess(call):
    """Wrong in every trial, each time otherwise."""
    return answer(f"guess {call.trial}")


def note(call):
    return {"reflection": f"note {call.trial} on {call.sample}"}


def judge(call):
    """Says of samples 1 and 2, and of third attempts, that they succeeded."""
    return {"reasoning": f"because of {call.sample}", "success": call.sample[-1] in "12" or call.trial == 2}


def right_at(trials, lost=4):
    """Right from a trial on, by the number of the sample; others never. The trial ``lost`` is."""

    def generator(call):
        first = trials.get(int(call.sample[-1]), 9)
        return BROKEN if call.trial == lost else answer(gold(call.sample)) if call.trial >= first else guess(call)

    return generator


def draw(call):
    """The answer of most draws is B, or the earlier of two; all draws of sample 2 are lost."""
    drawn = ["aBb..c.", "xyyxzz?", "......."][int(call.sample[-1])][call.trial]
    return BROKEN if drawn == "." else answer(f"{drawn} " if drawn == "B" else drawn)


def lose_second(call):
    return BROKEN if call.trial == 1 else guess(call)


GUESSING = {"generator": guess, "reflector": note}


def write_lines(call):
    return f" note\n{call.trial} "


def write_markdown(call):
    return f"# Memory Item 1\n## Title of {call.sample}\n\n## Content {{x}}\n"


def induce_until_the_last(call):
    return "no" if call.sample.endswith("4") else note_workflow(call)


def note_two(call):
    return {"memory_items": [item(f"{name} of {call.sample}") for name in "ab"]}


THEMED = {"task": Themed, "test": 7}
BATCH = {"mode": "offline", "train": 6, "test": 1}
AGAIN = {"mode": "offline", "train": 3, "test": 1}
THREE = "method.top_k=3"
SCENARIOS = {  # a method, its labels and other settings, and the scripts of its roles
    "awm": ("awm", "correctness", "", {"test": 5}),
    "awm_authors": ("awm", "correctness", "method.protocol=authors", {"test": 5, "inducer": induce_until_the_last}),
    "awm_judged": ("awm", "none", "", {"self_judge": judge}),
    "reasoning_bank": ("reasoning_bank", "gold", f"method.reference=true {THREE}", {}),
    "reasoning_bank_authors": ("reasoning_bank", "gold", "method.protocol=authors", {"extractor": write_markdown}),
    "reasoning_bank_judged": ("reasoning_bank", "none", "", {"self_judge": judge}),
    "reflexion": ("reflexion", "correctness", "method.trials=4 method.memory=2", GUESSING),
    "reflexion_authors": ("reflexion", "correctness", "method.protocol=authors", GUESSING | {"reflector": write_lines}),
    "reflexion_judged": ("reflexion", "none", "", GUESSING | {"self_judge": judge, "test": 2}),
    "reflexion_until_right": (
        "reflexion",
        "correctness",
        "",
        GUESSING | {"generator": right_at({0: 0, 1: 1}), "test": 3},
    ),
    "reflexion_lost_trial": ("reflexion", "correctness", "", GUESSING | {"generator": lose_second, "test": 1}),
    "reflexion_lost_note": ("reflexion", "correctness", "", GUESSING | {"reflector": lambda _: BROKEN, "test": 1}),
    "best_of_k": ("best_of_k", "correctness", "", {"generator": right_at({0: 0, 1: 1}, lost=2), "test": 3}),
    "best_of_k_voted": ("best_of_k", "none", "mode.window=3", {"generator": draw, "test": 3}),
    "mem_prompt": ("mem_prompt", "correctness", "", TEXTS),
    "self_stream_icl": ("self_stream_icl", "correctness", "", TEXTS),
    "mem_prompt_similar_last": ("mem_prompt", "correctness", THREE, THEMED | TEXTS),
    "reasoning_bank_similar": ("reasoning_bank", "correctness", "", THEMED | {"extractor": note_two}),
    "mem_prompt_batch": ("mem_prompt", "correctness", "mode.batch_size=3", BATCH | TEXTS),
    "reasoning_bank_batch": ("reasoning_bank", "correctness", "mode.batch_size=3", BATCH),
    "again_ours": ("mem_prompt", "correctness", "mode.epochs=3", AGAIN | TEXTS),
    "again_authors": ("mem_prompt", "correctness", "mode.epochs=3 method.protocol=authors", AGAIN | TEXTS),
}


LOUD = ("fault", "dropped_from_prompt", "voted", "last_trial")


def describe(ran, script):
    last = max(call.sample for _, call in script.calls)
    lines = []
    for role, call in sorted(script.calls, key=lambda one: (one[0], one[1].trial, one[1].nth)):
        if call.sample == last:
            lines.append(f"# {role}, attempt {call.trial}")
            lines += [part[0] for part in PARTS.finditer(call.prompt) if part[1] not in ("task", "question")]
    context = context_of(ran)
    kept = chain.from_iterable(context.get(name, ()) for name in ("items", "experiences", "entries"))
    lines.append(f"# kept: {', '.join(one.get('title') or one['question'] for one in kept)}")
    lines.append(f"# size: {steps(ran)[-1]['context_tokens']} tokens shown, {steps(ran)[-1]['context_size']} items")
    counts = ("operations", "calls", "faults", "trials")
    lines += [
        f"# {name}, {key}: {found}" for name in counts for key, found in ran.metrics.get(name, {}).items() if found
    ]
    lines += re.findall(r"[\d.]+ a sample; .*\b", (ran.folder / "summary.txt").read_text())
    points = sorted(read_run(ran.folder).points("accuracy").items())
    lines.append(f"# right: {', '.join(sample for sample, point in points if point.score)}")
    lines.append(f"# score: {ran.metrics['headline']['before']} before, {ran.metrics['headline']['after']} after")
    lines += [f"# {event}" for event in events(ran) if event["event"] in LOUD]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_shown_and_kept(snapshot, name, tmp_path):
    method, labels, settings, roles = SCENARIOS[name]
    text = describe(*learn(tmp_path, method, f"labels={labels}", *settings.split(), **roles))
    assert text == snapshot
