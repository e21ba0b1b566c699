"""A model on a vLLM server, either a running one or one launched for the run."""
