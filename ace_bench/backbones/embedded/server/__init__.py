"""The embedded backbone served over HTTP in the protocol of OpenAI, with latency and faults on request."""
