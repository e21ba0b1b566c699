"""The paper's figures and further figures on learning, cost and caching, from finished runs."""
