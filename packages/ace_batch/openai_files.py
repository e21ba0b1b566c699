"""OpenAI's files and batches, by the ``openai`` package."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import openai
from openai.types import Batch

from ace_batch.files import URL
from ace_batch.settings import State, Status, Unreachable
from ace_bench.backbones.openai_compatible.endpoint import Endpoint, read_secrets
from ace_bench.backbones.openai_compatible.outcomes import explain
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem, from_status
from ace_bench.backbones.openai_compatible.settings import Address
from ace_bench.core.errors import BackboneUnavailable, SettingError

_TOKEN = "ace_bench"
_LOOKED_AT = 500
"""Batches of an account, the newest first, among which one is looked for."""
_NO_INTERFACE = (404, 405, 501)
_STATES: dict[str, State] = {
    "completed": "ended",
    "expired": "ended",
    "cancelled": "ended",
    "failed": "failed",
}


class OpenAIFiles:
    """Batches at an address that has ``/files`` and ``/batches``, to be done within ``window``."""

    def __init__(self, address: Address, window: str):
        self._address = address
        self._window = window
        self._endpoint = Endpoint(address)

    @cached_property
    def _client(self) -> openai.OpenAI:
        for name in ("openai", "httpx", "httpx2"):  # they log every request
            logging.getLogger(name).setLevel(logging.WARNING)
        address = self._address
        secrets = read_secrets(address)
        return openai.OpenAI(
            base_url=address.base_url,
            api_key=secrets.key,
            default_headers=secrets.headers,
            timeout=address.timeout,
            max_retries=0,
        )

    def check(self) -> None:
        """See ``Provider``."""
        with self._errors(self._no_interface):
            listed = self._client.batches.list(limit=1)
        if not isinstance(getattr(listed, "data", None), list):
            raise self._no_interface()

    def send(self, file: Path, token: str) -> str:
        """See ``Provider``."""
        with self._errors(self._no_interface):
            uploaded = self._client.files.create(file=(file.name, file.read_bytes()), purpose="batch")
            batch = self._client.batches.create(
                input_file_id=getattr(uploaded, "id", ""),
                endpoint=URL,
                completion_window=cast(Literal["24h"], self._window),
                metadata={_TOKEN: token},
            )
        if not getattr(batch, "id", None):
            raise BackboneUnavailable(f"{self._address.base_url} began no batch: its reply has no id; {_OTHERWISE}")
        return batch.id

    def find(self, file: Path, token: str) -> str | None:
        """See ``Provider``."""
        with self._errors(self._no_interface):
            newest = itertools.islice(self._client.batches.list(limit=100), _LOOKED_AT)
            return next((one.id for one in newest if (one.metadata or {}).get(_TOKEN) == token), None)

    def status(self, batch: str) -> Status:
        """See ``Provider``."""
        with self._errors(lambda: self._unknown(batch)):
            found = self._client.batches.retrieve(batch)
        word = str(getattr(found, "status", "unknown")).lower()  # some providers write capitals
        why = self._endpoint.ready().hide_in_error(_why(found)) if word == "failed" else ""
        return Status(state=_STATES.get(word, "running"), word=word, why=why)

    def replies(self, batch: str) -> bytes:
        """See ``Provider``."""
        with self._errors(lambda: self._unknown(batch)):
            found = self._client.batches.retrieve(batch)
            files = filter(None, (found.output_file_id, found.error_file_id))
            lines = b"\n".join(self._client.files.content(file).content for file in files)
        return self._endpoint.ready().hide(lines.decode(errors="replace")).encode()

    def close(self) -> None:
        """See ``Provider``."""
        if "_client" in vars(self):
            self._client.close()
            del self._client
        self._endpoint.close()

    @contextmanager
    def _errors(self, not_found: Callable[[], Exception]) -> Iterator[None]:
        """Turn the package's errors into ours; ``not_found`` makes the one for what is not there."""
        try:
            yield
        except openai.APIStatusError as error:
            if error.status_code in _NO_INTERFACE:
                raise not_found() from error
            problem = from_status(error.status_code, {"error": error.body})
            text = explain(problem, self._endpoint)
            if problem.disposition is Disposition.RETRY:
                raise Unreachable(f"{self._address.base_url} fails: {text}") from error
            raise BackboneUnavailable(f"{self._address.base_url} refused the batch: {text}") from error
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            raise Unreachable(explain(Problem(kind="unreachable", message=cause), self._endpoint)) from error
        except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:  # a reply of another form
            raise not_found() from error

    def _no_interface(self) -> Exception:
        place = self._address.base_url
        return SettingError(f"base_url={place} has no batch interface (/files and /batches): {_OTHERWISE}")

    def _unknown(self, batch: str) -> Exception:
        return BackboneUnavailable(
            f"{self._address.base_url} does not know batch {batch} or its files: use the account that sent it; if it "
            "is lost, remove its files from the run folder's batches/ to send and pay its calls again"
        )


_OTHERWISE = "leave batch= out, or choose a provider that has it"


def _why(batch: Batch) -> str:
    errors = (batch.errors and batch.errors.data) or []
    return "; ".join(f"{one.code}: {one.message}" for one in errors[:3]) or "the provider gave no reason"
