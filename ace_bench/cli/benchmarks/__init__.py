"""The cases of ``ace-bench benchmark``."""
