"""Programs for the engine's interpreter; they import nothing of ``ace_bench`` but the modules in ``shared``."""
