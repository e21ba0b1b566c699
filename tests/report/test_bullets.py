"""When bullets were created, last changed and last used: from the journal, outside of playbooks and digests."""

import json
from datetime import UTC, datetime, timedelta
from itertools import zip_longest

import pytest

from ace_bench.contexts.loading import restore
from ace_bench.core.errors import DataError
from ace_bench.core.types import Attempt, Grade, Stage
from ace_bench.report.histories import bullet_history, history, last_used, write_around_fall
from ace_bench.report.records import read_run
from ace_bench.store.journal import RolloutRecord, StepRecord
from ace_bench.store.results import read_object
from tests.launching import launch
from tests.report.page.runs import changed

RUN = ("task=finer", "task.source=sample", "limit=6", "mode.before=false")
LONG = ("task=finer", "task.source=sample", "limit=12", "mode.epochs=1", "mode.before=false")
OFFLINE, ONLINE = ("mode.epochs=2", "mode.batch_size=2"), ("mode=online", "mode.window=3")


def steps_and_uses(folder):
    """The time of each step, and the last step that tagged a bullet or whose rollouts cited it, read line by line."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    used = {}
    for step in steps:
        scopes = [f"adapt/{scope}{sample}/" for sample in step["samples"] for scope in ("", f"epoch{step['epoch']}/")]
        own = [line for line in lines if line["kind"] == "rollout" and line["key"].startswith(tuple(scopes))]
        cited = {bullet for line in own for bullet in line["attempt"]["cited"]}
        tagged = {event["bullet"] for event in step["events"] if event.get("type") == "TAG"}
        used.update(dict.fromkeys(cited | tagged, step["index"]))
    return [step.get("at") for step in steps], used


@pytest.mark.slow
@pytest.mark.parametrize("mode", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_each_bullet_of_the_last_playbook_has_its_steps_and_their_times(mode, tmp_path):
    begun = datetime.now(UTC) - timedelta(seconds=1)
    folder = launch(tmp_path, *RUN, *mode, "method.refiner.when=never").folder
    bullets = restore(read_object(folder, "contexts/final.json")).bullets
    times, used = steps_and_uses(folder)
    found = bullet_history(folder)
    assert [(b.id, b.section, b.content, b.created, b.changed) for b in found] == [
        (b.id, b.section, b.content, b.created, b.changed) for b in bullets
    ]
    assert {b.id: b.last_used for b in found} == {b.id: used.get(b.id) for b in bullets}
    assert any(b.last_used is not None for b in found)
    at = [datetime.fromisoformat(time) for time in times]
    assert all(begun <= time <= datetime.now(UTC) for time in at)
    assert all((b.created_at, b.changed_at) == (at[b.created], at[b.changed]) for b in found)
    assert all(b.last_used_at == (None if b.last_used is None else at[b.last_used]) for b in found)


def test_the_authors_text_has_a_history_too(tmp_path):
    folder = launch(tmp_path, *RUN, "protocol=official").folder
    found = bullet_history(folder)
    final = read_object(folder, "contexts/final.json")["text"]
    assert found
    assert all(b.id in final and b.content in final for b in found)
    at = [datetime.fromisoformat(time) for time in steps_and_uses(folder)[0]]
    assert [(b.created_at, b.changed_at) for b in found] == [(at[b.created], at[b.changed]) for b in found]
    assert {b.last_used for b in found} == {None}  # the embedded reader cites in our form of replies alone


@pytest.mark.slow
def test_times_change_neither_digests_nor_metrics_and_folders_without_them_go_on(tmp_path):
    command = (*RUN, *OFFLINE)
    whole = launch(tmp_path / "whole", *command)
    assert launch(tmp_path / "cut", *command, "budget.calls=30").status == 3
    (cut,) = (path.parent for path in (tmp_path / "cut").rglob("journal.jsonl"))
    assert any(steps_and_uses(cut)[0])
    changed(cut, "journal.jsonl", lambda line: line.pop("at", None))  # as older versions wrote it
    before = bullet_history(cut)
    assert before
    assert all(b.created_at is b.changed_at is b.last_used_at is None for b in before)
    continued = launch(tmp_path / "cut", *command)
    assert continued.lasting() == whole.lasting()
    times, used = steps_and_uses(cut)
    assert times[0] is None
    assert times[-1] is not None
    assert used == steps_and_uses(whole.folder)[1]
    histories = (bullet_history(folder) for folder in (cut, whole.folder))
    ours, theirs = ([(b.id, b.created, b.changed, b.last_used) for b in found] for found in histories)
    assert ours == theirs


def test_contexts_without_bullets_are_refused(tmp_path):
    folder = launch(tmp_path, *RUN, "mode=online", "method=dc").folder
    with pytest.raises(DataError, match="only playbooks have bullets"):
        bullet_history(folder)


def bullet(key, *, votes=0):
    return {"id": key, "helpful": votes, "harmful": 0, "neutral": 0}


def rollout(sample, *cited, stage=Stage.ADAPT):
    where = {"stage": stage, "split": "train", "sample": sample, "context": "abc", "trial": 0}
    result = {"grade": Grade(score=0.0, correct=False, observed="", gold=""), "fault": None, "calls": 1, "seconds": 0.0}
    attempt = Attempt(answer="", cited=cited)
    return RolloutRecord(key=f"{stage}/epoch0/{sample}/abc/0", attempt=attempt, **where, **result)


def used_of(first, changes, *events, rollouts=()):
    sizes = {"epoch": 0, "patch": {}, "digest": "", "context_tokens": 0, "context_size": 0}
    steps = [
        StepRecord(index=index, samples=(f"s{index}",), events=some, **sizes)
        for index, (_, some) in enumerate(zip_longest(changes, events, fillvalue=()))
    ]
    return last_used(first, changes, steps, rollouts)


def test_citations_count_in_the_step_of_their_sample_and_only_of_bullets_that_exist():
    rollouts = [rollout("s1", "a-1", "b-2", "gone-9"), rollout("s0", "a-1"), rollout("s1", "c-3", stage=Stage.EVALUATE)]
    changes = [{}, {"set": [bullet("b-2")]}, {}]
    assert used_of([bullet("a-1"), bullet("c-3")], changes, rollouts=rollouts) == {"a-1": 1}


def test_a_vote_is_a_use_but_not_the_votes_that_a_bullet_is_created_with():
    changes = [{"set": [bullet("a-1", votes=3)]}, {"set": [bullet("a-1", votes=4)]}, {"set": [bullet("b-2", votes=1)]}]
    assert used_of([], changes) == {"a-1": 1}


def test_a_merged_bullet_takes_over_the_use_of_its_parts():
    first = [bullet("a-1", votes=1), bullet("b-2", votes=2), bullet("c-3", votes=1)]
    joins = (
        {"event": "merged", "bullet": "b-2", "merged": ["c-3"]},
        {"event": "merged", "bullet": "a-1", "merged": ["b-2"]},
    )
    together = {"set": [bullet("a-1", votes=4)], "removed": ["b-2", "c-3"]}
    assert used_of(first, [{}, together], (), joins, rollouts=[rollout("s0", "c-3")])["a-1"] == 0
    voted = {**together, "set": [bullet("a-1", votes=5)]}
    assert used_of(first, [{}, voted], (), joins, rollouts=[rollout("s0", "c-3")])["a-1"] == 1


def test_the_contexts_around_the_sharpest_fall_are_those_whose_sizes_the_run_tells(tmp_path):
    folder = launch(tmp_path, *LONG, "method.refiner.max_tokens=600").folder
    run = read_run(folder)
    assert write_around_fall(folder)
    before, after = (restore(read_object(folder, f"contexts/{name}_fall.json")) for name in ("before", "after"))
    assert (before.tokens, after.tokens) == (run.value("fall.before.tokens"), run.value("fall.after.tokens"))
    assert before.tokens > after.tokens
    digests = [context.digest for context in history(folder)]
    assert digests.index(after.digest) == digests.index(before.digest) + 1
    grows = launch(tmp_path, *RUN, "mode.epochs=1").folder
    assert not write_around_fall(grows)
    assert not list(grows.glob("contexts/*_fall.json"))
