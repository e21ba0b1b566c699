"""Skill: compute one number from the numbers of a question (Formula)."""

from ace_rehearsal.reader.skills.arithmetic.case import Arithmetic

__all__ = ["Arithmetic"]
