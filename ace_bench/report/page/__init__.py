"""Run folders as one HTML page that needs nothing else (``ace-bench report``)."""
