"""The AppWorld repository (ace-agent/ace-appworld): prompts are text files, recognised by their placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ace_bench.cli.official_prompts.formats import (
    doubled,
    doubled_fields,
    either,
    format_fields,
    literal,
    named,
    user_block,
)
from ace_bench.core.errors import DataError

FOLDER = Path("experiments") / "prompts"

_TURN = re.compile(r"^(USER|ASSISTANT):[ \t]*\n?", re.MULTILINE)
_PLAYBOOK = "{{ official_playbook(counters=false) }}"
_PERSON = ("first_name", "last_name", "email", "phone_number")
_GENERATOR = {
    "playbook": _PLAYBOOK,
    "app_descriptions": "{{ background | trim }}",
    "input_str": "{{ question }}",
    **{f"main_user.{field}": f"{{{{ {field} }}}}" for field in _PERSON},
}
_AGAIN = """{% if reflection != "(none)" %}

Reflection on an earlier attempt at this task:
{{ reflection }}{% endif %}"""
"""The official code appends a reflection to the next attempt's conversation; here it follows the task."""

_STEPS = "Task: {{ question }}\n\n{{ trajectory }}"
_REFLECTOR = {
    "ground_truth_code": "{{ gold }}",
    "test_report": "{{ feedback }}",
    "generated_code": _STEPS,
    "generated_rationale": "{{ reasoning }}",
    "execution_error": "(shown with the steps)",
    "spec_or_api_docs": "{{ background | trim }}",
    "playbook": _PLAYBOOK,
    "previous_reflection": "(none)",
}
_TRUTH = frozenset({"ground_truth_code", "test_report"})
_REFLECTOR_BLIND = {
    **{name: field for name, field in _REFLECTOR.items() if name not in _TRUTH},
    "execution_error": "{{ feedback }}",  # the environment's own output, and with labels=correctness a verdict
}
_CURATOR = {
    "question_context": "{{ question }}",
    "current_playbook": _PLAYBOOK,
    "final_generated_code": "{{ trajectory }}",
    "guidebook": "{{ reflection }}",
}
_EXAMPLES = "Worked examples follow."
"""The first user turn of the examples, if the official first turn ends with a placeholder."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """A prompt to find: ``option`` names it, ``fits`` recognises its text."""

    option: str
    what: str
    fits: Callable[[str], bool]


def _is_generator(text: str) -> bool:
    return bool(_TURN.match(text.lstrip())) and {"playbook", "input_str"} <= doubled_fields(text)


def _is_reflector(text: str) -> bool:
    return bool((doubled_fields(text) - {"playbook"}) & _REFLECTOR.keys()) and not _is_generator(text)


ROLES = (
    Role(option="generator", what="Generator with a playbook", fits=_is_generator),
    Role(
        option="reflector",
        what="Reflector with ground truth",
        fits=lambda text: _is_reflector(text) and bool(doubled_fields(text) & _TRUTH),
    ),
    Role(
        option="reflector-blind",
        what="Reflector without ground truth",
        fits=lambda text: _is_reflector(text) and not doubled_fields(text) & _TRUTH,
    ),
    Role(option="curator", what="Curator", fits=lambda text: "current_playbook" in format_fields(text)),
)


def find(checkout: Path, given: Mapping[str, Path | None]) -> Mapping[str, Path]:
    """Return the file of each role: the given one, else the only one that fits; raises ``DataError``."""
    texts = dict(_texts(checkout / FOLDER))
    found: dict[str, Path] = {}
    for role in ROLES:
        own = given.get(role.option)
        if own is not None:
            found[role.option] = own if own.is_file() else checkout / own
            continue
        fitting = [path for path, text in texts.items() if role.fits(text)]
        if len(fitting) != 1:
            names = ", ".join(str(path.relative_to(checkout)) for path in fitting)
            count = f"{len(fitting)} files could be" if fitting else "no file looks like"
            raise DataError(
                f"{checkout / FOLDER}: {count} the {role.what}{f': {names}' if names else ''}; "
                f"name it with --{role.option} FILE"
            )
        found[role.option] = fitting[0]
    return found


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                yield path, path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue


def templates(files: Mapping[str, Path]) -> Mapping[str, str]:
    """Return templates by file of the set; raises ``DataError`` that names the file."""

    def read(option: str, convert: Callable[[str], Mapping[str, str] | str]) -> Mapping[str, str]:
        path = files[option]
        try:
            made = convert(path.read_text(encoding="utf-8").replace("\r\n", "\n"))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from error
        except (DataError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: {error}") from error
        return {"": made} if isinstance(made, str) else made

    reflector = read("reflector", lambda text: doubled(text, _REFLECTOR))[""]
    # One file may serve both; it then gets only the fields that are allowed for each.
    blind = read(
        "reflector-blind", lambda text: doubled(text, {**dict.fromkeys(_TRUTH, "(unknown)"), **_REFLECTOR_BLIND})
    )
    curator = read("curator", lambda text: named(text, _CURATOR))[""]
    return {
        **read("generator", dialogue),
        "agent/reflector.j2": user_block(either('labels == "gold"', reflector, blind[""])),
        "agent/curator.j2": user_block(curator),
    }


def dialogue(text: str) -> Mapping[str, str]:
    """Turn a dialogue into the templates ``generator`` and ``demonstrations``.

    Its last turn holds the current task, the turns before are worked examples. The first turn up to its last
    placeholder becomes the system message, because examples have no placeholders.
    """
    _, *parts = _TURN.split(text.strip())
    turns = list(zip(parts[::2], (said.strip() for said in parts[1::2]), strict=True))
    if not turns or turns[0][0] != "USER" or turns[-1][0] != "USER":
        raise DataError("no dialogue that begins and ends with a turn USER:")
    task = user_block(doubled(turns[-1][1], _GENERATOR) + _AGAIN)
    if len(turns) == 1:
        return {"agent/generator.j2": task}
    head, tail = _split(turns[0][1])
    examples = [("USER", tail or _EXAMPLES), *turns[1:-1]]
    inner = next((name for _, said in examples for name in doubled_fields(said)), None)
    if inner is not None:
        raise DataError(
            f"a worked example holds {{{{{inner}}}}}; only the first and the last turn may hold placeholders"
        )
    system = f"{{% block system %}}{doubled(head, _GENERATOR)}{{% endblock %}}\n" if head else ""
    shown = "\n".join(f"{speaker}:\n{literal(said)}" for speaker, said in examples)
    return {"agent/generator.j2": system + task, "agent/demonstrations.j2": user_block(shown)}


def _split(text: str) -> tuple[str, str]:
    """Split a turn after the last line with a placeholder."""
    lines = text.split("\n")
    last = max((place for place, line in enumerate(lines) if doubled_fields(line)), default=-1)
    return "\n".join(lines[: last + 1]).strip(), "\n".join(lines[last + 1 :]).strip()
