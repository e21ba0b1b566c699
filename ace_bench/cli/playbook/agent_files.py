"""Read an exported AGENTS.md, CLAUDE.md or skill back, with what people changed in it.

    ace-bench playbook import AGENTS.md --into playbook.json
    ace-bench playbook import .claude/skills/accounting --into playbook.json --dry-run

Entries whose text was edited change, deleted ones go, added ones join with a new id. Ids stay, and so do the counters
of FILE.json; where that does not exist, the export's counters. Bullets that FILE.json learnt since the export also
stay.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.cli.playbook.difference import playbook_diff
from ace_bench.cli.playbook.looking import print_diff, read_playbook
from ace_bench.cli.playbook.markdown import Block, enclose, merge_edits, put_block, read_block, write_block
from ace_bench.contexts.loading import change_playbook, save_context, system_prompt
from ace_bench.core.console import Console
from ace_bench.core.errors import ConfigError, DataError
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.playbook import Playbook
from ace_bench.store.files import write_files

_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{0,62}[a-z0-9]")
_SKILL, _REFERENCES = "SKILL.md", "references"
_HEAD = """---
name: {name}
description: {description}
---
"""
_LONGEST_DESCRIPTION = 1024
"""Characters; agents refuse skills with longer ones."""


def write_prompt(book: Playbook, out: Path, _about: str) -> Sequence[Path]:
    """Write a playbook as a part of a system prompt. Return the file."""
    return _write({out: f"{system_prompt(book)}\n"})


def write_agents(book: Playbook, out: Path, _about: str) -> Sequence[Path]:
    """Put a playbook into AGENTS.md, CLAUDE.md or any Markdown file, whose other text stays. Return the files."""
    if out.suffix.lower() != ".md":
        raise ConfigError(f"{out} is not a Markdown file: name AGENTS.md or CLAUDE.md with --out")
    return _write({out: put_block(_read(out), write_block(book.bullets, title="Playbook"), str(out))})


def write_skill(book: Playbook, out: Path, about: str) -> Sequence[Path]:
    """Write a playbook as the folder of a skill: SKILL.md and one file a section. Return the files.

    Agents choose a skill by its description, which says what the tasks are ``about``. In a skill that exists, all text
    but the entries stays.
    """
    if not _NAME.fullmatch(out.name):
        raise ConfigError(f"{out}: the folder's name is the skill's: lowercase letters, digits and single hyphens")
    sections: dict[str, list[Bullet]] = {path.stem: [] for path in _references(out)}  # one may be empty by now
    for bullet in book.bullets:
        sections.setdefault(bullet.section, []).append(bullet)
    titles = {name: name.replace("_", " ").capitalize() for name in sections}
    sizes = {
        name: f"{len(bullets_of_section)} {'entry' if len(bullets_of_section) == 1 else 'entries'}"
        for name, bullets_of_section in sections.items()
    }
    links = [f"- [{titles[name]}]({_REFERENCES}/{name}.md): {size}" for name, size in sizes.items()]
    head = _read(out / _SKILL) or _HEAD.format(name=out.name, description=_describe_skill(about, out))
    index = enclose(["Read the part that fits the task:", "", *links, ""])
    texts = {out / _SKILL: put_block(head, index, str(out / _SKILL))}
    for name, bullets in sections.items():
        path = out / _REFERENCES / f"{name}.md"
        texts[path] = put_block(_read(path), write_block(bullets, title=titles[name]), str(path))
    return _write(texts)


def _describe_skill(about: str, out: Path) -> str:
    """Return the description as a YAML string. Raises ``ConfigError`` where nothing says what the tasks are about."""
    if not about:
        raise ConfigError(
            f"{out}: agents choose a skill by its description; say what its tasks are, "
            'such as --about "Sort each support ticket to the team that handles it."'
        )
    kind = textwrap.shorten(about, _LONGEST_DESCRIPTION - 200)
    return json.dumps(
        f"Lessons from earlier work on such tasks: {kind} Use them before you start on a task of this kind.",
        ensure_ascii=False,
    )


def _references(folder: Path) -> list[Path]:
    return sorted((folder / _REFERENCES).glob("*.md"))


def _read(path: Path) -> str:
    """Return a text with its own line breaks, "" without a file; raises ``DataError``."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text") from error


def _write(texts: Mapping[Path, str]) -> Sequence[Path]:
    return write_files({path.resolve(): text for path, text in texts.items()})  # a link stays a link


def read_edits(path: Path) -> Block:
    """Return the entries in a file or a skill's folder. Raises ``DataError`` without any."""
    files = [path] if not path.is_dir() else [path / _SKILL, *_references(path)]
    blocks = [block for file in files if (block := read_block(_read(file), str(file))) is not None]
    if not any(block.entries or block.exported for block in blocks):
        raise DataError(f"{path} holds no playbook: write one with `ace-bench playbook export --as`")
    return Block(
        entries=tuple(entry for block in blocks for entry in block.entries),
        exported={name: exported for block in blocks for name, exported in block.exported.items()},
    )


def import_playbook(arguments: Sequence[str]) -> int:
    """Print the changes, write the playbook, and return the exit status."""
    parser = Parser("playbook import", __doc__)
    parser.add_argument("source", type=Path, help="Markdown file, or folder of a skill")
    parser.add_argument("--into", type=Path, required=True, metavar="FILE.json", help="playbook to change, or to make")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    edits, console = read_edits(options.source), Console(highlight=False, soft_wrap=True)

    def change(book: Playbook) -> Playbook:
        changed = merge_edits(book, edits, source=options.source.name)
        print_diff(playbook_diff(book, changed), console)
        return changed

    if options.dry_run:
        change(read_playbook(options.into) if options.into.exists() else Playbook.start(()))
        return 0
    if not options.into.exists():
        save_context(Playbook.start(()), options.into)
    playbook = change_playbook(options.into, change)
    print_line(f"{options.into}: {playbook.size} bullets")
    return 0
