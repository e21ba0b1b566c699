"""Graders of answers, by name."""
