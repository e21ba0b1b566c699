"""Hooks of the documentation site (``make docs``): pages kept outside ``docs/``, commands, settings, and the API.

README.md and other pages at the top of the repository link to ``docs/...``, so that they work in a checkout; on
the site the links are rewritten. A link to a file that is no page of the site, such as a module, becomes its name.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mkdocs.structure.files import File

from ace_bench.cli.main import all_commands, main
from ace_bench.cli.playbook import command as playbook
from ace_bench.cli.run_help import OptionDoc, read_option
from ace_bench.core.program import SCRIPTS
from ace_bench.core.resources import config_folders, configs_folder, options

_EXAMPLES = ("task", "method", "backbone", "ablation", "langchain_agent")
_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "results/README.md": "run-folders.md",
    "examples/README.md": "examples/index.md",
    **{f"examples/{name}/README.md": f"examples/{name}.md" for name in _EXAMPLES},
}
"""Pages outside ``docs/``, and what they are called on the site."""
_SOURCES = {page: source for source, page in _PAGES.items()}
_REFERENCE = {
    "reference/api.md": ("Python API", ("ace_bench.api",)),
    "reference/core.md": (
        "Types and protocols",
        tuple(
            f"ace_bench.core.{name}"
            for name in ("types", "task", "method", "context", "backbones", "settings", "errors")
        ),
    ),
}
_COMMANDS, _SETTINGS = "reference/commands.md", "reference/settings.md"
_GROUPS = ("task", "method", "mode", "backbone", "batch", "agent", "tracker", "launcher")
"""The groups of the page of settings. Those of the presets hold settings of these."""
_LINK = re.compile(r"(?<!`)\[(?P<text>[^]\[]+)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside ``docs/`` and those of the reference."""
    root = Path(config.config_file_path).parent
    for source, page in _PAGES.items():
        files.append(File.generated(config, page, content=(root / source).read_text(encoding="utf-8")))
    for page, (title, modules) in _REFERENCE.items():
        content = "\n\n".join([f"# {title}", *(f"::: {module}" for module in modules)]) + "\n"
        files.append(File.generated(config, page, content=content))
    files.append(File.generated(config, _COMMANDS, content=commands_page()))
    files.append(File.generated(config, _SETTINGS, content=settings_page()))
    return files


def commands_page() -> str:
    """Return the page of all commands: what each prints with ``--help``."""
    parts = ["# Commands", "`ace-bench COMMAND --help` prints the same."]
    for name, command in all_commands().items():
        script = f" In a checkout also `{SCRIPTS[name]}`." if name in SCRIPTS else ""
        parts += [
            f"## ace-bench {name}",
            f"{command.purpose[:1].upper()}{command.purpose[1:]}.{script}",
            _help_text(name),
        ]
        if name == "playbook":
            parts += [_help_text(name, subcommand) for subcommand in playbook.all_commands()]
    return "\n\n".join(parts) + "\n"


def _help_text(*words: str) -> str:
    """Return what a command prints with ``--help``, as a block of text."""
    printed = io.StringIO()
    with (
        patch.dict(os.environ, COLUMNS="110"),
        patch("sys.argv", ["ace-bench"]),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*words, "--help"])
    return f"```text\n{printed.getvalue().strip()}\n```"


def settings_page() -> str:
    """Return the page of all settings, from the comments in the folders of configs."""
    parts = ["# Settings", "Each setting with its default. `python run.py --help method=ace` prints the same."]
    parts += ["## For every run", _settings_table(read_option(configs_folder() / "config.yaml"))]
    for group in _GROUPS:
        parts.append(f"## {group}")
        for name, path in options(group, config_folders()).items():
            option = read_option(path, group)
            inherited = [f"As `{group}={parent}`, and:" for parent in option.parents]
            parts += [f"### {group}={name}", option.title, *inherited, _settings_table(option)]
            for part in option.parts:
                parts += [part.title, _settings_table(part)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _settings_table(option: OptionDoc) -> str:
    if not option.settings:
        return ""
    rows = [f"| `{setting.key}` | {_code(setting.default)} | {_escape(setting.text)} |" for setting in option.settings]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _code(text: str) -> str:
    """Return a default as code; a group has none."""
    return f"<code>{_escape(text)}</code>" if text else ""


def _escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "&#124;")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page to files of the repository."""
    name = page.file.src_uri
    folder = posixpath.dirname(_SOURCES.get(name, f"docs/{name}"))

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["target"]))
        page_path = _PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        if page_path is None or files.get_file_from_path(page_path) is None:
            exists = (Path(config.config_file_path).parent / target).exists()
            return f"{link['text']} (`{target}`)" if exists else link[0]  # strict mode refuses the rest
        return f"[{link['text']}]({posixpath.relpath(page_path, posixpath.dirname(name))}{link['anchor'] or ''})"

    return _LINK.sub(rewritten, markdown)
