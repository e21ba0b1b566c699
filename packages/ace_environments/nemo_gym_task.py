"""A task made of a resources server of NeMo Gym, which is reached over HTTP, and a file of its samples."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Text
from ace_bench.core.types import Record
from ace_bench.tasks.data import read_records
from ace_environments.episode import Episode, brief
from ace_environments.nemo_gym_episode import PARAMETERS, Conversation, NemoGymEpisode
from ace_environments.session import EnvironmentItem
from ace_environments.task import CommonSettings, EnvironmentTask

_ENDPOINTS = ("/seed_session", "/verify")
_NOT_GOLD = frozenset({PARAMETERS, "agent_ref", "uuid", "id"})


class NemoGymTask(EnvironmentTask):
    """A resources server of NeMo Gym: rows of a file ask, its endpoints are the tools, ``/verify`` grades.

    ``server`` is the address of a running server, ``samples`` a JSON-lines file whose rows hold
    ``responses_create_params``. ``train_samples`` is a file of training data; without it ``split_ratio`` divides the
    one file. ``answer`` names the field of a row that holds the reference answer, ``null`` all fields that are the
    environment's own. At most ``most`` rows of a file are read.

    Raises ``ConfigError`` at construction where the server cannot be reached, or a row needs what is not supported.
    """

    def __init__(
        self,
        *,
        server: Text | None,
        samples: Text | None,
        train_samples: Text | None,
        answer: Text | None,
        most: Count | None,
        **common: Annotated[Any, CommonSettings],
    ):
        if server is None:
            raise SettingError("server is not set: give the address of a running resources server of NeMo Gym")
        if samples is None:
            raise SettingError("samples is not set: name a JSON-lines file with responses_create_params")
        self._address, self._answer, self._most = server.rstrip("/"), answer, most
        self._endpoints = _endpoints(self._address, common["timeout"])
        items = self._load("samples", samples)
        training = None if train_samples is None else self._load("train_samples", train_samples)
        super().__init__(items, training, **common)

    def _load(self, setting: str, file: str) -> Sequence[EnvironmentItem]:
        """Return the samples of the file that a setting names."""
        rows = list(read_records(Path(file)))[: self._most]
        return [self._read_item(f"{setting}={where}", row) for _, where, row in rows]

    def _read_item(self, where: str, row: Record) -> EnvironmentItem:
        parameters = row.get(PARAMETERS)
        if not isinstance(parameters, Mapping):
            raise SettingError(f"{where}: there is no object {PARAMETERS}")
        try:
            conversation = Conversation(parameters)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingError(f"{where}: {PARAMETERS} cannot be used: {error!s}") from error
        if not any("{" in path for path in self._endpoints):  # a path with a parameter may belong to any tool
            missing = [name for name in conversation.tool_names if f"/{name}" not in self._endpoints]
            if missing:
                raise SettingError(f"{where}: {self._address} has no tool {', '.join(missing)}: start another server")

        async def make() -> Episode:
            return NemoGymEpisode(self._address, row)

        gold = _gold(where, row, self._answer)
        return EnvironmentItem(question=conversation.question, gold=gold, make=make, digest=digest_of(row))


def _endpoints(address: str, timeout: float) -> Collection[str]:
    """Ask a server for the endpoints that it has, before anything is spent."""
    import httpx2

    try:
        reply = httpx2.get(f"{address}/openapi.json", timeout=timeout)
        paths = reply.raise_for_status().json()["paths"]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"server={address} is no resources server of NeMo Gym: {brief(error)}") from error
    if missing := [path for path in _ENDPOINTS if path not in paths]:
        raise SettingError(f"server={address} has no {', '.join(missing)}: give the address of a resources server")
    if "/step" in paths:
        raise SettingError(f"server={address} steps through turns (/step), which is not supported: choose another")
    return frozenset(paths)


def _gold(where: str, row: Record, answer: str | None) -> str:
    """Return the reference answer as text: a row's fields beside what is asked."""
    own = {name: value for name, value in row.items() if name not in _NOT_GOLD}
    if answer is not None:
        if answer not in own:
            raise SettingError(f"{where}: there is no field answer={answer}; there are {', '.join(own) or 'none'}")
        own = {answer: own[answer]}
    value: Any = next(iter(own.values())) if len(own) == 1 else own or ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
