"""Guest: tables, figures and pages of finished runs, the paper's numbers beside them, and ``ace-bench reproduce``."""
