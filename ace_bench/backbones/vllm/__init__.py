"""A model on a vLLM or llama.cpp server, either a running one or one launched for the run."""
