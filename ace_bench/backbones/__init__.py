"""Models behind one interface: any OpenAI-compatible endpoint, and servers that a run starts."""
