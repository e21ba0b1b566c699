"""What a run writes into its folder as whole files: templates and samples first, contexts at its end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from ace_bench.contexts.export import official_text
from ace_bench.core.errors import DataError, StoreError
from ace_bench.runners.assemble import RunSpec
from ace_bench.runners.experiment import RunOutcome
from ace_bench.store.folder import RunFolder, pretty
from ace_bench.store.results import read_object
from ace_bench.store.samples import SAMPLES, packed, unpacked


def save_questions(folder: RunFolder, plan: RunSpec) -> None:
    """Save the templates and samples that are missing in the folder.

    A continued run has the same templates and samples, because its digest covers them.
    """
    contents = {f"prompts/{name}": text for name, text in plan.prompts.files.items()}
    lost = {name: text for name, text in contents.items() if not folder.holds(name, text)}
    try:
        unpacked(read_object(folder.path, SAMPLES))
    except (StoreError, DataError):
        used = (plan.task.samples(split)[: plan.limits.get(split)] for split in plan.mode.reads(plan.method))
        lost[SAMPLES] = pretty(packed(chain.from_iterable(used)))
    if lost:
        folder.write(lost)


def files_of_contexts(outcome: RunOutcome) -> Mapping[str, str]:
    """Return the contexts as JSON, playbooks also in the text format of the published ones, by file name."""
    files = {}
    for name, context in {**outcome.contexts, "tested": outcome.context}.items():
        files[f"contexts/{name}.json"] = pretty(context.dump())
        text = official_text(context)
        if text is not None:
            files[f"contexts/{name}.txt"] = text
    return files
