"""Errors shown to users, and clean stops of a run. Every message names the cause and the fix."""

from __future__ import annotations

from ace_bench.core.redaction import redact
from ace_bench.core.types import Completion, Fault


class AceBenchError(Exception):
    """Base of all errors that this package raises on purpose; the console shows the message without a traceback.

    Secrets in the message are replaced, because it is written to consoles, logs and run folders.
    """

    def __init__(self, message: str = ""):
        super().__init__(redact(message))


class ConfigError(AceBenchError):
    """The configuration cannot work; raised before anything is spent."""


class SettingError(ConfigError):
    """A setting cannot work. The message begins with the setting's name; ``core.settings`` puts its path before it."""


class DataError(AceBenchError):
    """A data file is missing, damaged or incomplete; the message names the file and, if known, the line."""


class FileUnwritable(AceBenchError):
    """A file that a command makes cannot be written; what was there before is as it was."""


class StoreError(AceBenchError):
    """A run folder is in use, damaged or belongs to another configuration."""

    @classmethod
    def unreadable(cls, path: object, error: OSError) -> StoreError:
        """Return the error for a file or folder that cannot be read."""
        return cls(f"{path} cannot be read ({error.strerror}); make it readable, or restore it")


class FolderDamaged(StoreError):
    """A file of a run folder is missing or does not hold what was written to it."""


class Stopped(AceBenchError):
    """The run ends early and can be continued by the same command; ``reason`` goes into the summary."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = str(self)


class BudgetExhausted(Stopped):
    """A hard limit of ``budget`` is reached."""


class Interrupted(Stopped):
    """The user asked to stop."""


class BackboneUnavailable(Stopped):
    """The backbone cannot be reached, so the run stops instead of counting answers as wrong."""


class CallLost(AceBenchError):
    """A backbone did not answer a call: the rollout or step is repeated; it is neither graded nor learned.

    It is no ``RolloutFault``, because code that records those would count it as a wrong answer.
    """

    def __init__(self, fault: Fault):
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class FolderUnwritable(Stopped):
    """A file of the run folder cannot be written; the run stops, because it could not keep further replies."""


_EMPTY = "empty_reply"
UNREADABLE = frozenset(("unreadable_reply", "length_truncated", _EMPTY, "no_content", "refusal"))
"""Kinds of faults of a model that did reply, but with nothing that can be read."""


class RolloutFault(AceBenchError):
    """One rollout or one call of a role failed. It is recorded (``Rollout.fault``) and does not end the run.

    ``paid`` is the unusable reply, if there was one: its tokens count.
    """

    def __init__(self, fault: Fault, paid: Completion | None = None):
        super().__init__(f"{fault.owner} fault, {fault.kind}: {fault.message}")
        self.fault = fault
        self.paid = paid

    @property
    def unreadable(self) -> bool:
        """Whether the model replied with something that cannot be read."""
        return self.fault.owner == "model" and self.fault.kind in UNREADABLE

    @property
    def unreadable_text(self) -> str | None:
        """The text of an unreadable reply; ``None`` for other faults."""
        if not self.unreadable:
            return None
        return "" if self.paid is None else self.paid.text

    @property
    def blank(self) -> str | None:
        """The text of a reply that is empty or has only thoughts, for callers that accept it as an answer.

        It is ``None`` for other replies.
        """
        if self.paid is None:
            return None
        only_thoughts = self.paid.written and not self.paid.text
        return self.paid.as_written if self.fault.kind == _EMPTY or only_thoughts else None
