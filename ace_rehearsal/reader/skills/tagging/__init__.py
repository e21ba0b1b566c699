"""Skill: choose one of many tags for each number asked about (FiNER)."""

from ace_rehearsal.reader.skills.tagging.case import Tagging

__all__ = ["Tagging"]
