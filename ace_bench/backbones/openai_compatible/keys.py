"""The key of an endpoint and its other secret headers: read from the environment, and hidden in replies and errors."""

from __future__ import annotations

import base64
import os
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ace_bench.backbones.openai_compatible.settings import Address
from ace_bench.core.errors import SettingError
from ace_bench.core.redaction import HIDDEN, SHORTEST, redact
from ace_bench.core.secret_forms import SecretForms

_PLACEHOLDER = "none"
"""Sent as the key to servers that need none; they ignore it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """The key of an endpoint, and the headers of the settings by their names in lower case. Its repr shows none."""

    key: str
    headers: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    """Texts to hide in replies and errors."""
    logins: tuple[str, ...] = ()
    """Proxy credentials to hide in errors."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"

    def hide(self, text: str) -> str:
        """Replace every secret in a reply. Short ones stay: servers without keys are often sent a word such as
        EMPTY."""
        return self._forms_in_replies.hide(text, HIDDEN)

    def hide_in_error(self, text: str) -> str:
        """Replace all secrets and everything that looks like one, such as partly masked keys."""
        return redact(self._forms_in_errors.hide(text, HIDDEN))

    @cached_property
    def _forms_in_replies(self) -> SecretForms:
        return SecretForms(secret for secret in self.texts if len(secret) >= SHORTEST)

    @cached_property
    def _forms_in_errors(self) -> SecretForms:
        return SecretForms((*self.texts, *self.logins))


def read_secrets(address: Address) -> Secrets:
    """Read the environment; raises ``ConfigError`` naming the variable that is missing."""
    variable, key = address.api_key_env, _PLACEHOLDER
    if variable is not None:
        key = _read("api_key_env", variable, "or set it to null where the server needs no key")
    secret_headers = {
        header: _read(f"headers_from_env.{header}", name, "or drop it")
        for header, name in (address.headers_from_env or {}).items()
    }
    sent = {*secret_headers.values(), *([] if variable is None else [key])}
    headers = {name.lower(): value for name, value in {**(address.extra_headers or {}), **secret_headers}.items()}
    return Secrets(key=key, headers=headers, texts=(*sent,), logins=(*_logins_of_proxies(),))


def _logins_of_proxies() -> Iterator[str]:
    """Yield the credentials of the environment's proxies: a proxy's error page may repeat them."""
    for address in urllib.request.getproxies().values():
        login, separator, _ = address.rpartition("://")[2].rpartition("@")
        if separator and (password := urllib.parse.unquote(login.partition(":")[2])):
            yield password
            yield base64.b64encode(urllib.parse.unquote(login).encode()).decode()


def _read(setting: str, name: str, otherwise: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingError(f"{setting}={name} names a variable that is not set: export {name}=..., {otherwise}")
    if not (value.isascii() and value.isprintable()):
        raise SettingError(
            f"{setting}={name} names a variable whose value contains characters that HTTP headers do not allow: "
            "correct its value"
        )
    return value
