"""An OpenAI-compatible server, spoken to with the standard library alone."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any

from ace_bench.core.errors import BackboneUnavailable, ConfigError, RolloutFault
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Completion, Fault, Message, Record, Usage

_TIMEOUT_S = 120

PAUSES_S = (0.2, 1.0)
"""Pauses between requests."""

_TRANSIENT = (408, 429, 500, 502, 503, 504)
"""Statuses for which a retry may succeed."""


class UrllibChat:
    """``url`` ends in ``/v1``; ``key_variable`` names the environment variable with the key, ``None`` sends none.

    ``simulated`` must be true where the server is no language model, such as the embedded reader's.
    """

    def __init__(self, *, url: str, model: str, temperature: float, key_variable: str | None, simulated: bool) -> None:
        if key_variable is not None and key_variable not in os.environ:
            raise ConfigError(f"backbone.key_variable={key_variable} is not set; export it, or use null for no key")
        self.name = model
        self.simulated = simulated
        self.identity: Record = {"model": model, "temperature": temperature, "simulated": simulated}
        self.context_length: int | None = None
        self._url = url.rstrip("/") + "/chat/completions"
        self._temperature = temperature
        self._key_variable = key_variable

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Answer once, with up to three requests."""
        del role, session, schema  # this server gets only the messages
        body = {
            "model": self.name,
            "temperature": self._temperature,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
        }
        waited, problem = 0.0, ""
        for pause in (*PAUSES_S, 0.0):
            started = time.monotonic()
            try:
                text, usage = _read(self._post(body))
                return Completion(
                    text=text, usage=usage, seconds=time.monotonic() - started, waited=waited, model=self.name
                )
            except (KeyError, IndexError, TypeError, ValueError, HTTPException) as error:
                problem = f"the reply cannot be read: {error!r}"
            except _Transient as error:
                problem = str(error)
            time.sleep(pause)
            waited += time.monotonic() - started
        raise RolloutFault(Fault(owner="backbone", kind="no_reply", message=problem))

    def count(self, text: str) -> int:
        """Estimate tokens: the tokenizer is unknown."""
        return estimate_tokens(text)

    def _post(self, body: Record) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._key_variable is not None:
            headers["Authorization"] = f"Bearer {os.environ[self._key_variable]}"
        request = urllib.request.Request(self._url, data=json.dumps(body).encode(), headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _TRANSIENT:
                    raise _Transient(f"the server says {error.code}") from error
                raise BackboneUnavailable(f"{self._url} refuses the request: {error}") from error
        except urllib.error.URLError as error:
            raise BackboneUnavailable(f"{self._url} cannot be reached: {error.reason}") from error
        except OSError as error:
            raise _Transient(f"the connection broke: {error!r}") from error


class _Transient(Exception):
    """A failure for which a retry may succeed."""


def _read(reply: Any) -> tuple[str, Usage]:
    reported = reply.get("usage") or {}
    details = reported.get("prompt_tokens_details") or {}
    usage = Usage(
        prompt=reported.get("prompt_tokens"),
        completion=reported.get("completion_tokens"),
        cached=details.get("cached_tokens"),
        usd=None,  # no price is known here, and unknown is not zero
    )
    return str(reply["choices"][0]["message"]["content"]), usage
