"""An endpoint of embeddings as a backbone, so that a run counts and records its calls like those of a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from ace_bench.backbones.openai_compatible.attempts import CallResult, Clock, attempt
from ace_bench.backbones.openai_compatible.backbone import checked_url
from ace_bench.backbones.openai_compatible.embeddings import embeddings_request, unit_vectors
from ace_bench.backbones.openai_compatible.endpoint import Address, Endpoint
from ace_bench.backbones.openai_compatible.error_hints import explain
from ace_bench.backbones.openai_compatible.outcomes import accept, priced
from ace_bench.backbones.openai_compatible.pacing import Pacer
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.replies import Answer
from ace_bench.backbones.openai_compatible.settings import Rate, Retry
from ace_bench.backbones.openai_compatible.vectors import write_vectors
from ace_bench.core.digest import digest_of
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.errors import BackboneUnavailable, ConfigError, Interrupted, RolloutFault, SettingError
from ace_bench.core.tokens import estimate_tokens
from ace_bench.core.types import Completion, Fault, Message, Probe, Record, Usage
from ace_bench.store.prices import PriceCard

_TIMEOUT_S = 60.0
_PROBE = Retry(times=3, seconds=60.0)
_NAMES = {
    "backbone.base_url": "embedder.url",
    "backbone.model": "embedder.model",
    "backbone.api_key_env": "embedder.key_env",
    "it may not offer chat completions": "it may not offer embeddings",
}
"""What the hints say of a chat model, and what it is called here."""


class EmbeddingsBackbone:
    """Embeds the content of each message of a call; the completion's text holds the vectors (``vectors``).

    The model alone is its ``identity``. Safe to use from many threads; nothing is sent and no key is read before the
    first call. Raises ``SettingError`` for an address that cannot work.
    """

    context_length: int | None = None

    def __init__(self, settings: EmbedderSettings, *, retry: Retry | None = None):
        try:
            url = checked_url(settings.url)
        except SettingError as error:
            raise SettingError(str(error).replace("base_url", "url")) from error
        self.name = settings.model
        self.simulated = settings.simulated
        self.identity: Record = {"model": settings.model}
        price = settings.usd_per_million
        self._prices = PriceCard(input=price, cached_input=price, output=0.0)
        self._retry = retry or Retry()
        self._interrupted = threading.Event()
        self._clock = Clock(sleep=self._pause)
        self._pacer = Pacer(Rate(), now=self._clock.now)
        self._endpoint = Endpoint(
            Address(
                base_url=url,
                model=settings.model,
                api_key_env=settings.key_env,
                headers={},
                headers_from_env={},
                timeout=_TIMEOUT_S,
                connections=1,
            )
        )

    def check(self) -> None:
        """Raise ``SettingError`` where a key is missing."""
        try:
            self._endpoint.ready()
        except SettingError as error:
            raise SettingError(str(error).replace("api_key_env", "key_env")) from error

    def start(self, say: Callable[[str], None]) -> None:
        """Read the key; raises ``ConfigError`` where it is missing."""
        del say
        self.check()

    def interrupt(self, grace: float) -> None:
        """End calls early: pauses at once, requests in flight after ``grace`` seconds; later calls are refused."""
        self._interrupted.set()
        self._endpoint.abort(grace)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._endpoint.close()

    def count(self, text: str) -> int:
        """Estimate tokens by length."""
        return estimate_tokens(text)

    def dollars(self, usage: Usage) -> float | None:
        """Price some tokens."""
        return self._prices.dollars(usage)

    def reply_limit(self, role: str) -> int:
        """Return 0: vectors have no tokens."""
        del role
        return 0

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Embed the messages, after retries.

        Raises ``RolloutFault`` for an unusable reply or a server that does not recover, ``BackboneUnavailable`` where
        every further call would fail too, and ``Interrupted`` after ``interrupt``.
        """
        del role, session, schema
        texts = [message.content for message in messages]
        outcome = self._ask(texts, self._retry)
        try:
            completion = accept(outcome, schema=None, prices=self._prices, endpoint=self._endpoint)
        except BackboneUnavailable as error:
            raise BackboneUnavailable(f"the embeddings endpoint does not answer: {_renamed(str(error))}") from error
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

        Raises ``BackboneUnavailable`` where the server fails and may recover.
        """
        outcome = self._ask(["ready"], _PROBE)
        result = outcome.result
        if isinstance(result, Problem):
            passing = result.disposition is Disposition.RETRY and result.kind != "unreachable"
            kind = BackboneUnavailable if passing else ConfigError
            raise kind(f"the embeddings endpoint does not answer: {_renamed(explain(result, self._endpoint))}")
        try:
            rows = unit_vectors(result.text, 1)
        except BackboneUnavailable as error:
            raise ConfigError(f"{error}: correct embedder.url and embedder.model") from error
        if result.simulated and not self.simulated:
            raise SettingError(
                "simulated=false, but the server reports that it is not a model: set simulated=true, which marks the "
                "run as simulated"
            )
        usage = priced(outcome, self._prices)
        facts = {
            "endpoint": self._endpoint.base_url,
            "embeddings": f"{rows.shape[1]} dimensions",
            "tokens": "reported" if usage.prompt is not None else "not reported: n/a in all tables",
            "prices": "known" if usage.usd is not None else "unknown: dollars are n/a",
        }
        return Probe(facts=facts, usage=usage)

    def _ask(self, texts: Sequence[str], retry: Retry) -> CallResult:
        body = embeddings_request(self.name, texts)

        def send() -> Answer | Problem:
            self._pause(0.0)
            result = self._endpoint.embeddings(body)
            if isinstance(result, Problem):  # perhaps because it was cut off
                self._pause(0.0)
            return result

        tokens = sum(map(estimate_tokens, texts))
        return attempt(send, retry=retry, pacer=self._pacer, tokens=tokens, clock=self._clock)

    def _pause(self, seconds: float) -> None:
        if self._interrupted.wait(seconds):
            raise Interrupted("interrupted")


def _renamed(hint: str) -> str:
    for chat, embeddings in _NAMES.items():
        hint = hint.replace(chat, embeddings)
    return hint
