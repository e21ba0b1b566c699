"""Guest: converts the authors' prompts into prompt sets, one module a repository."""
