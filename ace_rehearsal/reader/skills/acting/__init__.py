"""Acting on apps by code: explore documentation, compose programs of what lessons teach, learn from solutions."""

from ace_rehearsal.reader.skills.acting.case import Acting

__all__ = ["Acting"]
