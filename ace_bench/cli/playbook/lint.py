"""Check a playbook before it is shared.

    ace-bench playbook lint results/.../seed0
    ace-bench playbook lint FILE.json --run results/.../seed0 --max-tokens 8000 --max-bullet-tokens 200

Finds bullets that say the same, that may contradict each other, that repeat a sample of the run together with its
answer (a leak), that were found harmful more often than helpful, and sizes above a limit. The exit status is 1 if there
are findings, and 0 if there are none.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.lint import Limits, Solved, lint
from ace_bench.core.errors import ConfigError
from ace_bench.store.folder import SAMPLES, unpacked
from ace_bench.store.journal import RolloutRecord, parse_journal
from ace_bench.store.lines import read_lines
from ace_bench.store.results import read_object


def main(arguments: Sequence[str]) -> int:
    """Print the findings and return the exit status."""
    parser = Parser("playbook lint", __doc__)
    parser.add_argument("playbook", type=Path, help="run folder or playbook file")
    parser.add_argument(
        "--run", type=Path, help="run folder whose samples must not be repeated (default: the playbook's)"
    )
    parser.add_argument("--similar", type=float, default=0.85, help="cosine from which bullets are compared (0.85)")
    parser.add_argument("--embedder", default="hashing", help="hashing (default), static:MODEL or a sentence model")
    parser.add_argument("--max-tokens", type=int, help="size of the playbook")
    parser.add_argument("--max-bullet-tokens", type=int, help="size of a bullet")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    options = parser.parse_args(arguments)
    if not 0 < options.similar <= 1:
        raise ConfigError(f"--similar {options.similar} must be above 0 and at most 1")
    run = options.run or (options.playbook if options.playbook.is_dir() else None)
    found = lint(
        read_playbook(options.playbook),
        embedder=make_embedder(options.embedder),
        limits=Limits(similar=options.similar, tokens=options.max_tokens, bullet_tokens=options.max_bullet_tokens),
        solved=[] if run is None else solved_samples(run),
    )
    if options.json:
        sys.stdout.write(json.dumps([asdict(one) for one in found], indent=2) + "\n")
        return int(bool(found))
    console = Console(highlight=False, soft_wrap=True)
    for one in found:
        console.print(f"{one.kind}: {' and '.join(one.bullets)} {one.message}".replace("  ", " "), markup=False)
    counts = Counter(one.kind for one in found)
    console.print(", ".join(f"{number} {kind}" for kind, number in counts.items()) or "no findings", markup=False)
    if run is None:
        console.print(
            "Leaks were not looked for: --run names the run whose samples must not be repeated.", markup=False
        )
    return int(bool(found))


_SHARED = 3
"""A text of more samples than this is the task's, such as a list of labels, and no question."""


def solved_samples(folder: Path) -> list[Solved]:
    """Return each sample of a run whose reference answer its journal holds; raises ``StoreError`` and ``DataError``."""
    samples = unpacked(read_object(folder, SAMPLES))
    uses: dict[str, int] = {}
    for sample in samples.values():
        for text in set(sample.inputs.values()):
            uses[text] = uses.get(text, 0) + 1
    return [
        Solved(
            sample=name,
            split=samples[name].split,
            text="\n".join(text for text in samples[name].inputs.values() if uses[text] <= _SHARED),
            answer=answer,
        )
        for name, answer in dict(_answers(folder)).items()
        if name in samples
    ]


def _answers(folder: Path) -> Iterator[tuple[str, str]]:
    for line in read_lines(folder / "journal.jsonl", parse_journal).check().entries:
        record = line.record
        if isinstance(record, RolloutRecord) and record.grade.gold:
            yield record.sample, record.grade.gold
