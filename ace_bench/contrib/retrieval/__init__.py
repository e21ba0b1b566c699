"""Guest: retrieval of bullets in the stages of document 004, and its measurement (``ace-bench retrieval``)."""
