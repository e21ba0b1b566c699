"""Makes a run of a size that the viewer must open quickly.

``python -m tests.report.view.big RUN RESULTS`` makes one like RUN with 500 samples and 2,000 bullets in RESULTS and
prints how long the viewer takes for it. `ace-bench benchmark results` does so for many runs.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from ace_bench.contexts.playbook.bullets import Bullet
from ace_bench.contexts.playbook.playbook import Playbook
from ace_bench.core.types import Completion, Message, Stage, Usage
from ace_bench.report.page.content import Content
from ace_bench.report.page.results import Results
from ace_bench.store.call_log import CallLog, PaidReply
from ace_bench.store.journal import Journal, RolloutRecord, StepRecord, parse_journal
from ace_bench.store.lines import read_lines


def large_run(source: Path, folder: Path, *, samples: int, bullets: int) -> None:
    """Write an unfinished run of so many steps, each of which adds bullets; prompts hold all of them."""
    shutil.copytree(source, folder)
    for name in ("checksums.jsonl", "journal.jsonl", "calls.jsonl", "metrics.json"):
        (folder / name).unlink()
    (folder / "status.json").write_text('{"state": "stopped", "reason": "made up"}')
    records = (line.record for line in read_lines(source / "journal.jsonl", parse_journal).entries)
    like = next(record for record in records if isinstance(record, RolloutRecord))
    playbook = Playbook.start(["others"])
    (folder / "contexts" / "initial.json").write_bytes(msgspec.json.encode(playbook.dump()))
    calls = CallLog(folder / "calls.jsonl")
    journal = Journal(folder / "journal.jsonl", calls)
    journal.begin(Stage.ADAPT)
    for step in range(samples):
        sample = f"finer-train-{step:04d}"
        key = f"adapt/epoch0/{sample}/{playbook.digest[:12]}/0"
        for role in ("generator", "reflector", "curator"):
            _add_call(calls, key, role, playbook)
        cited = tuple(bullet.id for bullet in playbook.bullets[-3:])
        attempt = replace(like.attempt, cited=cited)
        journal.add_rollout(
            replace(like, key=key, stage=Stage.ADAPT, sample=sample, context=playbook.digest, attempt=attempt)
        )
        new = range(step * bullets // samples, (step + 1) * bullets // samples)
        after = Playbook.of([*playbook.bullets, *(_bullet(number + 1, step) for number in new)], sections=["others"])
        record = StepRecord(
            index=step, epoch=0, samples=(sample,), patch=after.patch(playbook), digest=after.digest,
            context_tokens=after.tokens, context_size=after.size,
            events=tuple({"event": "accepted", "type": "ADD", "bullet": f"b-{number + 1:05d}"} for number in new),
            at=datetime.now(UTC),
        )  # fmt: skip
        journal.add_step(record)
        playbook = after
    journal.end()
    journal.close()
    calls.close()


def _bullet(number: int, step: int) -> Bullet:
    content = f"Lesson {number}: where a filing names amount {number * 37 % 101}, take the tag of its table."
    return Bullet(id=f"b-{number:05d}", section="others", content=content, created=step, changed=step, tokens=40)


def _add_call(calls: CallLog, session: str, role: str, playbook: Playbook) -> None:
    text = f"You are the {role}.\n" + "\n".join(bullet.line for bullet in playbook.bullets) + f"\nThe sample: {session}"
    request = calls.prepare(session, role, [Message(role="user", content=text)], schema=None, settings={})
    usage = Usage(prompt=len(text) // 4, completion=200, cached=len(text) // 5, usd=0.001)
    completion = Completion(text="A reply. " * 40, usage=usage, seconds=1.0, waited=0.0, model="m")
    calls.add(
        f"{session}/{role}/{request.name}/0",
        PaidReply(completion=completion, fault=None),
        stage=Stage.ADAPT,
        request=request,
    )


def main(source: Path, results: Path) -> None:
    """Make it and print what the viewer takes for it."""
    large_run(source, results / "seed0", samples=500, bullets=2000)
    content = Content(Results(results), live=True)
    (key,) = Results(results).runs()
    started = time.perf_counter()
    content.read(f"run-{key}.bin", {})
    Console().print(f"the large run: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
