"""ReasoningBank: titled memory items from successes and failures, retrieved by similarity (arXiv 2509.25140)."""
