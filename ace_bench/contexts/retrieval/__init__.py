"""Parts of retrieval: the index of words, typos, expansions, and the order by own features."""
