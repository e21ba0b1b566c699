"""Each package in examples/ installs, and its README's commands print what it shows."""

import re
import shlex

import pytest

from tests.examples.packages import EXAMPLES, install, output_of, plain

pytestmark = pytest.mark.slow

NEEDS = {"langchain_agent": "langchain"}
"""The library that an example needs, of an extra."""


def lines(name: str, kind: str) -> list[str]:
    """The lines of a README's blocks of one kind."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    return "".join(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)).splitlines()


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml")))
def test_the_commands_print_what_the_readme_shows(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    installing, *commands = map(shlex.split, lines(name, "bash"))
    assert installing == ["pip", "install", f"./examples/{name}"]
    install(name, tmp_path / "site")
    rest = " ".join(output_of(*command, site=tmp_path / "site", folder=tmp_path) for command in commands)
    for line in map(plain, lines(name, "text")):
        assert line in rest, f"not in the output, or not in this order: {line}\n{rest}"
        rest = rest.partition(line)[2]
