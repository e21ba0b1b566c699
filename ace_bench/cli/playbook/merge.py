"""Merge playbooks of several runs, users or projects into one.

    ace-bench playbook merge PLAYBOOK [PLAYBOOK ...] --out FILE.json

A PLAYBOOK is a run folder (its last playbook), a saved playbook (contexts/final.json) or a text in the format of the
authors' code. Equal bullets become one, with the sum of their counters; --similar joins similar ones, too. Start a run
from the result with method.initial=FILE.json. The sources of a bullet in FILE.json name the playbooks it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.cli.playbook.reading import read_playbook
from ace_bench.contexts.playbook.embed import make_embedder
from ace_bench.contexts.playbook.merge import NamedPlaybook, merge_playbooks
from ace_bench.contexts.playbook.refine import Refiner
from ace_bench.core.errors import ConfigError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.store.files import write_files


def main(arguments: Sequence[str]) -> int:
    """Write the merged playbook and return the exit status."""
    parser = Parser("playbook merge", __doc__)
    parser.add_argument("playbooks", type=Path, nargs="+", help="run folders or playbook files")
    parser.add_argument("--out", type=Path, required=True, help="file to write (JSON)")
    parser.add_argument("--similar", type=float, help="join bullets from this cosine similarity on, such as 0.9")
    parser.add_argument("--embedder", default="hashing", help="for --similar: hashing (default) or a sentence model")
    options = parser.parse_args(arguments)
    if options.similar is not None and not 0 < options.similar <= 1:
        raise ConfigError(f"--similar {options.similar} must be above 0 and at most 1")
    named = [NamedPlaybook(name=str(path), playbook=read_playbook(path, name="final")) for path in options.playbooks]
    merged = merge_playbooks(named, count=estimate_tokens, refiner=_refiner(options.similar, options.embedder))
    write_files({options.out: msgspec.json.format(msgspec.json.encode(merged.dump())) + b"\n"})
    before = sum(one.playbook.size for one in named)
    said = f"{options.out}: {merged.size} bullets of {before} in {len(named)} playbooks"
    Console().print(said, markup=False, highlight=False, soft_wrap=True)
    return 0


def _refiner(similar: float | None, embedder: str) -> Refiner | None:
    """Return a refiner that only joins similar bullets: votes and size are left to the runs that use the playbook."""
    if similar is None:
        return None
    return Refiner(make_embedder(embedder), threshold=similar, max_tokens=None, harmful_min=None)
