"""Refuses to go on in a folder that holds another run, and to repeat unasked what an older version has made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ace_bench.core.errors import ConfigError, StoreError
from ace_bench.core.identity import FORM
from ace_bench.store.results import read_identity, read_place

if TYPE_CHECKING:
    from ace_bench.runners.identifying import IdentifiedRun


def check_folder(run: IdentifiedRun) -> None:
    """Check the folder that a run would begin or go on in; writes nothing.

    Raises ``StoreError`` if it holds another run, and ``ConfigError`` if the run is new but an older version made one
    with the same settings, which cannot be continued and would be paid for again.
    """
    if run.folder.exists():
        _check_recorded(run)
    elif run.resume and (older := next(_older_runs(run), None)):
        raise ConfigError(
            f"an older version of ace-bench made a run with these settings in {older}. It is shown, but not continued. "
            "resume=false makes the run again, and pays for it again"
        )


def _check_recorded(run: IdentifiedRun) -> None:
    try:
        place = read_place(run.folder)
    except StoreError:  # nothing is recorded yet, or it is damaged, which is said when the folder is opened
        return
    if place.seed == run.seed and place.digest == run.identity.digest:
        return
    recorded = f"seed {place.seed}" if place.seed != run.seed else f"the run {place.digest[:12]}"
    raise StoreError(
        f"{run.folder} holds {recorded} by its own records, so it was moved or renamed. Move it back to "
        f"{place.path}, or pass resume=false for a new run"
    )


def _older_runs(run: IdentifiedRun) -> Iterator[Path]:
    """Yield runs of this task, method, backbone, mode and seed that an older version made with these settings.

    A setting that the older version did not record agrees with any value.
    """
    for folder in sorted(run.folder.parent.parent.glob(f"*/{run.folder.name.partition('-')[0]}*")):
        try:
            identity = read_identity(folder)
            seed = read_place(folder).seed
        except StoreError:
            continue
        same_data = identity["contents"].get("data") == run.identity.contents["data"]
        older = identity.get("form") != FORM
        if older and seed == run.seed and same_data and _agree(identity["settings"], run.identity.settings):
            yield folder


def _agree(recorded: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether all settings that both sides have are equal."""
    both = ((recorded[name], settings[name]) for name in recorded.keys() & settings.keys())
    return all(
        _agree(one, other) if isinstance(one, Mapping) and isinstance(other, Mapping) else one == other
        for one, other in both
    )
