"""Errors that reach a user, and the clean stops. Every message names the cause and the fix."""

from __future__ import annotations

from ace_bench.core.redaction import redacted
from ace_bench.core.types import Completion, Fault


class AceBenchError(Exception):
    """Base of all errors this package raises on purpose; the console shows the message without a traceback.

    Messages reach consoles, logs and run folders, so secrets in them are replaced here.
    """

    def __init__(self, message: str = ""):
        super().__init__(redacted(message))


class ConfigError(AceBenchError):
    """The configuration cannot work; raised before anything is spent."""


class SettingError(ConfigError):
    """A setting of a part cannot work. The message begins with its name; who built the part adds where that stands."""


class DataError(AceBenchError):
    """A data file is missing, damaged or incomplete; the message names the file and, if it can, the line."""


class StoreError(AceBenchError):
    """A run folder is in use, damaged or belongs to another configuration."""


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
    """The backbone cannot be reached at all: no sample should pay for that with a wrong answer."""


class CallLost(AceBenchError):
    """A backbone gave no answer to a call: whatever asked is asked again, and nothing may be learnt or graded.

    It is not a ``RolloutFault``, so that code that turns those into data cannot take it for an answer.
    """

    def __init__(self, fault: Fault):
        super().__init__(f"{fault.kind}: {fault.message}")
        self.fault = fault


class FolderUnwritable(Stopped):
    """A file of the run folder cannot be written. Nothing more is paid for, as its reply could not be kept."""


class RolloutFault(AceBenchError):
    """One rollout or one role call failed; becomes data (``Rollout.fault``), never the end of a run.

    ``paid`` is the reply that was paid for and could not be used, where there was one: its tokens count.
    """

    def __init__(self, fault: Fault, paid: Completion | None = None):
        super().__init__(f"{fault.owner} fault, {fault.kind}: {fault.message}")
        self.fault = fault
        self.paid = paid
