"""The commands that this guest adds."""
