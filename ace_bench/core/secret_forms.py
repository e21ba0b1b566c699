"""Finds a secret in any form in which a server echoes it: plain, escaped for a URL, HTML or JSON, or as base64 or hex.

Forms may be mixed and repeated, such as ``%2525`` or ``&amp;#x2f;``. A text is decoded first, which is cheap. Its
characters are looked at one by one only if that shows a secret.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from html.entities import html5
from urllib.parse import unquote

_SHORTEST = 8
"""Of shorter secrets, which may be words, base64 and hex leave too little to tell them from other texts."""
_ROUNDS = 5
"""A text is decoded at most this many times."""
_ENCODED = re.compile(r"[%&\\]")
_UNIT = re.compile(r"\\(?:u00|x)([0-9a-fA-F]{2})")
_IN_BASE64 = r"[A-Za-z0-9+/_-]"
_NAMES: dict[str, list[str]] = {}
for _name, _character in html5.items():
    if _name.endswith(";"):
        _NAMES.setdefault(_character, []).append(_name)


class SecretForms:
    """Replaces secrets in texts; what they look like encoded is worked out once."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """``secrets`` are not empty; the longest is replaced first."""
        self._secrets = sorted({*secrets} - {""}, key=lambda secret: (-len(secret), secret))

    def hide(self, text: str, mark: str) -> str:
        """Return the text with ``mark`` in place of every secret."""
        if not self._secrets:
            return text
        decoded = _decode(text) if _ENCODED.search(text) else text
        return self._pattern.sub(mark, text) if any(form in decoded for form in self._forms) else text

    @cached_property
    def _forms(self) -> frozenset[str]:
        forms = (form for secret in self._secrets for form in (secret, *_hex_of(secret), *_base64_of(secret)))
        return frozenset(map(_decode, forms))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = list[str]()
        for secret in self._secrets:
            parts += map(_spelled, (secret, json.dumps(secret)[1:-1], *_hex_of(secret)))
            parts += [f"{_IN_BASE64}{{0,3}}{_spelled(core)}{_IN_BASE64}{{0,3}}={{0,2}}" for core in _base64_of(secret)]
        return re.compile("|".join(dict.fromkeys(parts)))


@lru_cache(maxsize=8)
def forms_of(secrets: tuple[str, ...]) -> SecretForms:
    """Return the forms of some secrets. Every message needs the forms of the environment's secrets."""
    return SecretForms(secrets)


def _decode(text: str) -> str:
    """Return what a text means once nothing in it is encoded any more, without backslashes."""
    for _ in range(_ROUNDS):
        before, text = text, _UNIT.sub(lambda unit: chr(int(unit[1], 16)), text.replace("\\\\", "\\"))
        text = unquote(html.unescape(text))
        if text == before:
            break
    return text.replace("\\", "")


def _hex_of(secret: str) -> tuple[str, ...]:
    if len(secret) < _SHORTEST:
        return ()
    digits = secret.encode("utf-8", "surrogatepass").hex()
    return digits, digits.upper()


def _base64_of(secret: str) -> Iterator[str]:
    """Yield what base64 makes of a secret wherever it begins within a longer text, without the ends it shares."""
    content = secret.encode("utf-8", "surrogatepass")
    for before in range(3) if len(secret) >= _SHORTEST else ():
        encoded = base64.b64encode(bytes(before) + content).decode()
        core = encoded[(0, 2, 3)[before] : (before + len(content)) // 3 * 4]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))


def _spelled(form: str) -> str:
    return "".join(map(_spelled_character, form))


@lru_cache(maxsize=512)
def _spelled_character(character: str) -> str:
    """Return a pattern of all the ways to write a character. Its repetitions are bounded, so that it stays fast."""
    number, content = ord(character), character.encode("utf-8", "surrogatepass")
    ways = [
        rf"\\{{0,4}}{re.escape(character)}",
        "".join(rf"%(?:25){{0,3}}(?i:{byte:02x})" for byte in content),
        rf"&(?:amp;){{0,3}}(?:#0{{0,6}}{number};?|#[xX]0{{0,6}}(?i:{number:x});?)",
        rf"\\{{1,4}}(?:u(?i:{number:04x})|x(?i:{number:02x}))",
    ]
    ways += [rf"&(?:amp;){{0,3}}{name}" for name in _NAMES.get(character, ())]
    return f"(?:{'|'.join(ways)})"
