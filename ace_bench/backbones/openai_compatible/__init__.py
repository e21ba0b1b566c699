"""Any endpoint that speaks the OpenAI chat-completions protocol, hosted or local."""
