"""A memory that calls no model: the reflector and curator of the LangChain middleware ``agent_episodic_memory``."""
