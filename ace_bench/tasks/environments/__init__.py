"""Guest: environments of the packages verifiers and Inspect AI as tasks, with the agent that plays them."""
