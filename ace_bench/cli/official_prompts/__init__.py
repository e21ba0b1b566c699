"""Converts the authors' prompts into prompt sets: one module per repository."""
