"""A package that adds a task, a method with its context, prompts and a preset to ace-bench."""
