"""The paper's own numbers: every cell of its tables 1-21, figures 2 and 5, and what only its text states.

``data/`` holds one YAML file a table. Figure 1 states no numbers: its bars are averages of tables 1 and 2.
"""
