"""Agent Workflow Memory: routines induced from solved tasks, all shown with every later task (arXiv 2409.07429)."""
