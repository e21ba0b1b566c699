"""What runs take: the length of their chains of calls, and memory."""

import re
from pathlib import Path

from ace_bench.cli.reproducing import estimating
from ace_bench.cli.reproducing.estimating import chain_of, free_memory, memory_of
from ace_bench.report.planned import PlannedRun
from tests.expected import check_answers
from tests.report.paper.conftest import compose


def test_a_chain_is_what_follows_one_after_another_and_memory_is_of_the_process_and_the_engines_episodes():
    def answer(line):
        planned = PlannedRun(overrides=tuple(re.split(r" (?=[\w.]+=)", line)))
        settings = compose(planned.overrides)
        return f"{chain_of(planned, settings):.12g} calls in a row, {memory_of(planned, settings)} MiB"

    check_answers(Path(__file__).with_name("expected") / "estimates.txt", answer)


def test_runs_share_what_the_machine_or_the_control_group_leaves(tmp_path, monkeypatch):
    files = {"_MEMORY": "MemTotal: 9 kB\nMemAvailable:  2048000 kB\n", "_LIMIT": "max\n", "_USED": f"{2**30}\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(estimating, name, tmp_path / name)
    assert free_memory() == 1800
    (tmp_path / "_LIMIT").write_text(f"{2 * 2**30}\n")
    assert free_memory() == int(0.9 * 1024)
    (tmp_path / "_MEMORY").unlink()
    assert free_memory() is None, "this system does not tell"
