"""Serve a playbook to agents over the Model Context Protocol, with tools to search it and to vote.

    ace-bench playbook mcp playbook.json
    ace-bench playbook mcp playbook.json --port 8765

Without --port it talks over standard input and output, as agents start such servers. Votes count as with
`ace-bench playbook feedback`, and are saved at once; several servers and commands may change one file.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ace_bench.cli.arguments import Parser
from ace_bench.contexts.loading import change_playbook, system_prompt
from ace_bench.contexts.playbook.embeddings import HashingEmbedder
from ace_bench.contexts.playbook.feedback import give_feedback
from ace_bench.contexts.selection import NearestTexts
from ace_bench.core.errors import AceBenchError, ConfigError
from ace_bench.core.resources import require
from ace_playbooks.looking import read_playbook

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_INSTRUCTIONS = (
    "Lessons from earlier work. Before a task, search for those that fit it. Afterwards, say of each lesson that you "
    "used whether it was helpful or harmful."
)


def make_server(file: Path, *, by: str) -> MCPServer[Any]:
    """Return the server of a saved playbook, which is read anew for each request; votes are cast by ``by``."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    nearest = NearestTexts(HashingEmbedder())
    server: MCPServer[Any] = MCPServer("ace-bench playbook", instructions=_INSTRUCTIONS, log_level="WARNING")

    def playbook(section: str | None) -> str:
        book = read_playbook(file)
        return system_prompt(book.with_bullets([one for one in book.bullets if section in (None, one.section)]))

    def search_bullets(question: str, limit: int = 5) -> list[dict[str, str]]:
        """Find the lessons nearest to a question or task, the nearest first."""
        bullets = read_playbook(file).bullets
        found = nearest.find([one.content for one in bullets], near=[question], top_k=max(1, limit))
        places = [one.place for one in reversed(found)]
        return [{"id": bullets[n].id, "section": bullets[n].section, "content": bullets[n].content} for n in places]

    def give_bullet_feedback(bullet_id: str, helpful: bool, note: str = "") -> str:
        """Say whether a lesson that you used was helpful or, with helpful=false, harmful; note says why."""
        vote = partial(give_feedback, bullet=bullet_id, vote="helpful" if helpful else "harmful", by=by, note=note)
        try:
            return change_playbook(file, vote).index[bullet_id].counters
        except AceBenchError as error:
            raise ToolError(str(error)) from error

    server.resource("playbook://all", name="all", description="All lessons, by section.")(partial(playbook, None))
    for name in dict.fromkeys(bullet.section for bullet in read_playbook(file).bullets):
        uri, about = f"playbook://sections/{quote(name)}", f"The lessons of the section {name}."
        server.resource(uri, name=name, description=about)(partial(playbook, name))
    server.add_tool(search_bullets)
    server.add_tool(give_bullet_feedback)
    return server


def main(arguments: Sequence[str]) -> int:
    """Serve until the client leaves or the process is stopped; return the exit status."""
    parser = Parser("playbook mcp", __doc__)
    parser.add_argument("playbook", type=Path, help="saved playbook (.json)")
    parser.add_argument("--port", type=int, help="serve streamable HTTP at http://127.0.0.1:PORT/mcp")
    parser.add_argument("--by", default="agent", help="who votes (default: agent)")
    options = parser.parse_args(arguments)
    if options.playbook.suffix != ".json":
        raise ConfigError(f"{options.playbook} cannot keep votes: `ace-bench playbook merge` makes a .json file of it")
    require("ace-bench playbook mcp", "mcp")
    server = make_server(options.playbook, by=options.by)
    if options.port is None:
        server.run("stdio")
        return 0
    try:
        socket.create_server(("127.0.0.1", options.port)).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(f"--port {options.port} cannot be used ({error}); choose another one") from error
    server.run("streamable-http", port=options.port)
    return 0
