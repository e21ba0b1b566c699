"""Guest: ``ace-bench playbook``: look at saved playbooks, compare, check, merge, share and change them."""
