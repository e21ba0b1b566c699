"""Calls in batch files: OpenAI's files and batches at half the price, and vLLM's ``run-batch`` without a server."""
