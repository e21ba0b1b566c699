"""Guest: measures the harness itself; ``command`` is ``ace-bench benchmark``."""
