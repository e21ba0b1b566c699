"""The embedded reader as a physician: what it makes of profiles, lessons and verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ace_bench.tasks.ddxplus.task import INSTRUCTION
from ace_rehearsal.reader.skills import recognise
from ace_rehearsal.reader.skills.base import Lesson
from ace_rehearsal.reader.skills.diagnosis.lessons import read_lessons, word_lesson
from ace_rehearsal.reader.skills.diagnosis.profile import read_findings
from tests.rehearsal.reader.conftest import Ask, advice_of, learn

HEART = (
    "Age: 61\nSex: male\nChief complaint: Pulse skips like a broken clock\n\nSymptoms:\n- Flutter since noon\n- Tired"
)
AGAIN = (
    "Age: 70\nSex: female\nChief complaint: Flutter since noon\n\nSymptoms:\n- Clock-like skips of the pulse\n- Pale"
)
RIGHT = "9. Atrial fibrillation"
TASK = {"background": INSTRUCTION, "question": HEART}


def reflected(ask: Ask, first: dict[str, Any], **fields: Any) -> dict[str, Any]:
    given = {**TASK, "reasoning": first["reasoning"], "answer": first["final_answer"], **fields}
    reply: dict[str, Any] = ask("reflector", **given)
    return reply


def test_the_words_of_an_option_point_to_it(ask: Ask) -> None:
    profile = "Age: 5\nChief complaint: A whooping cough that does not stop"
    assert ask("generator", background=INSTRUCTION, question=profile)["final_answer"] == "48. Whooping cough"
    assert ask("base", background=INSTRUCTION, question=profile) == "48. Whooping cough"


def test_a_lesson_from_the_gold_helps_another_patient(ask: Ask) -> None:
    first = ask("generator", background=INSTRUCTION, question=AGAIN)
    assert first["final_answer"] != RIGHT
    playbook = learn(ask, INSTRUCTION, [(HEART, RIGHT)])
    after = ask("generator", background=INSTRUCTION, question=AGAIN, playbook=playbook)
    assert after["final_answer"] == RIGHT
    assert after["bullet_ids"] == ["new-00001"]


def test_a_lesson_says_what_the_findings_were_taken_for(ask: Ask) -> None:
    first = ask("generator", **TASK)
    [lesson] = read_lessons(reflected(ask, first, gold=RIGHT)["key_insight"])
    assert lesson.number == 9
    assert lesson.others == (int(first["final_answer"].split(".")[0]),)
    assert not lesson.doubtful


def test_irrelevant_lessons_change_nothing(ask: Ask) -> None:
    playbook = learn(ask, INSTRUCTION, [("Chief complaint: Ear is hot and drips", "3. Acute otitis media")])
    before = ask("generator", **TASK)
    after = ask("generator", **TASK, playbook=playbook)
    assert (after["final_answer"], after["bullet_ids"]) == (before["final_answer"], [])


def test_wrong_lessons_hurt_and_harmful_counters_weaken_them(ask: Ask) -> None:
    profile = "Chief complaint: Whooping cough\nSymptoms:\n- Coughs until vomiting"
    wrong = learn(ask, INSTRUCTION, [(profile, "8. Anemia")])
    fields = {"background": INSTRUCTION, "question": profile, "playbook": wrong}
    assert ask("generator", **fields)["final_answer"] == "8. Anemia"
    counters = "new-00001: helpful 0, harmful 30, neutral 0"
    assert ask("generator", **fields, counters=counters)["final_answer"] == "48. Whooping cough"


def test_a_wrong_verdict_rules_out_one_option_after_the_other(ask: Ask) -> None:
    """Told only "not correct", the reader tries another option each time and never claims to know."""
    tried: list[str] = []
    attempt = ask("generator", **TASK)
    for _ in range(4):
        tried.append(attempt["final_answer"])
        reply = reflected(ask, attempt, labels="correctness", feedback="The answer is not correct.")
        [lesson] = read_lessons(reply["key_insight"])
        assert lesson.doubtful
        assert set(lesson.others) == {int(answer.split(".")[0]) for answer in tried}
        attempt = ask("generator", **TASK, reflection=advice_of(reply))
        assert attempt["final_answer"].startswith(f"{lesson.number}. ")
    assert len({*tried, attempt["final_answer"]}) == 5


def test_a_right_answer_that_no_entry_taught_is_kept(ask: Ask) -> None:
    first = ask("generator", **TASK)
    right = {"labels": "correctness", "feedback": "The answer is correct."}
    lesson = reflected(ask, first, **right)["key_insight"]
    assert lesson.startswith(f'Diagnosis "{first["final_answer"]}" where findings are: ')
    playbook = f"[new-00001] (diagnostic_patterns) {lesson}"
    sure = ask("generator", **TASK, playbook=playbook)
    reply = reflected(ask, sure, **right, bullets=playbook)
    assert reply["key_insight"] == ""
    assert reply["bullet_tags"] == [{"id": "new-00001", "tag": "helpful"}]


def test_without_labels_nothing_is_learnt(ask: Ask) -> None:
    reply = reflected(ask, ask("generator", **TASK), labels="none")
    assert reply["key_insight"] == ""
    assert RIGHT not in json.dumps(reply)


@pytest.mark.parametrize("section", ["Diagnosis", "Doubtful"])
def test_the_curator_files_each_lesson_once(ask: Ask, section: str) -> None:
    lesson = word_lesson(["flutter noon"], RIGHT, ["8. Anemia"], doubtful=section == "Doubtful")
    assert lesson.startswith(section)
    sections = ("diagnostic_patterns", "common_mistakes_to_avoid", "others")
    [operation] = ask("curator", **TASK, sections=sections, reflection=f"Key insight: {lesson}")["operations"]
    assert operation["section"] == sections[section == "Doubtful"]
    assert operation["content"] == lesson
    known = f"[new-00001] (others) {lesson}"
    assert ask("curator", **TASK, playbook=known, reflection=f"Key insight: {lesson}")["operations"] == []


def test_worked_examples_teach_too() -> None:
    _, case = recognise(INSTRUCTION, HEART)
    [content] = case.demonstrated(RIGHT)
    _, other = recognise(INSTRUCTION, AGAIN)
    assert other.answer([Lesson(id="demonstration-1", content=content)], "").text == RIGHT
    assert case.demonstrated("no idea") == ()


def test_findings_are_told_by_their_words_and_answers_come_first() -> None:
    text = (
        "Age: 43\nSymptoms:\n- Where does it hurt? ear(L), jaw\n- Do you cough? Yes\n\nCoughs; sweats at night.\n- 7\n"
    )
    assert read_findings(text) == ("ear jaw hurt", "cough", "coughs", "sweats night")


def test_a_profile_in_prose_is_read_by_its_sentences() -> None:
    prose = "The patient is a man. He has a fluttering heart since noon. His pulse skips."
    assert len(read_findings(prose)) == 3


@pytest.mark.parametrize(
    "profile",
    ["", "   \n", "7\n8\n", "\x00\ud800", "- " * 20_000, "?" * 20_000, '"Diagnosis "9. x" where findings are: y."'],
)
def test_odd_profiles_are_answered(ask: Ask, profile: str) -> None:
    reply = ask("generator", background=INSTRUCTION, question=profile)
    assert isinstance(reply["final_answer"], str)


@pytest.mark.parametrize("options", ["1. a\n" * 20, "\n".join(f"{n}. x" for n in range(7)), "9. a\n" * 8 + "9. b"])
def test_lists_that_are_no_options_are_left_to_other_skills(options: str) -> None:
    skill, _ = recognise(f"Choose the diagnosis:\n{options}\n", "Coughs.")
    assert skill.name != "diagnosis"
