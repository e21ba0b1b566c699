"""What uses the harness from above: LangChain agents, retrieval of bullets, checks of validity, trackers."""
