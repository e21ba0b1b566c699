"""The authors' prompts as prompt sets of ours: one module a repository."""
