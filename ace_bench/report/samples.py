"""The sets of samples that runs tested: scores over different samples cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ace_bench.core.digest import digest_of
from ace_bench.core.errors import StoreError
from ace_bench.report.differences import Settings, differing, setting_text, short_names
from ace_bench.report.records import RunSummary

SAMPLE_SETTINGS = ("limit", "source", "data", "task.")
"""Settings that select samples, by how their paths start."""


def sample_keys(runs: Sequence[RunSummary]) -> dict[Path, str]:
    """Return a key of the samples that each run tested, by folder; unfinished runs have that of their settings."""
    by_settings: dict[str, str] = {}
    planned = {run.folder: digest_of([run.identity["task"], run.identity.get("limit"), _data(run)]) for run in runs}
    found = dict(planned)
    for run in runs:
        if run.finished:
            try:
                found[run.folder] = digest_of([run.task, run.tested_samples, _data(run)])
            except StoreError:
                continue  # its cell shows the error
            by_settings[planned[run.folder]] = found[run.folder]
    return {folder: by_settings.get(key, key) for folder, key in found.items()}


def _data(run: RunSummary) -> object:
    return [run.source, run.contents.get("data")]


def sample_names(sets: Mapping[str, Settings]) -> dict[str, str]:
    """Name sets of samples by the settings that select them, or else by a digest."""
    paths = [path for path in differing(list(sets.values())) if path.startswith(SAMPLE_SETTINGS)]
    names = short_names(paths)
    found = {
        key: ", ".join(setting_text(path, one[path], names[path]) for path in paths if path in one)
        for key, one in sets.items()
    }
    if len(set(found.values())) == len(found) and all(found.values()):
        return found
    return {key: ", ".join(filter(None, (name, f"samples {key[:6]}"))) for key, name in found.items()}
