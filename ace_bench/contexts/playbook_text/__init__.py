"""The playbook as the text that the authors' code edits."""
