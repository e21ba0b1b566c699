"""The commands behind ``ace-bench``. ``run.py`` and the files in ``scripts/`` start the same functions."""
