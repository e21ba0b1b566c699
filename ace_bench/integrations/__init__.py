"""Adapted contexts and learning in other frameworks; each package needs the extra of the same name."""
