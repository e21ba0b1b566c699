"""Make a prompt set with the authors' own prompts, from your checkouts of their code.

    ace-bench prompts ~/ace ~/ace-appworld ~/dynamic-cheatsheet ~/stream-bench my_prompts
    ace-bench reproduce table=2 prompts=my_prompts protocol=official

Checkouts are recognised by their files: ace-agent/ace (ACE on FiNER and Formula), ace-agent/ace-appworld (ACE and ReAct
on AppWorld), suzgunmirac/dynamic-cheatsheet, stream-bench/stream-bench. The set holds their prompts, byte for byte, and
sources.json: commits, licences, checksums. The rest comes from prompts/default. Their code is read, never run. Of
several AppWorld files that fit a role, the one counts that the authors' experiments name, or the one that you name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ace_bench.cli.arguments import Parser
from ace_bench.cli.prompts import appworld, dynamic_cheatsheet, finance, stream_bench
from ace_bench.core.console import Console
from ace_bench.core.errors import DataError
from ace_bench.store.authors_code import describe_checkout, with_record
from ace_bench.store.files import new_folder, write_files


class Importer(NamedTuple):
    """A folder that holds ``marker`` is a checkout. ``templates`` converts its prompts, by file of the set."""

    repository: str
    marker: Path
    templates: Callable[[Path], Mapping[str, str]]


def importers(named_files: Mapping[str, Path | None], say: Callable[[str], object]) -> Sequence[Importer]:
    """Return what imports each repository; ``named_files`` are AppWorld's files by role, where the user names them."""
    return (
        Importer("ace-agent/ace", finance.FOLDER, finance.templates),
        Importer(appworld.REPOSITORY, appworld.FOLDER, partial(appworld.templates, named_files=named_files, say=say)),
        Importer("suzgunmirac/dynamic-cheatsheet", dynamic_cheatsheet.FOLDER, dynamic_cheatsheet.templates),
        Importer("stream-bench/stream-bench", stream_bench.FILE, stream_bench.templates),
    )


def recognise(checkouts: Sequence[Path], candidates: Sequence[Importer]) -> Mapping[Path, Importer]:
    """Return what imports each checkout. Raises ``DataError`` for an unknown one, and for two of one kind."""
    importers_by_checkout: dict[Path, Importer] = {}
    for checkout in checkouts:
        importer = next((candidate for candidate in candidates if (checkout / candidate.marker).exists()), None)
        if importer is None:
            names = ", ".join(candidate.repository for candidate in candidates)
            raise DataError(f"{checkout} looks like none of {names}; is it a checkout of the authors' code?")
        if (
            duplicate := next(
                (path for path, candidate in importers_by_checkout.items() if candidate is importer), None
            )
        ) is not None:
            raise DataError(f"{duplicate} and {checkout} are both checkouts of {importer.repository}: name one of them")
        importers_by_checkout[checkout] = importer
    return importers_by_checkout


def import_set(importers_by_checkout: Mapping[Path, Importer], say: Callable[[str], object]) -> dict[str, str]:
    """Return the files of a set with their record. Raises ``DataError`` that names what does not fit."""
    files, sources = dict[str, str](), []
    for checkout, (repository, _, templates) in importers_by_checkout.items():
        converted = templates(checkout)
        source, licence = describe_checkout(checkout, repository)
        sources.append(source)
        files |= {**converted, **({f"licences/{repository.replace('/', '_')}.txt": licence} if licence else {})}
        say(f"{repository}: commit {source.commit}, licence {source.licence}, {len(converted)} templates")
    return with_record(files, sources)


def main(arguments: Sequence[str]) -> int:
    """Write a set; the exit code is not zero if a checkout does not fit or the folder exists."""
    parser = Parser("prompts", __doc__)
    parser.add_argument("checkouts", type=Path, nargs="+", metavar="CHECKOUT", help="folder of a checkout")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to create; keep it outside this repository")
    for role, title in appworld.ROLES.items():
        parser.add_argument(f"--{role}", type=Path, metavar="FILE", help=f"AppWorld: the {title}")
    options = parser.parse_intermixed_args(arguments)
    if options.out.exists():
        raise DataError(f"{options.out} exists already; name a new folder")
    say = partial(Console().print, markup=False, highlight=False, soft_wrap=True)
    named_files = {role: getattr(options, role.replace("-", "_")) for role in appworld.ROLES}
    importers_by_checkout = recognise(options.checkouts, importers(named_files, say))
    roles = [role for role, path in named_files.items() if path is not None]
    if roles and not any(importer.repository == appworld.REPOSITORY for importer in importers_by_checkout.values()):
        raise DataError(f"--{roles[0]} is for a checkout of {appworld.REPOSITORY}, and none is named")
    files = import_set(importers_by_checkout, say)
    with new_folder(options.out):
        write_files({options.out / name: text for name, text in files.items()})
    say(f"{options.out}: pass prompts={options.out}")
    return 0
