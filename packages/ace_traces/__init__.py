"""Guest: traces of agents as samples to learn from, and playbooks for agents: MCP, AGENTS.md, skills."""
