"""A chat-completions model whose evaluation calls go in batch files."""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from ace_batch.gathering import Gatherer
from ace_batch.openai_files import OpenAIFiles
from ace_batch.settings import BatchPrices, BatchSettings, Provider, Unreachable
from ace_bench.backbones.openai_compatible.backbone import OpenAICompatible
from ace_bench.backbones.openai_compatible.http_backbone import Pacer, attempt
from ace_bench.backbones.openai_compatible.outcomes import accept
from ace_bench.backbones.openai_compatible.requests import Question, read_dialect
from ace_bench.backbones.openai_compatible.settings import ChatSettings, Rate
from ace_bench.core.backbones import Backbone
from ace_bench.core.encoding import digest_of_text
from ace_bench.core.errors import BackboneUnavailable, ConfigError, Interrupted, SettingError
from ace_bench.core.types import Completion, Message, Probe, Record, Stage


class BatchBackbone(OpenAICompatible):
    """Sends the calls that wait at the same time as one file to a ``provider``.

    Only evaluations wait together; adaptation's calls, which depend on each other, go as ``batch.adapt`` says. A failed
    line is a failed attempt and goes in a later file.
    """

    def __init__(self, provider: Provider, batch: BatchSettings, **settings: Any):
        super().__init__(**settings)
        given = self._settings
        self.widest = batch.calls
        self.prices = BatchPrices(**vars(given.prices), factor=batch.price_factor)
        self._batch = batch
        self._provider = provider
        self._gatherer = Gatherer(provider, batch, patience=given.retry.seconds)
        self._online = (OpenAICompatible if batch.adapt == "online" else _Refusing)(**settings)

    def at(self, stage: Stage) -> Backbone:
        """Return what sends the calls of a stage."""
        if stage is Stage.EVALUATE or self._batch.adapt == "batch":
            return self
        self._online.adopt(self.identity)
        self._online.context_length = self.context_length
        return self._online

    def keep_in(self, folder: Path) -> None:
        """Keep what is sent in a folder, and go on with what was sent before."""
        self._gatherer.keep_in(folder)

    def start(self, say: Callable[[str], None]) -> None:
        """Read the key; batches are reported by ``say``."""
        super().start(say)
        self._gatherer.start(say)

    def probe(self) -> Probe:
        """Probe the endpoint, and whether it takes batches; raises ``SettingError`` if it does not."""
        found = super().probe()
        try:
            self._provider.check()
        except Unreachable as error:
            raise BackboneUnavailable(str(error)) from error
        return replace(found, facts={**found.facts, "batches": self._describe()})

    def complete(  # noqa: PLR0913 - a backbone's signature
        self,
        messages: Sequence[Message],
        *,
        role: str,
        session: str,
        schema: Record | None = None,
        seed: int | None = None,
        call: str = "",
        busy: Callable[[], bool] = lambda: False,
    ) -> Completion:
        """Return one completion; see ``OpenAICompatible``, and ``Gathering`` about ``call`` and ``busy``."""
        changes = {} if None in (seed, self.sampling.seed) else {"seed": seed}
        question = Question(messages=messages, session=session, role=role, schema=schema, changes=changes)
        body, _ = self._requests.build(question, read_dialect(self.identity))
        name, numbers = digest_of_text(call or uuid.uuid4().hex)[:32], itertools.count()
        with self._gatherer.calling(busy):
            outcome = attempt(
                lambda: self._gatherer.ask(f"{name}-{next(numbers)}", body),
                retry=replace(self._retry, seconds=math.inf),  # a file may take a day
                pacer=Pacer(Rate(), now=self._clock.now),
                tokens=0,
                clock=self._clock,
            )
        return accept(outcome, schema=schema, prices=self.prices, endpoint=self._endpoint)

    def interrupt(self, grace: float) -> None:
        """End calls early; the same command waits for the batches that are under way."""
        super().interrupt(grace)
        self._online.interrupt(grace)
        self._gatherer.stop(Interrupted("interrupted"))

    def close(self) -> None:
        """Close the connections."""
        self._gatherer.close()
        self._online.close()
        super().close()

    def _describe(self) -> str:
        of_adaptation = {"online": "go online at the full price", "batch": "too", "refuse": "are refused"}
        price = f" at {self._batch.price_factor:g} of the price" if self._batch.price_factor != 1 else ""
        return f"for calls of evaluations{price}; calls of adaptation {of_adaptation[self._batch.adapt]}"


class _Refusing(OpenAICompatible):
    """Refuses all calls."""

    def complete(self, *_: Any, **__: Any) -> Completion:
        raise ConfigError(
            "calls of adaptation depend on each other, and backbone.batch.adapt=refuse sends none of them: adapt with "
            "another backbone and evaluate its context with mode=evaluate mode.context=FILE, or set "
            "backbone.batch.adapt=batch (a file for every call)"
        )


class OpenAIBatch(BatchBackbone):
    """Uses the files and batches of an endpoint; ``settings`` are settings of ``OpenAICompatible``."""

    def __init__(self, *, batch: BatchSettings, **settings: Annotated[Any, ChatSettings]):
        given = ChatSettings(**settings)
        if given.azure.api_version is not None:
            raise SettingError(
                "azure.api_version cannot be used with batch=openai: leave it out and set base_url to Azure's newer "
                "address, https://NAME.openai.azure.com/openai/v1"
            )
        super().__init__(OpenAIFiles(given, batch.window), batch, **settings)
