"""Make a prompt set with the authors' own prompts, from your checkouts of their code.

    ace-bench prompts ~/ace ~/ace-appworld ~/dynamic-cheatsheet ~/stream-bench my_prompts
    ace-bench reproduce table=2 prompts=my_prompts protocol=official

Each checkout is recognised by its files: ace-agent/ace (ACE on FiNER and Formula), ace-agent/ace-appworld (ACE and
ReAct on AppWorld), suzgunmirac/dynamic-cheatsheet (dc, dc_rs), stream-bench/stream-bench (DDXPlus: base, icl,
memories). The set holds their prompts, byte for byte, and sources.json: commit, licence and checksums. What they do
not hold comes from prompts/default. Their code is read, never run.

AppWorld's files are recognised by the placeholders in them; where several fit, the one counts that the authors'
experiments name, or the one that you name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from ace_bench.cli.arguments import Parser
from ace_bench.core.errors import DataError
from ace_bench.store.environment import git_state
from ace_bench.store.files import new_folder, write_files
from ace_bench.store.imported_prompts import RECORD, UNKNOWN, ImportedSet, Source, checksum
from ace_importers import appworld, dynamic_cheatsheet, finance, stream_bench
from ace_importers.formats import noting_files, read_file

_LICENCES = {"Apache License": "Apache-2.0", "MIT License": "MIT"}


class Importer(NamedTuple):
    """``place`` shows that a folder is a checkout; ``templates`` converts its prompts, by file of the set."""

    repository: str
    place: Path
    templates: Callable[[Path], Mapping[str, str]]


IMPORTERS = (
    Importer("ace-agent/ace", finance.FOLDER, finance.templates),
    Importer(appworld.REPOSITORY, appworld.FOLDER, appworld.templates),
    Importer("suzgunmirac/dynamic-cheatsheet", dynamic_cheatsheet.FOLDER, dynamic_cheatsheet.templates),
    Importer("stream-bench/stream-bench", stream_bench.FILE, stream_bench.templates),
)


def recognise(checkouts: Sequence[Path]) -> Mapping[Path, Importer]:
    """Return what imports each checkout; raises ``DataError`` for an unknown one, and for two of one kind."""
    found: dict[Path, Importer] = {}
    for checkout in checkouts:
        importer = next((one for one in IMPORTERS if (checkout / one.place).exists()), None)
        if importer is None:
            known = ", ".join(f"{one.place} ({one.repository})" for one in IMPORTERS)
            raise DataError(f"{checkout} has none of {known}; is it a checkout of the authors' code?")
        if (other := next((path for path, one in found.items() if one is importer), None)) is not None:
            raise DataError(f"{other} and {checkout} are both checkouts of {importer.repository}: name one of them")
        found[checkout] = importer
    return found


def import_set(
    checkouts: Sequence[Path], given: Mapping[str, Path | None], say: Callable[[str], object]
) -> dict[str, str]:
    """Return the files of a set, with the record of their sources; raises ``DataError`` that names what does not fit.

    ``given`` are AppWorld's files by role, where the user names them.
    """
    files: dict[str, str] = {}
    sources = []
    for checkout, importer in recognise(checkouts).items():
        with noting_files() as texts:
            made = _templates(checkout, importer, given, say)
        source, licence = _source(checkout, importer.repository, texts)
        sources.append(source)
        files |= made
        if licence is not None:
            files[f"licences/{importer.repository.replace('/', '_')}.txt"] = licence
        say(
            f"{source.repository}: commit {source.commit}, licence {source.licence}, {len(source.read)} files read, "
            f"{len(made)} templates"
        )
    record = ImportedSet(sources=tuple(sources), files={name: checksum(text) for name, text in files.items()})
    return {**files, RECORD: msgspec.json.format(msgspec.json.encode(record)).decode() + "\n"}


def _templates(
    checkout: Path, importer: Importer, given: Mapping[str, Path | None], say: Callable[[str], object]
) -> Mapping[str, str]:
    if importer.repository != appworld.REPOSITORY:
        return importer.templates(checkout)
    files = appworld.find(checkout, given)
    for role in appworld.ROLES:
        say(f"{role.what}: {files[role.option]}")
    return appworld.templates(checkout, files)


def _source(checkout: Path, repository: str, texts: Mapping[Path, str]) -> tuple[Source, str | None]:
    """Describe a checkout, whose prompts are made from ``texts``; also return the text of its licence."""
    state = git_state(checkout) if (checkout / ".git").exists() else None
    commit = UNKNOWN if state is None else f"{state['commit']}{', with changes' * state['dirty']}"
    files = sorted(checkout.glob("LICEN[CS]E*"))
    licence = read_file(files[0]) if files else None
    first = (licence or "none found").strip().partition("\n")[0]
    named = next((name for words, name in _LICENCES.items() if licence and words in licence), first)
    read = {str(path.relative_to(checkout)): checksum(text) for path, text in texts.items() if checkout in path.parents}
    return Source(repository=repository, commit=commit, licence=named, read=read), licence


def main(arguments: Sequence[str]) -> int:
    """Write the set; the exit code is not zero if a checkout does not fit or the folder exists."""
    parser = Parser("prompts", __doc__)
    parser.add_argument("checkouts", type=Path, nargs="+", metavar="CHECKOUT", help="folder of a checkout")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to create; keep it outside this repository")
    for role in appworld.ROLES:
        parser.add_argument(f"--{role.option}", type=Path, metavar="FILE", help=f"AppWorld: the {role.what}")
    options = parser.parse_intermixed_args(arguments)
    if options.out.exists():
        raise DataError(f"{options.out} exists already; name a new folder")
    given = {role.option: getattr(options, role.option.replace("-", "_")) for role in appworld.ROLES}
    named = next((option for option, path in given.items() if path is not None), None)
    if named is not None and not any((checkout / appworld.FOLDER).is_dir() for checkout in options.checkouts):
        raise DataError(f"--{named} is for a checkout of {appworld.REPOSITORY}, and none is named")
    say = partial(Console().print, markup=False, highlight=False, soft_wrap=True)
    files = import_set(options.checkouts, given, say)
    with new_folder(options.out):
        write_files({options.out / name: text for name, text in files.items()})
    say(f"{options.out}: pass prompts={options.out}")
    return 0
