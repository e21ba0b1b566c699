"""How requests reach a server: address, proxy of the environment, certificates, and the headers of every request."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import re
import socket
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

CONNECT_S = 10.0
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\r\n\0]*")
_PATH = "/%:@!$&'()*+,;=-._~?"
"""Characters of a path and its query that are sent as they are."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """The way to one server. ``timeout`` is in seconds a request; ``headers`` go with every request."""

    base_url: str
    headers: Mapping[str, str]
    timeout: float
    _heads: dict[tuple[str, str], bytes] = field(default_factory=dict)

    @cached_property
    def address(self) -> urllib.parse.SplitResult:
        """The address, in parts."""
        return urllib.parse.urlsplit(self.base_url.rstrip("/"))

    @cached_property
    def proxy(self) -> urllib.parse.SplitResult | None:
        """The proxy that the environment names for the address; raises ``OSError`` if it is not an ``http://`` one.

        No proxy can reach this machine under the name that the machine has for itself.
        """
        proxies = urllib.request.getproxies()
        setting = proxies.get(self.address.scheme) or proxies.get("all")
        if (
            not setting
            or _is_this_machine(self.address.hostname or "")
            or urllib.request.proxy_bypass(self.address.netloc)
        ):
            return None
        proxy = urllib.parse.urlsplit(setting if "://" in setting else f"http://{setting}")
        if proxy.scheme != "http":
            raise OSError(f"the proxy {setting} does not begin with http://: name one in {self.address.scheme}_proxy")
        return proxy

    @cached_property
    def encryption(self) -> ssl.SSLContext | None:
        """The context that checks certificates, made once because reading them is slow.

        They are the system's, or those of the file in the variable ``SSL_CERT_FILE``.
        """
        return ssl.create_default_context() if self.address.scheme == "https" else None

    def connect(self) -> socket.socket:
        """Open a connection; raises ``OSError``, ``HTTPException`` or ``UnicodeError``."""
        server = self.proxy or self.address
        host, port, limit = server.hostname or "", server.port, min(CONNECT_S, self.timeout)
        if self.encryption is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port or (80 if self.proxy else 443), timeout=limit, context=self.encryption
            )
            if self.proxy is not None:
                connection.set_tunnel(self.address.hostname or "", self.address.port or 443, self._login)
        else:
            connection = http.client.HTTPConnection(host, port or 80, timeout=limit)
        connection.connect()
        sock: socket.socket = connection.sock
        return sock

    def head(self, method: str, path: str) -> bytes:
        """Return the constant part of a request; raises ``ValueError`` for headers that HTTP cannot carry."""
        return self._heads.get((method, path)) or self._heads.setdefault((method, path), self._write(method, path))

    def _write(self, method: str, path: str) -> bytes:
        target, headers = urllib.parse.quote(f"{self.address.path}{path}", safe=_PATH), dict(self.headers)
        netloc = self.address.netloc
        netloc = netloc if netloc.isascii() else netloc.encode("idna").decode()
        if self.proxy is not None and self.encryption is None:
            target = f"http://{netloc}{target}"
            headers = {**self._login, **headers}
        return f"{method} {target} HTTP/1.1\r\n".encode() + encode_headers({"host": netloc, **headers})

    @property
    def _login(self) -> dict[str, str]:
        if self.proxy is None or self.proxy.username is None:
            return {}
        login = urllib.parse.unquote(f"{self.proxy.username}:{self.proxy.password or ''}")
        return {"proxy-authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Return headers as HTTP sends them; raises ``ValueError`` for those that it cannot carry."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    for line in lines:
        if not _HEADER.fullmatch(line):
            raise ValueError(f"the header {line.partition(':')[0]!r} cannot be sent")
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
