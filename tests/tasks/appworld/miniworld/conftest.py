"""The engine and the task on the mini-world, as the tests of the AppWorld task have them."""

from tests.tasks.appworld.conftest import engine, root, task

__all__ = ["engine", "root", "task"]
