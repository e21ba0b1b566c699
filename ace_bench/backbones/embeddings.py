"""An endpoint of embeddings as a backbone, so that a run counts and records its calls like a model's.

A run asks it through ``EmbeddingCalls``, once for each text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from ace_bench.backbones.openai_compatible.http_backbone import CallResult, HttpBackbone
from ace_bench.backbones.openai_compatible.list_prices import list_prices
from ace_bench.backbones.openai_compatible.outcomes import accept, explain, price_usage, prices_fact
from ace_bench.backbones.openai_compatible.probing import accept_probe, check_simulated, shorten_retries
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.settings import Address, PriceCard, Retry, check_url
from ace_bench.core.backbones import Lm
from ace_bench.core.embedders import EmbedderSettings, embedder_identity
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import BackboneUnavailable, ConfigError, RolloutFault, SettingError
from ace_bench.core.prompts import CONTEXT_LENGTH
from ace_bench.core.types import NO_USAGE, Completion, Fault, Message, Probe, Record
from ace_bench.playbook.embeddings import Matrix
from ace_bench.store.vectors import VectorStore, text_key

_TIMEOUT_S = 60.0
_SILENT = "the embeddings endpoint does not answer"
_NAMES = {
    "backbone.base_url": "embedder.url",
    "backbone.model": "embedder.model",
    "backbone.api_key_env": "embedder.key_env",
    "it may not offer chat completions": "it may not offer embeddings",
}
"""What the hints say of a chat model, and what it is called here."""


class EmbeddingsBackbone(HttpBackbone):
    """Embeds the content of each message of a call; the completion's text holds the vectors (``write_vectors``).

    Its ``identity`` is only the model. With a ``store`` only texts that it does not have are sent.

    Safe to use from many threads. Nothing is sent and no key is read before the first call. Raises ``SettingError`` for
    an address that cannot work.
    """

    context_length: int | None = None
    store: VectorStore | None = None

    def __init__(self, settings: EmbedderSettings, *, retry: Retry | None = None):
        self.name = settings.model
        self.simulated = settings.simulated
        self.identity: Record = {"model": settings.model}
        price = settings.usd_per_million
        address = Address(
            base_url=check_url(settings.url, "url"),
            model=settings.model,
            api_key_env=settings.key_env,
            timeout=_TIMEOUT_S,
        )
        prices = PriceCard(input=price, cached_input=price, output=0.0)
        if price is None and not settings.simulated:
            prices = list_prices(settings.url, settings.model)
        super().__init__(address, retry=retry or Retry(), prices=prices)

    def check(self) -> None:
        """Raise ``SettingError`` if a key is missing."""
        try:
            super().check()
        except SettingError as error:
            raise SettingError(str(error).replace("api_key_env", "key_env")) from error

    def reply_limit(self, role: str) -> int:
        """Return 0: vectors have no tokens."""
        del role
        return 0

    def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        session: str,
        schema: Record | None = None,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Completion:
        """Embed the messages, after retries.

        Raises ``RolloutFault`` for an unusable reply or a server that does not recover, ``BackboneUnavailable`` where
        every further call would fail too, and ``Interrupted`` after ``interrupt``.
        """
        del role, session, schema
        texts = [message.content for message in messages]
        if self.store is None:
            return self._embed(texts, may_repeat)
        embedder = str(embedder_identity({"model": self.name}))
        vectors = self.store.find(embedder, [*map(text_key, texts)])
        completion = Completion(text="", usage=NO_USAGE, seconds=0.0, model=self.name, replayed=True)
        if missing := [text for text in texts if text_key(text) not in vectors]:
            completion = self._embed(missing, may_repeat)
            self.store.add(embedder, new := read_vectors(completion.text))
            vectors |= new
        return replace(completion, text=_write_rows(vectors))

    def _embed(self, texts: Sequence[str], may_repeat: Callable[[], bool]) -> Completion:
        outcome, shorter = self._ask(texts, self._retry, may_repeat), _halve_longest(texts)
        while _is_too_long(outcome) and shorter is not None:
            outcome, shorter = self._ask(shorter, self._retry, may_repeat), _halve_longest(shorter)
        try:
            completion = accept(outcome, schema=None, prices=self.prices, endpoint=self._endpoint)
        except BackboneUnavailable as error:
            raise BackboneUnavailable(f"{_SILENT}: {_rename_hint(str(error))}") from error
        try:
            return replace(completion, text=write_vectors(texts, unit_vectors(completion.text, len(texts))))
        except BackboneUnavailable as error:
            fault = Fault(owner="backbone", kind="unusable_vectors", message=str(error))
            raise RolloutFault(fault, replace(completion, text="")) from error

    @property
    def probe_key(self) -> str:
        """The address with its key."""
        return digest_of([self._endpoint.key, self.simulated])

    def probe(self) -> Probe:
        """Embed one word; raises ``ConfigError`` with the fix where the endpoint does not fit the settings.

        Raises ``BackboneUnavailable`` if the server fails and may recover.
        """
        outcome = self._ask(["ready"], shorten_retries(self._retry))
        result = accept_probe(
            outcome.result, lambda problem: f"{_SILENT}: {_rename_hint(explain(problem, self._endpoint))}"
        )
        try:
            rows = unit_vectors(result.text, 1)
        except BackboneUnavailable as error:
            raise ConfigError(f"{error}: correct embedder.url and embedder.model") from error
        check_simulated(reported=result.simulated, configured=self.simulated)
        usage = price_usage(outcome, self.prices)
        facts = {
            "endpoint": self._endpoint.base_url,
            "embeddings": f"{rows.shape[1]} dimensions",
            "tokens": "reported" if usage.prompt is not None else "not reported: n/a in all tables",
            "prices": prices_fact(self.prices, usage),
        }
        return Probe(facts=facts, usage=usage)

    def take_probe(self, probe: Probe) -> None:
        """Do nothing: a probe finds out no setting."""

    def _ask(self, texts: Sequence[str], retry: Retry, may_repeat: Callable[[], bool] = lambda: True) -> CallResult:
        filled = [text or " " for text in texts]  # the API refuses empty ones
        body = msgspec.json.encode({"model": self.name, "input": filled, "encoding_format": "float"})
        return self._send(lambda: self._endpoint.embeddings(body), retry=retry, may_repeat=may_repeat)


_SHORTEST = 128
"""Characters that every model can embed."""


def _is_too_long(outcome: CallResult) -> bool:
    return isinstance(outcome.result, Problem) and outcome.result.kind == CONTEXT_LENGTH


def _halve_longest(texts: Sequence[str]) -> Sequence[str] | None:
    """Cut texts to half the length of the longest, as libraries cut what their models cannot read; ``None``: short."""
    longest = max(map(len, texts), default=0)
    return None if longest <= _SHORTEST else [text[: longest // 2] for text in texts]


def _rename_hint(hint: str) -> str:
    for chat, embeddings in _NAMES.items():
        hint = hint.replace(chat, embeddings)
    return hint


class _Vectors(msgspec.Struct):
    """Little-endian 32-bit floats (base64 in JSON) by the key of their text."""

    vectors: dict[str, bytes]


def write_vectors(texts: Sequence[str], rows: Matrix) -> str:
    """Return the text of a call that embedded ``texts``; ``rows`` has shape (len(texts), dimensions)."""
    vectors = {text_key(text): row.astype("<f4").tobytes() for text, row in zip(texts, rows, strict=True)}
    return _write_rows(vectors)


def _write_rows(vectors: Mapping[str, bytes]) -> str:
    return msgspec.json.encode(_Vectors(vectors={**vectors})).decode()


def read_vectors(text: str) -> Mapping[str, bytes]:
    """Return the vectors in the text of a call."""
    return msgspec.json.decode(text, type=_Vectors).vectors


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Rows(msgspec.Struct):
    data: list[_Row]


def unit_vectors(text: str, expected: int) -> Matrix:
    """Return the unit vectors of a reply in the order of the request; raises ``BackboneUnavailable``."""
    try:
        rows = sorted(msgspec.json.decode(text, type=_Rows).data, key=lambda row: row.index)
        vectors = np.array([row.embedding for row in rows], dtype=np.float32)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BackboneUnavailable(f"the embeddings endpoint sent no usable vectors: {error}") from error
    if [row.index for row in rows] != list(range(expected)) or vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise BackboneUnavailable(f"the embeddings endpoint sent {len(rows)} vectors for {expected} texts")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit


_BATCH = 128


class EmbeddingCalls:
    """Embeds every text once in a run, whichever part asks for it; what earlier processes paid for is among ``paid``.

    ``lm`` returns the counted backbone for the stage that the run is in. Safe to use from several threads; one of them
    calls at a time.
    """

    def __init__(self, lm: Callable[[], Lm], paid: Iterable[Completion]):
        self._lm = lm
        self._lock = threading.Lock()
        self._rows: dict[str, bytes] = {}
        for completion in paid:
            self._rows.update(read_vectors(completion.text))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a unit vector per text; raises ``CallLost``, ``BudgetExhausted`` and whatever stops a run."""
        keys = [text_key(text) for text in texts]
        with self._lock:
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            todo = [*missing.values()]
            for batch in (todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH)):
                reply = self._lm()([Message(role="user", content=text) for text in batch])
                self._rows.update(read_vectors(reply.text))
            rows = [self._rows[key] for key in keys]
        sizes = {len(row) for row in rows}
        if len(sizes) > 1:
            raise BackboneUnavailable(
                "the embeddings endpoint now sends vectors of another length than before: it serves another model; "
                "serve the first one again, or start a new run with resume=false"
            )
        return np.array([np.frombuffer(row, dtype="<f4") for row in rows], dtype=np.float32)
