"""The top-level settings, what replaced settings of earlier versions, and the checks of a budget against backbones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.core.backbones import EMBEDDER, GENERATOR, Backbone, Limited, Priced
from ace_bench.core.embedders import EmbedderSettings
from ace_bench.core.errors import ConfigError
from ace_bench.core.settings import Count, Parallel, Seed, Text, make_part
from ace_bench.core.task import Agent, CostLimited
from ace_bench.core.types import Usage
from ace_bench.runners.limits import Budget
from ace_bench.runners.outages import FaultRule
from ace_bench.store.files import PRIVATE

_Word = Annotated[
    str, Meta(pattern=r"[\w.-]*[\w-][\w.-]*", description="one word of letters, digits, - and _: it names a folder")
]

_GROUPS = ("agent", "task", "method", "backbone", "roles", "default_roles", "rehearsal", "mode", "tracker", "sampling")
_FOLDER_MODES = {"private": PRIVATE, "group": 0o770, "all": 0o777}


@dataclass(frozen=True, kw_only=True)
class BySplit:
    """Limits of samples by split, ``None`` for all."""

    train: Count | None = None
    val: Count | None = None
    test: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The top-level settings as a user writes them."""

    name: _Word
    results: Text
    results_mode: Literal["private", "group", "all"] = "private"
    """Who may enter the folders that are made for runs and for the response cache."""
    seed: Seed
    labels: Literal["gold", "correctness", "none"]
    limit: Count | BySplit | None
    concurrency: Parallel
    max_calls_in_flight: Parallel | None
    resume: bool
    prompts: Text
    official_commit: Text | None = None
    embedder: Text | EmbedderSettings
    response_cache: Text | None
    dry_run: bool
    print_config: bool
    estimate: bool
    accept_faults: bool
    repeat_calls: bool
    """Whether what was attempted under a context is attempted anew where the mode asks for it again."""
    unreadable_replies: Literal["wrong", "fault"]
    accept_code: bool
    stop_after_faults: Count
    budget: Budget

    @property
    def limits(self) -> Mapping[str, int | None]:
        """Samples by split, ``None`` for all."""
        limit = self.limit
        return asdict(limit if isinstance(limit, BySplit) else BySplit(train=limit, val=limit, test=limit))

    @property
    def faults(self) -> FaultRule:
        """Which faults are answers."""
        return FaultRule(
            accept=self.accept_faults,
            stop_after=self.stop_after_faults,
            learn_unreadable=self.unreadable_replies == "wrong",
        )

    @property
    def folder_mode(self) -> int:
        """The mode of new folders, before the umask takes its part."""
        return _FOLDER_MODES[self.results_mode]


def read_settings(resolved: Mapping[str, Any]) -> Settings:
    """Read the top-level settings of a configuration; raises ``ConfigError`` with the setting's name."""
    own = {name: value for name, value in resolved.items() if name not in _GROUPS}
    settings: Settings = make_part(Settings, own, "")
    return settings


RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "agent.answer_alone": "is now agent.scaffold=answer_alone",
        "agent.replies": "is now agent.parse_replies, and repaired is lenient",
        "method.reasoning": "is now agent.scaffold: json in place of true",
        "method.playbook": "is gone: protocol=official learns the authors' text",
        "method.tags": "is gone: protocol=official counts tags round by round",
        "method.tagged": "is gone: protocol=official counts all tags",
        "method.curate": "is gone: protocol=official curates after every attempt on task=appworld",
        "method.replies": "is gone: protocol=official reads replies by the authors' rules",
        "method.step_number": "is gone: protocol=official counts the steps of the epoch",
        "method.after_curation": "is now method.measure_post_update, with protocol=official",
    }
)
"""Of keys that no chosen option has any more."""


def check_reply_limits(budget: Budget, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` if a reply has no limit, so that tokens and dollars cannot be reserved for it."""
    for role, backbone in backbones.items() if budget.needs_bounds else ():
        if isinstance(backbone, Limited) and backbone.reply_limit(role) is None:
            limit = "tokens" if budget.tokens is not None else "usd"
            raise ConfigError(
                f"budget.{limit} needs a limit of replies, and {backbone.name} ({role}) has none: set "
                "backbone.context_length or backbone.sampling.max_tokens, or use budget.calls"
            )


def place_of(role: str) -> str:
    """Return the configuration key of a role's backbone."""
    return {GENERATOR: "backbone", EMBEDDER: EMBEDDER}.get(role, f"roles.{role}")


def check_budget_prices(budget: Budget, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` for a budget in dollars if a backbone has no prices."""
    if budget.usd is not None:
        _check_prices(backbones, f"budget.usd={budget.usd:g}", "use budget.calls or budget.tokens")


def check_agent_prices(agent: Agent, backbones: Mapping[str, Backbone]) -> None:
    """Raise ``ConfigError`` for an agent with a limit in dollars if the generator's backbone has no prices."""
    if isinstance(agent, CostLimited) and agent.max_usd is not None:
        _check_prices(
            {GENERATOR: backbones[GENERATOR]}, f"agent.max_usd={agent.max_usd:g}", "use agent.max_steps alone"
        )


def _check_prices(backbones: Mapping[str, Backbone], limit: str, other: str) -> None:
    for role, backbone in backbones.items():
        if isinstance(backbone, Priced) and backbone.dollars(Usage(prompt=2, completion=1, cached=1)) is None:
            prices = (f"{place_of(role)}.prices.{name}" for name in ("input", "cached_input", "output"))
            needed = "embedder.usd_per_million" if role == EMBEDDER else "{}, {} and {}".format(*prices)
            raise ConfigError(f"{limit} needs prices: set {needed}, or {other}")
