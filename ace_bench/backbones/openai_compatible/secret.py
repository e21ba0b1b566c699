"""Keys: read from named environment variables, and hidden in all output."""

from __future__ import annotations

import base64
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ace_bench.core.errors import SettingError
from ace_bench.core.redaction import HIDDEN, SHORTEST, redacted

_PLACEHOLDER = "none"
"""Sent as the key to servers that need none; they ignore it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Secrets:
    """The key and the secret headers of an endpoint. Its repr shows none of them."""

    key: str
    headers: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    """Texts to hide in replies and errors, longest first."""
    logins: tuple[str, ...] = ()
    """Proxy credentials to hide in errors, longest first."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"

    def hide(self, text: str) -> str:
        """Replace every secret in a reply. Short ones stay: servers without keys are often sent a word such as
        EMPTY."""
        return _without(text, (secret for secret in self.texts if len(secret) >= SHORTEST))

    def hide_in_error(self, text: str) -> str:
        """Replace all secrets and everything that looks like one, such as partly masked keys."""
        return redacted(_without(text, (*self.texts, *self.logins)))


def read_secrets(api_key_env: str | None, headers_from_env: Mapping[str, str], others: Iterable[str] = ()) -> Secrets:
    """Read the environment; raises ``ConfigError`` naming the variable that is missing.

    ``others`` are further texts to hide.
    """
    key = (
        _PLACEHOLDER
        if api_key_env is None
        else _read("api_key_env", api_key_env, "or set it to null where the server needs no key")
    )
    headers = {
        header: _read(f"headers_from_env.{header}", name, "or drop it") for header, name in headers_from_env.items()
    }
    sent = {*headers.values(), *others, *(() if api_key_env is None else (key,))}
    return Secrets(key=key, headers=headers, texts=_variants(sent), logins=_variants(_logins_of_proxies()))


def _variants(secrets: Iterable[str]) -> tuple[str, ...]:
    # In JSON that is echoed inside JSON, the quotes and backslashes of a key are escaped.
    variants = {variant for secret in secrets for variant in (secret, json.dumps(secret)[1:-1])}
    return tuple(sorted(variants, key=lambda text: (-len(text), text)))


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def _logins_of_proxies() -> Iterator[str]:
    """Yield the credentials of the environment's proxies: a proxy's error page may repeat them."""
    for address in urllib.request.getproxies().values():
        login, at, _ = address.rpartition("://")[2].rpartition("@")
        if at and (password := urllib.parse.unquote(login.partition(":")[2])):
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
