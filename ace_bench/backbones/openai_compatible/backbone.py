"""A chat-completions model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from ace_bench.backbones.openai_compatible.http_backbone import CallResult, HttpBackbone
from ace_bench.backbones.openai_compatible.list_prices import with_list_prices
from ace_bench.backbones.openai_compatible.outcomes import accept
from ace_bench.backbones.openai_compatible.probing import check_simulated, control, probe, shorten_retries
from ace_bench.backbones.openai_compatible.problems import Problem
from ace_bench.backbones.openai_compatible.requests import (
    AUTO,
    Dialect,
    Question,
    RequestBuilder,
    candidates,
    read_dialect,
)
from ace_bench.backbones.openai_compatible.settings import ChatSettings, Retry
from ace_bench.core.encoding import digest_of
from ace_bench.core.errors import BackboneUnavailable, ConfigError
from ace_bench.core.replies import UNREADABLE_REPLY
from ace_bench.core.types import Completion, Message, Probe, Record

_FIRST = Dialect(structured="json_schema")
"""The dialect before one is found; runs of versions without ``auto`` keep their names by it."""


class OpenAICompatible(HttpBackbone):
    """Answers over HTTP. Safe to use from many threads; nothing is sent and no key is read before the first call.

    The ``identity`` is the model, the sampling without its seed, ``structured`` and ``extra_body``. The address is not
    part of it: a run can continue with the same model at another address.

    Raises ``ConfigError`` for settings that cannot work.
    """

    takes_tools = asks_again = True
    hosted = True
    """Whether the server may be a provider's, which the price list knows by its address."""

    def __init__(self, **settings: Annotated[Any, ChatSettings]):
        checked = ChatSettings(**settings)
        if self.hosted:
            checked = with_list_prices(checked)
        super().__init__(checked, retry=checked.retry, prices=checked.prices)
        self.name = checked.model or ""
        self.simulated = checked.simulated
        self.context_length = checked.context_length
        self.sampling = checked.sampling
        self._settings = checked
        self._adopted = False
        self._dialect = None if checked.structured == AUTO else Dialect(structured=checked.structured)
        self._requests = RequestBuilder(
            settings=checked, salt=uuid.uuid4().hex if checked.cache.salt == "new" else checked.cache.salt
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.name!r}, base_url={self._endpoint.base_url!r})"

    @property
    def identity(self) -> Record:
        """The settings that decide replies; with ``structured=auto`` the best dialect until one is found."""
        return {**self._settings.identity, **(self._dialect or _FIRST).record()}

    def adopt(self, recorded: Record) -> None:
        """Send requests as in calls recorded with this ``identity``, instead of finding out what the server takes."""
        self._adopted = True
        if self._settings.structured == AUTO:
            self._dialect = read_dialect(recorded)

    def is_greedy(self, role: str) -> bool:
        """Whether a role's temperature is 0."""
        return not self.draws(role)

    def draws(self, role: str) -> bool:
        """Whether a role's temperature is above 0, or the server's to choose."""
        return self.sampling.for_role(role).temperature != 0

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
        """Return one completion, after retries. ``role`` is not sent, but may have sampling settings of its own.

        ``seed`` takes the place of the sampling's, unless that is ``None``. ``may_repeat`` is asked before each further
        request after one that was paid for.

        Raises ``RolloutFault`` for an unusable reply or a server that does not recover, and ``BackboneUnavailable``
        where every further call would fail too; see ``problems`` and ``outcomes``. Raises ``Interrupted`` after
        ``interrupt``.
        """
        try:
            self._endpoint.ready()
        except ConfigError as error:
            raise BackboneUnavailable(str(error)) from error
        changes = {} if None in (seed, self.sampling.seed) else {"seed": seed}
        question = Question(messages=messages, session=session, role=role, schema=schema, changes=changes)
        outcome = self._ask(question, self._dialect or _FIRST, self._retry, may_repeat)
        return accept(outcome, schema=schema, prices=self.prices, endpoint=self._endpoint)

    def answers(self, *, role: str, schema: Record | None) -> bool:
        """Whether the server answers a tiny call now, with a role's settings; makes that call, without retries."""
        question = replace(control(self.sampling.max_tokens_field), role=role, schema=schema)
        result = self._ask(question, self._dialect or _FIRST, replace(self._retry, times=0)).result
        return not isinstance(result, Problem) or result.kind == UNREADABLE_REPLY

    def reply_limit(self, role: str) -> int | None:
        """Return the token limit of a role's replies: the one that requests send, or else the context length."""
        return self._requests.reply_limit(role) or self.context_length

    @property
    def probe_key(self) -> str | None:
        """The address with its key, the fields of a request, and how a continued run sends them."""
        fields = {name: value for name, value in self._requests.fields().items() if name not in ("seed", "cache_salt")}
        kept = self._dialect.record() if self._adopted and self._dialect else None
        return digest_of([self._endpoint.key, fields, self._settings.structured, self.simulated, kept])

    def read_context_length(self) -> None:
        """Ask the server for its context length, unless the settings hold one; raises ``SettingError``."""
        if self.context_length is None:
            self.context_length = self._endpoint.context_length()
        self.sampling.check_limits(self.context_length)

    def probe(self) -> Probe:
        """Make tiny calls; raises ``ConfigError`` with the fix where the endpoint does not fit the settings.

        Raises ``BackboneUnavailable`` if the server fails and may recover.
        """
        dialect, settings, retry = self._dialect, self._settings, shorten_retries(self._retry)
        self._dialect, findings = probe(
            lambda question, dialect: self._ask(question, dialect, retry),
            endpoint=self._endpoint,
            dialects=(dialect,) if dialect else candidates(settings.structured),
            settings=settings,
            check_seed=not self._adopted,
        )
        check_simulated(reported="simulated" in findings.facts, configured=self.simulated)
        self.read_context_length()
        return replace(self._with_length(findings), settings=self.identity)

    def take_probe(self, probe: Probe) -> None:
        """Send requests as another backbone found out; raises ``SettingError`` for too long replies."""
        self._dialect = read_dialect(probe.settings)
        self.read_context_length()

    def _with_length(self, findings: Probe) -> Probe:
        length = "n/a" if self.context_length is None else f"{self.context_length:,} tokens"
        return replace(findings, facts={**findings.facts, "context length": length})

    def _ask(
        self, question: Question, dialect: Dialect, retry: Retry, may_repeat: Callable[[], bool] = lambda: True
    ) -> CallResult:
        body, headers = self._requests.build(question, dialect)
        return self._send(lambda: self._endpoint.chat(body, headers), retry=retry, may_repeat=may_repeat)
