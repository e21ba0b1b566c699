"""How a model works on a machine: its instructions, the commands in its replies, and the output that it sees.

None of it needs Harbor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from ace_bench.core.replies import ToolCall, offer, without_surrogates
from ace_bench.core.types import Message
from ace_environments.episode import ReplyRequest
from ace_environments.messages import describe_tool

Commands = Literal["tool", "block"]
_MOST_OUTPUT = 8000
"""Characters of a command's output that the model is shown; of more the middle is left out."""
_LONGEST = 20_000
BLOCK = re.compile(r"```(?:bash|sh|shell)?[ \t]*\n(.*?)```", re.DOTALL)
_INSTRUCTIONS = (
    "You work on a Linux machine, by commands for bash. Each starts in the same folder; files stay as you leave them."
)
_WAYS: Mapping[Commands, str] = {
    "tool": "Run one with the tool bash and read what it prints. When the work is done, reply without calling it.",
    "block": "Write one in a block that begins with ```bash and ends with ```; you are told what it prints. "
    "When the work is done, reply without a block.",
}
_PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
_TOOL = describe_tool("bash", "Run a command on the machine.", _PARAMETERS)
NO_COMMAND = 'Error: call bash with {"command": "..."}; there is no other tool'


def first_request(instruction: str, commands: Commands) -> ReplyRequest:
    """Return what the model is asked first."""
    system = Message(role="system", content=f"{_INSTRUCTIONS} {_WAYS[commands]}")
    schema = offer([_TOOL]) if commands == "tool" else None
    return ReplyRequest(messages=(system, Message(role="user", content=instruction)), schema=schema)


def as_command(script: str, commands: Commands) -> str:
    """Return a solution as the model would give it, in the form that trajectories have."""
    script = re.sub(r"\A#!.*\n", "", script).strip()
    return f"bash(command={script!r})" if commands == "tool" else f"```bash\n{script}\n```"


def read_command(call: ToolCall) -> str | None:
    """Return the command of a tool call; ``None`` if it calls another tool, or wrongly."""
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return arguments.get("command") if call.name == "bash" else None


def refuse_command(command: str) -> str | None:
    """Return the error that the model sees for a command that cannot be run; ``None`` if it can."""
    if "\0" in command or without_surrogates(command) != command or len(command) > _LONGEST:
        return f"Error: a command is a text of at most {_LONGEST} characters, without null bytes"
    return None


def show_output(printed: str | None, errors: str | None, status: int) -> str:
    """Return what the model is shown of a command that has ended."""
    shown = "\n".join(filter(None, [(printed or "").strip(), (errors or "").strip()]))
    if len(shown) > _MOST_OUTPUT:
        shown = f"{shown[: _MOST_OUTPUT // 2]}\n[...]\n{shown[-_MOST_OUTPUT // 2 :]}"
    failed = "" if status == 0 else f"Error: exit status {status}"
    return "\n".join(filter(None, [shown, failed])) or "(no output)"
