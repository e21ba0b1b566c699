"""The AppWorld repository (ace-agent/ace-appworld): prompts are text files, recognised by their placeholders.

Some sentences of the prompts stand in the authors' code; ``appworld_texts`` reads them from the same checkout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from ace_bench.core.errors import DataError
from ace_importers.appworld_texts import Texts, read_texts
from ace_importers.formats import (
    convert_file,
    doubled,
    doubled_fields,
    either,
    exact_block,
    format_fields,
    literal,
    named,
)

REPOSITORY = "ace-agent/ace-appworld"
FOLDER = Path("experiments") / "prompts"
_CONFIGS = Path("experiments") / "configs"

_CONFIGURED = re.compile(r'_prompt_file_path"?\s*:.*?["/]([^/"\n]+)"')
_TURN = re.compile(r"(USER|ASSISTANT|SYSTEM):\n", re.IGNORECASE)
_PLAYBOOK = "official_playbook(counters=false)"
_PERSON = ("first_name", "last_name", "email", "phone_number")
_GENERATOR = {
    "playbook": f"{{{{ {_PLAYBOOK} }}}}",
    "app_descriptions": "{{ app_descriptions }}",
    "input_str": "{{ question }}",
    **{f"main_user.{field}": f"{{{{ {field} }}}}" for field in _PERSON},
}
_REFLECTOR = {"ground_truth_code": "gold", "test_report": "report", "playbook": _PLAYBOOK}
"""Placeholders with a value of their own; the code's fixed texts fill the others."""
_TRUTH = frozenset({"ground_truth_code", "test_report"})
_CURATOR = {
    "question_context": "{{ question }}",
    "current_playbook": f"{{{{ {_PLAYBOOK} }}}}",
    "guidebook": "{{ reflection }}",
}
_PLACES = frozenset({*_REFLECTOR, "generated_code", "generated_rationale", "spec_or_api_docs", "execution_error"})
_STEPS = (
    "{% for message in conversation() %}[{{ loop.index0 }}] {{ message.role | upper }}: {{ message.content }}\n\n"
    "{% endfor %}"
)
_OUTPUT_CHARS = 20_000


ROLES: Mapping[str, str] = MappingProxyType(
    {
        "generator": "Generator with a playbook",
        "react": "Agent without a playbook",
        "reflector": "Reflector with ground truth",
        "reflector-blind": "Reflector without ground truth",
        "curator": "Curator",
    }
)


def role_of(text: str) -> str | None:
    """Return the role whose placeholders a text has, ``None`` if it is no prompt of these."""
    names = doubled_fields(text)
    if "input_str" in names and _TURN.match(text.lstrip()):
        return "generator" if "playbook" in names else "react"
    if (names - {"playbook"}) & _PLACES:
        return "reflector" if names & _TRUTH else "reflector-blind"
    return "curator" if "current_playbook" in format_fields(text) else None


def find(checkout: Path, given: Mapping[str, Path | None]) -> Mapping[str, Path]:
    """Return the file of each role: the given one, else the only one that fits.

    Of several that fit, it is the only one that the authors' experiments name, else the one of the role's name. A given
    file is looked for here, in the checkout and in its folder of prompts. Raises ``DataError``.
    """
    texts = dict(_texts(checkout / FOLDER))
    configured = {name for _, text in _texts(checkout / _CONFIGS) for name in _CONFIGURED.findall(text)}
    found: dict[str, Path] = {}
    for role, what in ROLES.items():
        if (own := given.get(role)) is not None:
            places = (own, checkout / own, checkout / FOLDER / own)
            found[role] = next((path for path in places if path.is_file()), places[1])
            continue
        fitting = [path for path, text in texts.items() if role_of(text) == role]
        fitting = [path for path in fitting if path.name in configured] or fitting
        fitting = [path for path in fitting if path.stem == role] or fitting
        if len(fitting) != 1:
            names = ", ".join(str(path.relative_to(checkout)) for path in fitting)
            count = f"{len(fitting)} files could be" if fitting else "no file looks like"
            raise DataError(
                f"{checkout / FOLDER}: {count} the {what}{f': {names}' if names else ''}; name it with --{role} FILE"
            )
        found[role] = fitting[0]
    return found


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                yield path, path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue


def templates(checkout: Path, given: Mapping[str, Path | None], say: Callable[[str], object]) -> Mapping[str, str]:
    """Return templates by file of the set, and ``say`` the file of each role; raises ``DataError`` that names it."""
    files, texts = find(checkout, given), read_texts(checkout)
    for role, what in ROLES.items():
        say(f"{what}: {files[role]}")
    steps = literal(texts.history) + _STEPS
    fixed = {name: literal(text) for name, text in texts.reflector.items()}
    reflector = fixed | {name: _fill_or(field, fixed.get(name, "")) for name, field in _REFLECTOR.items()}
    blind = reflector | dict.fromkeys(_TRUTH, "")  # one file may serve both
    curator = {name: literal(text) for name, text in texts.curator.items()} | _CURATOR
    seen = convert_file(files["reflector"], lambda text: doubled(text, reflector))
    unseen = convert_file(files["reflector-blind"], lambda text: doubled(text, blind))
    return {
        "agent/generator.j2": convert_file(files["generator"], dialogue),
        "agent/base.j2": convert_file(files["react"], dialogue),
        "agent/reflector.j2": exact_block(either('labels == "gold"', seen, unseen) + steps),
        "agent/curator.j2": exact_block(convert_file(files["curator"], lambda text: named(text, curator)) + steps),
        **_conversation(texts),
    }


def _conversation(texts: Texts) -> Mapping[str, str]:
    """Return the templates of what follows the first messages of an attempt."""
    before, after = map(literal, texts.retry)
    cut = f"{{% if raw_output | length > {_OUTPUT_CHARS} %}}{literal(texts.cut)}{{% endif %}}"
    shown = f"Output:\n```\n{{{{ raw_output[:{_OUTPUT_CHARS}] }}}}{cut}```\n\n"
    no_code = "Output:\n```\n(The reply held no code to run.)```\n\n"
    memory = "{% if memory %}<memory>\n{{ memory }}\n</memory>\n\n{% endif %}"
    return {
        "agent/observation.j2": exact_block(either("raw_output is none", no_code, shown) + memory),
        "agent/retry.j2": exact_block(before, "user_exact_1")
        + exact_block("{{ reflection }}\n\n", "assistant_exact_2")
        + exact_block(after, "user_exact_3"),
        "agent/left_out.j2": exact_block(literal(texts.output_left_out), "user_exact_output")
        + exact_block(literal(texts.history_left_out), "user_exact_history"),
    }


def dialogue(text: str) -> str:
    """Turn a prompt file of an agent into a template: a dialogue whose turns are split once it is filled."""
    lines = text.lstrip().removesuffix("\n")  # as Jinja reads their file
    if not _TURN.match(lines):
        raise DataError("no dialogue that begins with a turn USER:")
    return exact_block(doubled(lines, _GENERATOR) + "\n\n", "dialogue")


def _fill_or(field: str, otherwise: str) -> str:
    return either(field, f"{{{{ {field} }}}}", otherwise)
