"""The calls of a backbone outside of a run, counted in a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ace_bench.core.backbones import Backbone
from ace_bench.core.errors import RolloutFault
from ace_bench.core.replies import takes_tools
from ace_bench.core.types import Completion, Message, Record, Stage
from ace_bench.store.call_log import Ledger


@dataclass(frozen=True, kw_only=True)
class CountedModels:
    """Backbones by role, ``backbone`` for those not in ``roles``; ``ledger`` counts every call by its role.

    It counts and does nothing else: a run's gateway also limits, records and replays calls.
    """

    backbone: Backbone
    roles: Mapping[str, Backbone] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)

    def lm(self, role: str, session: str) -> CountedLm:
        """Return a role's backbone, bound to a session, which groups the calls of one attempt."""
        return CountedLm(backbone=self.roles.get(role, self.backbone), role=role, session=session, ledger=self.ledger)


@dataclass(frozen=True, kw_only=True)
class CountedLm:
    """A backbone bound to a role and a session."""

    backbone: Backbone
    role: str
    session: str
    ledger: Ledger

    @property
    def takes_tools(self) -> bool:
        """Whether the backbone can be offered tools."""
        return takes_tools(self.backbone)

    def __call__(self, messages: Sequence[Message], schema: Record | None = None) -> Completion:
        """Complete once; what a failed call cost is counted, too."""
        try:
            completion = self.backbone.complete(messages, role=self.role, session=self.session, schema=schema)
        except RolloutFault as error:
            if error.paid is not None:
                self.ledger.add(Stage.ADAPT, self.role, error.paid, answered=not error.fault.unanswered)
            raise
        self.ledger.add(Stage.ADAPT, self.role, completion)
        return completion
