"""A model on a vLLM or llama.cpp server: the OpenAI-compatible client plus launching, and what the server counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.settings import check_url
from ace_bench.backbones.vllm.command import LOCAL, Launch, free_port
from ace_bench.backbones.vllm.load import PATH, TIMEOUT_S, read_counters, read_load
from ace_bench.backbones.vllm.server import Server, ServerPool
from ace_bench.core.errors import BackboneUnavailable, RolloutFault, SettingError
from ace_bench.core.settings import Text
from ace_bench.core.types import CacheCounters, Completion, Message, Probe, Record, ServerLoad

_EXIT_NOTICE_S = 0.5
"""Seconds to wait for the supervisor to report the server's exit."""
_NOT_STARTED = f"http://{LOCAL}"


class Vllm(OpenAICompatible):
    """Uses the server at ``url``, or with ``launch`` starts its own, which runs from ``start`` to ``close``.

    ``model`` is the name that requests use (with ``url``) or the model to load (with ``launch``: a name on the model
    hub, a folder or a file). ``server`` says how to start it: ``Serve`` for vLLM, ``ServeLlamaCpp`` for llama.cpp. All
    other settings are passed to ``OpenAICompatible``, which rejects unknown ones. Backbones with the same ``servers``
    share one server where they would start the same.

    Raises ``ConfigError`` for settings that cannot work.
    """

    address_setting = "url"
    hosted = False

    def __init__(
        self,
        *,
        url: Text | None,
        launch: bool,
        model: Text | None,
        server: Launch,
        **client: Annotated[Any, OpenAICompatible],
    ):
        if launch == (url is not None):
            raise SettingError(
                "url=http://HOST:PORT of a running server is needed, or launch=true to start one, and not both"
            )
        self._launch = launch
        self._model = model or ""
        self._serve = server
        name = (server.served_name or model) if launch else model
        if launch and client.get("context_length") is None:
            client["context_length"] = server.max_model_len
        self._root = _NOT_STARTED
        if url is not None:
            self._root = check_url(url, "url", "http://localhost:8000").rstrip("/").removesuffix("/v1")
        # The port of a server to be launched is not known yet; neither identity nor prices depend on it.
        super().__init__(base_url=f"{self._root}/v1", model=name, **client)
        self._pages = self._endpoint.pages_at(self._root, timeout=TIMEOUT_S)
        self._server: Server | None = None
        self.servers = ServerPool()

    @property
    def identity(self) -> Record:
        """The client's, with the model that is loaded."""
        launched = {"loads": self._model, **self._serve.identity} if self._launch else {}
        return {**super().identity, **launched}

    def check(self) -> None:
        """Raise ``SettingError`` if a key or the program to launch is missing."""
        if self._launch:
            self._serve.command(self._model, self._serve.port or free_port())
        super().check()

    def start(self, say: Callable[[str], None]) -> None:
        """With ``launch``, start the server unless it runs; read the server's context length."""
        if self._launch and not (self._server is not None and self._server.running):
            self.close()
            self._server = self.servers.lease(self._serve, self._model, say)
            self._root = self._server.root
            self._endpoint = self._endpoint.at(f"{self._root}/v1")
            self._pages = self._endpoint.pages_at(self._root, timeout=TIMEOUT_S)
        self._endpoint.ready()
        if self._launch and (served := self._endpoint.context_length()) is not None:
            # llama.cpp serves no more than the model was trained for.
            self.context_length = min(served, self.context_length or served)
        self.read_context_length()

    def close(self) -> None:
        """Close the connections, and end the server that was started unless another run uses it."""
        super().close()
        self._pages.close()
        if self._server is not None:
            self.servers.release(self._server)
            self._server = None

    def complete(  # noqa: PLR0913 - what a call may ask
        self,
        messages: Sequence[Message],
        *,
        role: str,
        session: str,
        schema: Record | None = None,
        seed: int | None = None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Completion:
        """Return one completion; raises ``BackboneUnavailable`` if a launched server has exited."""
        self._check_alive()
        try:
            return super().complete(
                messages, role=role, session=session, schema=schema, seed=seed, may_repeat=may_repeat
            )
        except RolloutFault:
            self._check_alive()
            raise
        except BackboneUnavailable:
            self._check_alive(patience=_EXIT_NOTICE_S)
            raise

    @property
    def probe_key(self) -> str | None:
        """The key of a running server; ``None`` if one will be launched."""
        return None if self._launch else super().probe_key

    def probe(self) -> Probe:
        """Make tiny calls, as for any endpoint; also reports whether the server has cache counters."""
        probe = super().probe()
        counters = "reported" if self.cache_counters() is not None else "not reported: n/a in all tables"
        return replace(probe, facts={**probe.facts, "cache counters": counters})

    def cache_counters(self) -> CacheCounters | None:
        """Read the server's prefix-cache counters, over all its engines; ``None`` if it reports none."""
        page = self._pages.page(PATH)
        return None if page is None else read_counters(page)

    @property
    def server(self) -> str:
        """Address of the server."""
        return self._root

    def load(self) -> ServerLoad | None:
        """Read how many requests the server runs and how many wait in it; ``None`` if it does not report that."""
        page = self._pages.page(PATH)
        return None if page is None else read_load(page)

    def _check_alive(self, patience: float = 0.0) -> None:
        if self._server is not None and self._server.ends_within(patience):
            raise BackboneUnavailable(self._server.ended_message())
