"""Prints how many steps and calls were equal, by scenario."""

from __future__ import annotations

import pytest

EQUAL = "equal"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = [
        (report.nodeid.rpartition("::")[2], dict(report.user_properties)[EQUAL])
        for report in terminalreporter.stats.get("passed", ())
        if EQUAL in dict(report.user_properties)
    ]
    if not found:
        return
    terminalreporter.section("equal to the authors' code")
    for name, counts in sorted(found):
        terminalreporter.line("{:4} steps {:5} calls {:3} sent once, not twice  {}".format(*counts, name))
    total = [sum(column) for column in zip(*(counts for _, counts in found), strict=True)]
    terminalreporter.line("{:4} steps {:5} calls {:3} sent once, not twice  in total".format(*total))
