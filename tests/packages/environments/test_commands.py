"""How commands are asked for, read and shown; Harbor is not needed."""

import json

import pytest

from ace_bench.core.replies import ToolCall
from ace_environments.commands import BLOCK, as_command, first_request, read_command, refuse_command, show_output


def test_the_model_is_told_how_to_give_commands():
    for commands, word, tools in (("tool", "the tool bash", 1), ("block", "begins with ```bash", 0)):
        request = first_request("Do it.", commands)
        assert [message.role for message in request.messages] == ["system", "user"]
        assert word in request.messages[0].content
        assert json.dumps(request.schema).count('"bash"') == tools
    script = "#!/bin/bash\n# It's done.\ntouch a\n"
    assert as_command(script, "tool") == """bash(command="# It's done.\\ntouch a")"""
    assert as_command(script, "block") == "```bash\n# It's done.\ntouch a\n```"
    assert [BLOCK.search(f"So:\n```{kind}\nls\n```\n")[1] for kind in ("bash", "sh ", "")] == ["ls\n"] * 3
    assert BLOCK.search("```python\nls\n```\n") is None


@pytest.mark.parametrize(
    ("name", "arguments", "command"),
    [
        ("bash", '{"command": "ls", "why": "so"}', "ls"),
        ("python", '{"command": "ls"}', None),
        *(("bash", text, None) for text in ("", "{}", "[1]", '{"command": 1}', '{"command"', "[" * 100_000, "\ud800")),
    ],
)
def test_only_a_command_that_is_a_text_is_read(name, arguments, command):
    assert read_command(ToolCall(id="", name=name, arguments=arguments)) == command


def test_commands_and_their_output_have_a_longest_length():
    assert [bool(refuse_command(text)) for text in ("x" * 20_000, "x" * 20_001, "\0", "\ud800")] == [0, 1, 1, 1]
    assert show_output(" a\n", "b ", 0) == "a\nb"
    assert show_output(None, None, 0) == "(no output)"
    assert show_output("", "no", 2) == "no\nError: exit status 2"
    assert show_output("a" * 8_000, "", 0) == "a" * 8_000
    assert show_output("a" * 4_000 + "x" + "b" * 4_000, "", 0) == "a" * 4_000 + "\n[...]\n" + "b" * 4_000
