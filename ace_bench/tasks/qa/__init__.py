"""Question answering on data of your own: named columns of a file, and a grader by name."""

from ace_bench.tasks.qa.task import Qa

__all__ = ["Qa"]
