"""An endpoint of embeddings as a backbone, so that a run counts and records its calls like those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ace_bench.backbones.openai_compatible.attempts import CallResult
from ace_bench.backbones.openai_compatible.backbone import checked_url
from ace_bench.backbones.openai_compatible.endpoint import Address
from ace_bench.backbones.openai_compatible.http_backbone import HttpBackbone
from ace_bench.backbones.openai_compatible.outcomes import accept, explain, priced
from ace_bench.backbones.openai_compatible.problems import Disposition, Problem
from ace_bench.backbones.openai_compatible.settings import PriceCard, Rate, Retry
from ace_bench.backbones.openai_compatible.vectors import embeddings_request, unit_vectors, write_vectors
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import BackboneUnavailable, ConfigError, RolloutFault, SettingError
from ace_bench.core.prompts import estimate_tokens
from ace_bench.core.types import Completion, Fault, Message, Probe, Record

_TIMEOUT_S = 60.0
_PROBE = Retry(times=3, seconds=60.0)
_NAMES = {
    "backbone.base_url": "embedder.url",
    "backbone.model": "embedder.model",
    "backbone.api_key_env": "embedder.key_env",
    "it may not offer chat completions": "it may not offer embeddings",
}
"""What the hints say of a chat model, and what it is called here."""


class EmbeddingsBackbone(HttpBackbone):
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
        address = Address(
            base_url=url,
            model=settings.model,
            api_key_env=settings.key_env,
            headers={},
            headers_from_env={},
            timeout=_TIMEOUT_S,
            connections=1,
        )
        prices = PriceCard(input=price, cached_input=price, output=0.0)
        super().__init__(address, retry=retry or Retry(), rate=Rate(), prices=prices)

    def check(self) -> None:
        """Raise ``SettingError`` where a key is missing."""
        try:
            super().check()
        except SettingError as error:
            raise SettingError(str(error).replace("api_key_env", "key_env")) from error

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
            completion = accept(outcome, schema=None, prices=self.prices, endpoint=self._endpoint)
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
        usage = priced(outcome, self.prices)
        facts = {
            "endpoint": self._endpoint.base_url,
            "embeddings": f"{rows.shape[1]} dimensions",
            "tokens": "reported" if usage.prompt is not None else "not reported: n/a in all tables",
            "prices": "known" if usage.usd is not None else "unknown: dollars are n/a",
        }
        return Probe(facts=facts, usage=usage)

    def _ask(self, texts: Sequence[str], retry: Retry) -> CallResult:
        body = embeddings_request(self.name, texts)
        tokens = sum(map(estimate_tokens, texts))
        return self._send(lambda: self._endpoint.embeddings(body), tokens=tokens, retry=retry)


def _renamed(hint: str) -> str:
    for chat, embeddings in _NAMES.items():
        hint = hint.replace(chat, embeddings)
    return hint
