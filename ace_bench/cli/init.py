"""Make the configuration of a first experiment: a few questions, or options, and checks before anything is spent.

    ace-bench init
    ace-bench init tickets.csv
    ace-bench init --task finer --data sample --method ace --model embedded --budget none
    ace-bench init --model NAME@http://localhost:8000/v1 --budget 500calls limit=20 mode.epochs=1

What no option says is asked for; an empty line takes the default. Of a table of your own it proposes the columns, the
grader and an instruction, and shows how often each answer stands. The data, the results folder and the model are
checked, and what a real model will cost is estimated. Then the file is written, and the command that runs it printed.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ace_bench.cli.arguments import Parser, print_line
from ace_bench.cli.own_table import settings_of
from ace_bench.core.errors import ConfigError
from ace_bench.core.resources import config_folders, options
from ace_bench.store.files import write_files
from ace_bench.tasks.qa.files import SUFFIXES

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BUDGET = re.compile(r"(?P<amount>\d+(\.\d+)?)\s*(?P<what>usd|calls|tokens)?")
_NO_BUDGET = "none"
_HEAD = "# @package _global_\n# Made by ace-bench init; `ace-bench run --help` lists the settings.\n"
_SOURCES = {"sample": "task.source=sample", "real": "task.source=real"}


_QUESTIONS = {
    "task": ("task: finer, formula, ddxplus, bird_sql, appworld, or qa for a table of your own", "finer"),
    "data": ("data: sample, real (from `ace-bench data TASK`), a folder, or a table", "sample"),
    "method": ("method: ace, base, gepa, dc ... (docs/methods.md)", "ace"),
    "model": ("model: embedded (no model), a backbone such as gpt_5_1, or NAME@URL", "embedded"),
    "budget": ("budget: none, dollars such as 5, 500calls, or 1000000tokens", _NO_BUDGET),
}
"""What a user is asked, which is the help of the option, too, and the default."""
_OF_A_TABLE = {
    "question": "column with the question",
    "answer": "column with the right answer",
    "split": "column that says train, val or test; none: drawn",
    "grader": "exact, numeric, choice, contains, f1, judge or python:MODULE.FUNCTION",
    "instruction": "what the model shall do; none: a sentence that suits the grader",
}
"""What a user is also asked about a table; the defaults are what the table suggests."""


def main(arguments: Sequence[str]) -> int:
    """Ask, check, write and print. Return the exit status."""
    parser = Parser("init", __doc__)
    for name, (text, default) in _QUESTIONS.items():
        parser.add_argument(f"--{name}", help=f"{text} (default: {default})")
    for name, text in _OF_A_TABLE.items():
        parser.add_argument(f"--{name}", help=f"own data: {text}")
    parser.add_argument("--key-env", metavar="VARIABLE", help="the variable that holds the key of NAME@URL")
    words = "a table of your own (.csv, .tsv, .jsonl, .json), and more settings, as in a command of run"
    parser.add_argument("settings", nargs="*", metavar="TABLE, KEY=VALUE", help=words)
    parser.add_argument("--name", default="first", help="of the file and of the folder in results/ (default: first)")
    parser.add_argument("--into", type=Path, default=Path("experiments"), help="folder (default: experiments)")
    options_given = parser.parse_intermixed_args(arguments)
    if not _NAME.fullmatch(options_given.name):
        raise ConfigError(f"--name {options_given.name} must be letters, digits, - and _")
    table, more = _table_and_settings(options_given.settings)
    path = options_given.into / "experiment" / f"{options_given.name}.yaml"
    if path.exists():
        raise ConfigError(f"{path} exists: choose another --name, or remove it")
    if options_given.name in options("experiment", config_folders()):
        raise ConfigError(f"--name {options_given.name} is a preset already: choose another")
    from omegaconf import OmegaConf

    given = {**vars(options_given), **({"task": options_given.task or "qa", "data": table} if table else {})}
    answers = {name: given[name] or _ask(*_QUESTIONS[name]) for name in ("task", "data")}
    own = answers["data"].endswith(SUFFIXES)
    if own != (answers["task"] == "qa"):
        raise ConfigError("task=qa reads a table of your own, and no other task does: ace-bench init tickets.csv")
    settings = settings_of(Path(answers["data"]), given, _ask) if own else [_data_setting(answers["data"])]
    answers |= {name: given[name] or _ask(*question) for name, question in _QUESTIONS.items() if name not in answers}
    groups, further = _overrides(answers, options_given.key_env)
    settings += [*further, f"name={options_given.name}", *more]
    _check([*(f"{group}={option}" for group, option in groups.items()), *settings])
    chosen = "".join(f"  - override /{group}: {option}\n" for group, option in groups.items())
    settings_yaml = OmegaConf.to_yaml(OmegaConf.from_dotlist(settings))
    write_files({path: f"{_HEAD}defaults:\n{chosen}\n{settings_yaml}"})
    print_line(f"Wrote {path}. Run it:")
    print_line(f"ace-bench run --config-dir {shlex.quote(str(options_given.into))} experiment={options_given.name}")
    return 0


def _ask(text: str, default: str) -> str:
    """Read an answer from the standard input; its end and an empty line mean the default."""
    sys.stderr.write(f"{text} [{default}]: ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    sys.stderr.write("" if line else "\n")
    return line.strip() or default


def _table_and_settings(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the table that is named, if one is, and the settings. Raises ``ConfigError`` for anything else."""
    tables = [word for word in words if word.endswith(SUFFIXES) and "=" not in word]
    settings = [word for word in words if word not in tables]
    if wrong := [word for word in settings if "=" not in word]:
        raise ConfigError(f"{wrong[0]} is not a setting: write KEY=VALUE, or a table that ends in .csv or the like")
    if tables[1:]:
        raise ConfigError(f"{tables[0]} and {tables[1]} are two tables: name one, with a column for the splits")
    return next(iter(tables), None), settings


def _data_setting(data: str) -> str:
    """Return the setting that names the data of one of the paper's tasks."""
    if data not in _SOURCES and not Path(data).is_dir():
        raise ConfigError(
            f"--data {data} is not a folder: say sample, real, the folder of the task's files, or a table of your own "
            f"({', '.join(SUFFIXES)})"
        )
    return _SOURCES.get(data, f"task.data_dir={data}")


def _overrides(answers: Mapping[str, str], key_env: str | None) -> tuple[dict[str, str], list[str]]:
    """Return the option of each group, and the settings of model and budget as in a command of ``run``."""
    model, budget = answers["model"], answers["budget"]
    settings = list[str]()
    name, separator, url = model.partition("@")
    if key_env and not separator:
        raise ConfigError("--key-env is for a model given as NAME@URL: the other backbones name their variable")
    if separator:
        settings += [f"backbone.model={name}", f"backbone.base_url={url}", f"backbone.api_key_env={key_env or 'null'}"]
    if budget != _NO_BUDGET:
        amount = _BUDGET.fullmatch(budget)
        if amount is None:
            raise ConfigError(f"--budget {budget} is no budget: say none, 5 (dollars), 500calls or 1000000tokens")
        settings.append(f"budget.{amount['what'] or 'usd'}={amount['amount']}")
    backbone = "openai_compatible" if separator else model
    return {"task": answers["task"], "method": answers["method"], "backbone": backbone}, settings


def _check(arguments: Sequence[str]) -> None:
    """Check data, folder, model and budget as a run does before its first call. Raises ``AceBenchError``."""
    from ace_bench.core.console import Console
    from ace_bench.runners import preflight
    from ace_bench.runners.composing import compose_run
    from ace_bench.runners.host import Host
    from ace_bench.runners.identifying import identify
    from ace_bench.runners.limits import Stop
    from ace_bench.runners.run import build_run
    from ace_bench.runners.settings import decode
    from ace_bench.store.call_log import Account

    spec = preflight.check_beginning(build_run(identify(decode(compose_run(arguments)))))
    splits = getattr(spec.task, "splits", ("train", "val", "test"))
    sizes = ", ".join(f"{split} {len(spec.task.samples(split)[: spec.limits.get(split)])}" for split in splits)
    print_line(f"data: {spec.task.source}, samples: {sizes}")
    preflight.check_beside(spec)
    print_line("model: no language model, nothing to pay" if spec.simulated else "model: answers")
    preflight.check_estimate(spec, Account(), Host(console=Console()), Stop())
