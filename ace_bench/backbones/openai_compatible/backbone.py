"""A chat-completions model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from ace_bench.backbones.openai_compatible.attempts import CallResult
from ace_bench.backbones.openai_compatible.endpoint import Address
from ace_bench.backbones.openai_compatible.http_backbone import HttpBackbone
from ace_bench.backbones.openai_compatible.outcomes import accept
from ace_bench.backbones.openai_compatible.probing import SIMULATED, hurried, probe
from ace_bench.backbones.openai_compatible.requests import (
    AUTO,
    Dialect,
    Question,
    RequestBuilder,
    candidates,
    check_extra_body,
    read_dialect,
)
from ace_bench.backbones.openai_compatible.schemas import Bounds
from ace_bench.backbones.openai_compatible.settings import (
    NOT_AZURE,
    Azure,
    CacheHints,
    Client,
    PriceCard,
    Rate,
    Retry,
    Sampling,
    Structured,
)
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import BackboneUnavailable, ConfigError, SettingError
from ace_bench.core.secrets import refuse_secrets
from ace_bench.core.settings import Count, Parallel, Seconds, Text
from ace_bench.core.types import Completion, Message, Probe, Record

_UNSEEDED = ("seed", "max_tokens_field")
_FIRST = Dialect(structured="json_schema")
"""What stands for a dialect that is not found yet, so that runs of versions without ``auto`` keep their names."""
_MESSAGE_TOKENS = 4
"""About what a chat template adds to a message."""


class OpenAICompatible(HttpBackbone):
    """Answers over HTTP. Safe to use from many threads; nothing is sent and no key is read before the first call.

    ``api_key_env`` names the environment variable of the key, ``None`` where the server needs none;
    ``headers_from_env`` maps further secret headers to their variables. ``structured`` is how JSON replies are
    requested: ``json_schema``, ``json_object_schema``, ``json_object`` or ``none`` (by the prompt alone); with ``auto``
    the probe finds the best that the server takes. ``bound_replies`` bounds the texts and lists of replies: ``true``
    with ``auto`` and where the server takes it, by the reply limit; ``Bounds`` in every schema that is sent.
    ``extra_body`` is merged into every request, for instance to switch reasoning off. ``timeout`` is in seconds per
    attempt, ``context_length`` in tokens, ``None``: as the server says. ``simulated`` marks an endpoint that is not a
    language model.
    ``client`` sends the requests: ``built_in``, or ``openai`` for the stock package, which reaches ``azure``, too.

    The ``identity`` is the model, the sampling without its seed, ``structured`` and ``extra_body``. The address is not
    part of it: a run can continue with the same model at another address.

    Raises ``ConfigError`` for settings that cannot work.
    """

    takes_tools = True

    def __init__(  # noqa: PLR0913 - settings, all keyword-only
        self,
        *,
        base_url: Text,
        model: Text | None,
        sampling: Sampling,
        retry: Retry,
        rate: Rate,
        cache: CacheHints,
        prices: PriceCard,
        structured: Structured = "json_schema",
        bound_replies: bool | Bounds = True,
        api_key_env: Text | None = None,
        extra_headers: Mapping[str, str] | None = None,
        headers_from_env: Mapping[str, str] | None = None,
        extra_body: Record | None = None,
        context_length: Count | None = None,
        timeout: Seconds = 600.0,
        connections: Parallel = 8,
        client: Client = "built_in",
        azure: Azure = NOT_AZURE,
        simulated: bool = False,
    ):
        if not model:
            raise SettingError("model is not set: name the model as the server does")
        refuse_secrets({"base_url": base_url, "extra_headers": extra_headers, "extra_body": extra_body})
        azure.check(client, base_url=checked_url(base_url), api_key_env=api_key_env)
        address = Address(
            base_url=base_url,
            model=model,
            api_key_env=api_key_env,
            headers=extra_headers or {},
            headers_from_env=headers_from_env or {},
            timeout=timeout,
            connections=connections,
            client=client,
            azure=azure,
        )
        super().__init__(address, retry=retry, rate=rate, prices=prices)
        self.name = model
        self.simulated = simulated
        self.context_length = context_length
        self._structured: Structured = structured
        self._adopted = False
        self._dialect: Dialect | None = None if structured == AUTO else Dialect(structured=structured)
        sampling.check_limits(context_length)
        self.sampling = sampling
        self._requests = RequestBuilder(
            model=model,
            sampling=sampling,
            cache=cache,
            salt=uuid.uuid4().hex if cache.salt == "new" else cache.salt,
            extra_body=check_extra_body(extra_body or {}),
            bound_replies=bound_replies,
        )
        settings = {name: value for name, value in asdict(sampling).items() if name not in _UNSEEDED}
        if not sampling.roles:
            del settings["roles"]
        own = {"bound_replies": bound_replies.record()} if isinstance(bound_replies, Bounds) else {}
        self._settings: Record = {
            "model": model,
            "sampling": {**settings, "seeded": sampling.seed is not None},
            "extra_body": self._requests.extra_body,
            **own,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.name!r}, base_url={self._endpoint.base_url!r})"

    @property
    def identity(self) -> Record:
        """The settings that decide replies; with ``structured=auto`` the best dialect stands for one not yet found."""
        return {**self._settings, **(self._dialect or _FIRST).record()}

    def adopt(self, recorded: Record) -> None:
        """Speak the dialect of calls that were recorded with this ``identity``, in place of looking for one."""
        self._adopted = True
        if self._structured == AUTO:
            self._dialect = read_dialect(recorded)

    def complete(
        self, messages: Sequence[Message], *, role: str, session: str, schema: Record | None = None
    ) -> Completion:
        """Return one completion, after retries. ``role`` is not sent, but may have sampling settings of its own.

        Raises ``RolloutFault`` for an unusable reply or a server that does not recover, and ``BackboneUnavailable``
        where every further call would fail too; see ``problems`` and ``outcomes``. Raises ``Interrupted`` after
        ``interrupt``.
        """
        try:
            self._endpoint.ready()
        except ConfigError as error:
            raise BackboneUnavailable(str(error)) from error
        question = Question(messages=messages, session=session, role=role, schema=schema)
        outcome = self._ask(question, self._dialect or _FIRST, self._retry)
        return accept(outcome, schema=schema, prices=self.prices, endpoint=self._endpoint)

    def reply_limit(self, role: str) -> int | None:
        """Return the most tokens of a reply to a role: what is sent, or else the context length."""
        return self._requests.reply_limit(role) or self.context_length

    @property
    def probe_key(self) -> str | None:
        """The address with its key, and the fields of a request."""
        fields = {name: value for name, value in self._requests.fields().items() if name not in ("seed", "cache_salt")}
        return digest_of([self._endpoint.key, fields, self._structured, self.simulated])

    def read_context_length(self) -> None:
        """Ask the server for its context length, unless the settings hold one; raises ``SettingError``."""
        if self.context_length is None:
            self.context_length = self._endpoint.context_length()
        self.sampling.check_limits(self.context_length)

    def probe(self) -> Probe:
        """Make tiny calls; raises ``ConfigError`` with the fix where the endpoint does not fit the settings.

        Raises ``BackboneUnavailable`` where the server fails and may recover.
        """
        known, retry = self._dialect, hurried(self._retry)
        self._dialect, found = probe(
            lambda question, dialect: self._ask(question, dialect, retry),
            endpoint=self._endpoint,
            dialects=(known,) if known else candidates(self._structured, bound=self._requests.bound_replies is True),
            prices=self.prices,
            sampling=None if self._adopted else self.sampling,
        )
        if SIMULATED in found.facts and not self.simulated:
            raise SettingError(
                "simulated=false, but the server reports that it is not a language model: set simulated=true, which "
                "marks the run as simulated"
            )
        self.read_context_length()
        length = "n/a" if self.context_length is None else f"{self.context_length:,} tokens"
        return replace(found, facts={**found.facts, "context length": length})

    def _ask(self, question: Question, dialect: Dialect, retry: Retry) -> CallResult:
        body, headers = self._requests.build(question, dialect)
        tokens = self._estimate(question.messages) if self._pacer.counts_tokens else 0
        return self._send(lambda: self._endpoint.chat(body, headers), tokens=tokens, retry=retry)

    def _estimate(self, messages: Sequence[Message]) -> int:
        return sum(self.count(message.content) + _MESSAGE_TOKENS for message in messages)


def checked_url(base_url: str) -> str:
    """Return an address that requests can be sent to; raises ``SettingError``."""
    parts = urllib.parse.urlsplit(base_url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(f"base_url={base_url} must be like http://localhost:8000/v1")
    if parts.query or parts.fragment:
        raise SettingError("base_url must end with its path, as in http://localhost:8000/v1: drop what follows")
    return base_url
