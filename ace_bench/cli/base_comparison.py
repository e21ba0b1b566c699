"""Makes one run and prints how it differs from the base's runs beside it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ace_bench.core.errors import StoreError
from ace_bench.runners.composing import RunConfig
from ace_bench.runners.host import Host
from ace_bench.runners.run import run


def run_beside_base(config: RunConfig, host: Host) -> None:
    """Make a run as ``run`` does. The comparison is printed before the run's folder, which is the last line."""
    folders = list[Path]()

    def note(folder: Path) -> None:
        host.on_folder(folder)
        folders.append(folder)

    if run(config, replace(host, on_folder=note)) is None:
        return
    from ace_bench.report.gains import against_base
    from ace_bench.report.records import read_run

    for folder in dict.fromkeys(folders):
        with suppress(StoreError):  # a folder that is damaged: the run has said so
            for sentence in against_base(read_run(folder)):
                host.say(sentence)
