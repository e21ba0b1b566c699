"""Replaces secrets in error messages; ours, because detect-secrets does not know the values of this environment.

Never apply it to replies of a model: in those, only the keys that this process sent are replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ace_bench.core.secret_forms import forms_of

HIDDEN = "[key]"

_NAME = re.compile(
    r"(^|_)(api_?key|(access|account|private|secret|subscription)_?key|(access|api|auth|bearer|hf|hub|id|refresh"
    r"|security|session)_?token|passw(or)?d|passphrase|pwd|secret|credentials?|authorization|cookie)$|^(auth|token)$"
)
_PARAMETER = re.compile(rf"{_NAME.pattern}|^(key|sig|signature|sas)$")
_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
SHORTEST = 12
"""Shorter values may be ordinary words: people often send one to a server without keys."""
_FORMS = re.compile(
    r"\bsk-[\w-]{16,}|\bhf_\w{20,}|\bgh[opsu]_\w{20,}|\bxox[abprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+|\bBearer\s+[\w.~+/-]{8,}"
)
_MASKED = re.compile(r"\bsk-[\w*.-]{4,}")
"""A key as servers show it, partly masked."""
_LOGIN = re.compile(r"(\w://)([^\s'\"/?#]{0,2000}|[^\s'\"/?#]{0,200}:[^\s'\"]{0,2000})@")
"""User and password of an address; a password may contain a slash, though it should not.

Its lengths are bounded so that a long text takes linear time.
"""
_QUERY = re.compile(r"[?&]([\w.%-]+)=([^\s&#'\"]+)")


def redact(text: str) -> str:
    """Replace keys, passwords in addresses and the values of secret environment variables in a message."""
    text = forms_of(tuple(secrets_of_environment())).hide(text, HIDDEN)
    if "@" in text:
        text = _LOGIN.sub(rf"\g<1>{HIDDEN}@", text)
    text = _MASKED.sub(HIDDEN, _FORMS.sub(HIDDEN, text))
    return _QUERY.sub(lambda one: f"{one[0][: -len(one[2])]}{HIDDEN}" if _secret_parameter(one[1]) else one[0], text)


def redact_argument(word: str) -> str:
    """Replace secrets in a word of a command, the value of ``NAME=value`` where the name says that it is one.

    The home folder becomes ``~``, because it names the user.
    """
    name, _, value = word.partition("=")
    if value and secret_by_name(name):
        return f"{name}={HIDDEN}"
    home = os.path.expanduser("~")
    return redact(re.sub(rf"(?<![^=:,\[]){re.escape(home)}(?=/|$)", "~", word) if len(home) > 1 else word)


def secret_by_name(name: str) -> bool:
    """Return whether a setting, header or flag holds a secret by its name, such as ``api_key`` or ``X-Auth-Token``."""
    spaced_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2])
    return bool(_NAME.search(re.sub(r"\W", "_", spaced_name).lower()))


def secret_by_value(value: str, secrets: Sequence[str]) -> str:
    """Describe the secret that a text holds, as the end of a sentence; "" if it holds none.

    ``secrets`` is what `secrets_of_environment` returns: one reading of the environment serves many values.
    """
    if _LOGIN.search(value):
        return "holds an address with a user or a password"
    if any(_secret_parameter(match[1]) for match in _QUERY.finditer(value)):
        return "holds an address with a secret in its query"
    if any(secret in value for secret in secrets):
        return "holds the value of a secret environment variable"
    return "holds what looks like a key" if _FORMS.search(value) else ""


def secrets_of_environment() -> list[str]:
    """Return the values of variables that hold a secret by their name, the longest first."""
    values = {value.strip() for name, value in os.environ.items() if _VARIABLE.search(name.upper())}
    return sorted(
        (value for value in values if len(value) >= SHORTEST and not value.startswith("/")), key=len, reverse=True
    )


def _secret_parameter(name: str) -> bool:
    return bool(_PARAMETER.search(re.sub(r"\W", "_", name).lower()))
