"""Bullets that repeat the prompt or speak about the playbook, as small models write them, and bullets that do not."""

import pytest

from ace_bench.core.resources import prompts_folder
from ace_bench.core.types import Sample
from ace_bench.store.prompts import PromptSet
from tests.runners.scripted import Scripted, Toy, events, kept, play, wrong

ABOUT_PLAYBOOK = [
    "The playbook should also give a more detailed answer by focusing on the relevant US GAAP tags.",
    "Add a new entry for the question and its answer to the playbook, with the key insight.",
    "The playbook should include a few more exact entries to cover other topics.",
]
ABOUT_REFLECTION = ["The reflection gives a clear understanding of the sentence and the right tag for '3.48'."]
ABOUT_TASK = [
    "InterestExpenseDebt is for interest on notes, LineOfCredit for the amount drawn.",
    "Operating cash flow = net income + depreciation + increase in working capital.",
    "Choose the section of the filing first: notes on leases list each tag once, in the order of the questions.",
    "Count distinct ids: SELECT COUNT(DISTINCT T1.id) where a join repeats rows.",
    "Answer with a number alone, rounded to two decimals. A return on reflection of costs is a percentage.",
    "Read the question twice.",
]


def curate(results, *contents, settings=(), **played):
    operations = [{"type": "ADD", "section": "others", "content": content} for content in contents]
    script = Scripted(generator=wrong, curator=lambda _: {"operations": operations})
    ran = play(
        results, "method.max_reflection_rounds=1", "mode.epochs=1", *settings, script=script, train=1, test=1, **played
    )
    refused = {event["operation"]["content"]: event["reason"] for event in events(ran) if event["event"] == "rejected"}
    return [bullet["content"] for bullet in kept(ran)], refused, ran


def prompt_lines():
    prompts = PromptSet(prompts_folder() / "default", task="toy", prompt_group="qa")
    lines = [line for role in ("curator", "reflector") for line in prompts.fixed_text(role).splitlines()]
    return [line.strip("- ") for line in lines if len(line.split()) > 9 and "playbook" not in line.casefold()]


@pytest.mark.parametrize("settings", [(), ("method.curator_sees=1",)])
def test_what_repeats_the_prompt_or_is_about_the_playbook_is_refused_and_counted(settings, tmp_path):
    copies = [" ".join(line.upper().replace(",", "").split()[:18]) for line in prompt_lines()[:3]]
    contents = (*copies, *ABOUT_PLAYBOOK, *ABOUT_REFLECTION, *ABOUT_TASK)
    remained, refused, ran = curate(tmp_path, *contents, settings=settings)
    assert remained == ABOUT_TASK
    assert copies
    assert refused == {
        **dict.fromkeys(copies, "the content repeats the prompt"),
        **dict.fromkeys(ABOUT_PLAYBOOK, "the content is about the playbook, not about the task"),
        **dict.fromkeys(ABOUT_REFLECTION, "the content is about the reflection, not about the task"),
    }
    assert ran.metrics["operations"]["rejected"] == len(refused)


class Football(Toy):
    def samples(self, split):
        inputs = {"background": "Football.", "question": "Which page of the playbook?"}
        return [Sample(id=sample.id, split=split, inputs=inputs) for sample in super().samples(split)]


def test_words_of_the_question_are_about_the_task(tmp_path):
    remained, refused, _ = curate(tmp_path, ABOUT_PLAYBOOK[0], task=Football)
    assert (remained, refused) == ([ABOUT_PLAYBOOK[0]], {})


def test_the_setting_lets_them_pass(tmp_path):
    remained, refused, _ = curate(tmp_path, *ABOUT_PLAYBOOK, settings=("method.refuse_echoes=false",))
    assert (remained, refused) == (ABOUT_PLAYBOOK, {})
