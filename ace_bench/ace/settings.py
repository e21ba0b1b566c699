"""The settings of ``method=ace``: the paper's values, and which ablation replaces which part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from ace_bench.ace.ablations import AceWithOtherView, HarmfulReflector, NoReflector, RewritingCurator
from ace_bench.ace.ace import Ace, Curator, Reflector
from ace_bench.ace.nearest import NearestBullets, NearestCurator
from ace_bench.ace.rules import RulesCurator, RulesReflector
from ace_bench.ace.verify import Verifier
from ace_bench.contexts.selection import Retrieval
from ace_bench.core.errors import SettingError
from ace_bench.core.settings import Count, Text, Whole
from ace_bench.methods.base import Rounds
from ace_bench.playbook.apply import KINDS, Kind, Limits, UnknownSection
from ace_bench.playbook.embeddings import EmbeddingMemo
from ace_bench.playbook.refine import Refiner

_OPERATIONS = f"a list of some of {', '.join(KINDS)}, such as [ADD]"
_NAMED_BUDGET = 80_000
"""The tokens that the Curator's prompt names where nothing limits the playbook, as in the official code."""
_ONE_ATTEMPT = Rounds(reflections=0, retries=0)


@dataclass(frozen=True, kw_only=True)
class AceSettings:
    """What ``configs/method/ace.yaml`` sets."""

    max_reflection_rounds: Count
    """The most reflections on a question, each with a new answer. Paper: 5."""
    retries: Literal["auto"] | Whole
    """New attempts of an agent, each after a reflection; see ``Rounds``."""
    reflection_window: Count
    """How many lessons a new rollout sees of its sample. The Curator sees the lessons of as many samples."""
    generator_reflections: Whole
    """Lessons on earlier samples that each first rollout of adaptation is shown."""
    bullet_order: Literal["created", "helpful"]
    """The order of the bullets that the Generator is shown."""
    reflector: Literal["on", "off", "rules"]
    """``off``: the Curator gets the rollout itself (table 3); ``rules`` ask no model."""
    harmful_every: Count | None
    """A Reflector that is asked to mislead takes over every so many steps (table 17). ``None`` means never."""
    update: Literal["delta", "rewrite"]
    """``rewrite``: the Curator writes the whole playbook anew (table 18)."""
    operations: Annotated[Sequence[Kind], Meta(min_length=1, description=_OPERATIONS)]
    """What the Curator may do; the official code knows ADD only."""
    curator_sees: Literal["all"] | Count
    """The bullets that the Curator sees: all, or so many that are most similar to lesson and question."""
    refuse_echoes: bool
    """Refuse bullets that repeat the prompts or speak about the playbook."""
    verify: bool
    """Keep a lesson only if a sample turns right with it and no guard sample wrong."""
    guard_samples: Whole
    """Samples that were answered right and must stay so, for ``verify``."""
    initial: Text | None
    """A playbook to start from: a saved context or the official text."""
    refiner: Refiner
    """Grow-and-refine (section 3.2)."""
    retrieval: Retrieval
    """Chooses the bullets that the Generator is shown for its question (section 3.1)."""

    def __post_init__(self) -> None:
        """Raise ``SettingError`` for settings that contradict each other and for a missing file."""
        if self.reflector == "rules" and self.update == "rewrite":
            raise SettingError("update=rewrite needs a Curator, and reflector=rules asks none: set update=delta")
        if self.curator_sees != "all" and (self.update == "rewrite" or self.reflector == "rules"):
            odd = "update=rewrite" if self.update == "rewrite" else "reflector=rules"
            raise SettingError(
                f"curator_sees={self.curator_sees} is for a Curator that proposes deltas; with {odd} set all"
            )
        if self.verify and self.update == "rewrite":
            raise SettingError(
                "verify=true checks deltas, and update=rewrite makes none: set update=delta, or verify=false"
            )
        if self.harmful_every is not None and self.reflector != "on":
            raise SettingError(
                f"harmful_every={self.harmful_every} needs a Reflector: set reflector=on, or this to null"
            )
        if self.generator_reflections and self.reflector == "off":
            raise SettingError(
                f"generator_reflections={self.generator_reflections} needs a Reflector: set reflector=on, or this to 0"
            )
        if self.initial is not None and not Path(self.initial).is_file():
            raise SettingError(f"initial={self.initial} is not a file: give a saved playbook, or null")

    def make_reflector(self) -> Reflector:
        """Return the Reflector, or what replaces it."""
        if self.harmful_every is not None:
            return HarmfulReflector(self.harmful_every)
        return {"on": Reflector, "off": NoReflector, "rules": RulesReflector}[self.reflector]()

    def make_curator(self) -> Curator:
        """Return the Curator, or what replaces it.

        A rewritten playbook consists of ADD operations, to any section. Rules add and vote, and their categories are
        sections.
        """
        kinds: tuple[Kind, ...] = tuple(self.operations)
        unknown: UnknownSection = "reject"
        curator: type[Curator] = Curator
        if self.reflector == "rules":
            curator, kinds, unknown = RulesCurator, ("ADD", "TAG"), "create"
        elif self.update == "rewrite":
            curator, kinds, unknown = RewritingCurator, ("ADD",), "others"
        parts: dict[str, Any] = {
            "limits": Limits(kinds=kinds, unknown_section=unknown),
            "token_budget": self.refiner.max_tokens or _NAMED_BUDGET,
            "window": self.reflection_window,
            "refuses_echoes": self.refuse_echoes,
        }
        if self.curator_sees == "all":
            return curator(**parts)
        return NearestCurator(view=NearestBullets(memo=self.refiner.memo, top_k=self.curator_sees), **parts)

    @property
    def rounds(self) -> Rounds:
        """How many more times a sample is tried."""
        if self.reflector == "off":
            return _ONE_ATTEMPT
        return Rounds(reflections=self.max_reflection_rounds, retries=self.retries)

    def make_verifier(self) -> Verifier | None:
        """Return what checks lessons, ``None`` if all stay."""
        memo = EmbeddingMemo(self.refiner.memo.embedder)
        return Verifier(memo=memo, guard=self.guard_samples) if self.verify else None

    def make(self) -> Ace:
        """Return the method. Its parts share their embeddings."""
        self.retrieval.share(self.refiner.memo)
        parts: dict[str, Any] = {
            "reflector": self.make_reflector(),
            "curator": self.make_curator(),
            "refiner": self.refiner,
            "rounds": self.rounds,
            "initial": self.initial,
            "retrieval": None if self.retrieval.mode == "off" else self.retrieval,
            "verifier": self.make_verifier(),
            "remembered": max(self.reflection_window - 1, self.generator_reflections),
        }
        helpful_first = self.bullet_order == "helpful"
        if not (self.generator_reflections or helpful_first):
            return Ace(**parts)
        return AceWithOtherView(earlier_lessons=self.generator_reflections, helpful_first=helpful_first, **parts)


def make_ace(**settings: Annotated[Any, AceSettings]) -> Ace:
    """Return ACE: the paper's method, with the ablations that the settings ask for."""
    return AceSettings(**settings).make()
