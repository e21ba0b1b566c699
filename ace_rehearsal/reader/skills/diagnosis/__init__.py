"""Skill: choose one of many numbered diagnoses for a patient profile (DDXPlus)."""

from ace_rehearsal.reader.skills.diagnosis.case import Diagnosing

__all__ = ["Diagnosing"]
