"""The MCP server of a playbook with the package's own client, over standard input and output and over HTTP."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager

import pytest

from ace_bench.backbones.vllm.command import free_port
from ace_bench.cli.main import start
from ace_bench.contexts import load
from ace_bench.contexts.loading import save_context
from ace_bench.contexts.playbook.playbook import Playbook
from tests.backbones.serving import wait_for_port
from tests.contexts.making import bullet

mcp = pytest.importorskip("mcp", reason="needs the extra mcp: make test-environments")
WORDS = [sys.executable, "-m", "ace_bench", "playbook", "mcp"]


@pytest.fixture
def book(tmp_path):
    bullets = [bullet(1, "Convert all units.", "strategies"), bullet(2, "Ask the ledger for payments.", "tool_use")]
    save_context(Playbook.build_from(bullets, sections=[]), tmp_path / "book.json")
    return tmp_path / "book.json"


@contextmanager
def serving(book):
    """Yield the address of a server over HTTP once it answers."""
    port = free_port()
    server = subprocess.Popen([*WORDS, str(book), "--port", str(port), "--by", "bob"], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, server)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait()


async def talk(server):
    """Use everything that the server offers."""
    async with mcp.Client(server) as client:
        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        texts = [(await client.read_resource(uri)).contents[0].text for uri in uris]
        tools = [one.name for one in (await client.list_tools()).tools]
        found = await client.call_tool("search_bullets", {"question": "Which payments did Acme make?", "limit": 1})
        asked = {"bullet_id": "tu-00002", "helpful": True, "note": "it was there"}
        voted = await client.call_tool("give_bullet_feedback", asked)
        lost = await client.call_tool("give_bullet_feedback", {"bullet_id": "tu-00009", "helpful": False})
        return uris, texts, tools, found.structured_content, voted.content[0].text, lost


def check(answers):
    uris, texts, tools, found, voted, lost = answers
    assert uris == ["playbook://all", "playbook://sections/strategies", "playbook://sections/tool_use"]
    assert [text.count("[") for text in texts] == [2, 1, 1]
    assert tools == ["search_bullets", "give_bullet_feedback"]
    assert found["result"] == [{"id": "tu-00002", "section": "tool_use", "content": "Ask the ledger for payments."}]
    assert voted == "helpful 1, harmful 0, neutral 0"
    assert lost.is_error
    assert "there is no bullet tu-00009" in lost.content[0].text


@pytest.mark.filterwarnings("ignore")
def test_resources_search_and_votes_over_standard_input_and_output(book):
    program = mcp.StdioServerParameters(command=WORDS[0], args=[*WORDS[1:], str(book)])
    check(asyncio.run(talk(mcp.stdio_client(program))))
    voted = load(book).index["tu-00002"]
    assert (voted.helpful, voted.sources[0].split("@")[0], voted.sources[0][-12:]) == (1, "agent", "it was there")


@pytest.mark.filterwarnings("ignore")
def test_two_clients_over_http_and_a_command_change_one_file(book):
    async def both(address):
        await asyncio.gather(talk(address), talk(address))

    with serving(book) as address:
        asyncio.run(both(address))
        assert start("playbook", ["mcp", str(book), "--port", address.split(":")[2].split("/")[0]]) == 2
        assert start("playbook", ["feedback", str(book), "--bullet", "tu-00002", "--harmful"]) == 0
    voted = load(book).index["tu-00002"]
    assert (voted.helpful, voted.harmful, {one.split("@")[0] for one in voted.sources}) == (2, 1, {"bob", "user"})


@pytest.mark.parametrize(("name", "problem"), [("book.txt", "cannot keep votes"), ("none.json", "cannot be read")])
def test_a_file_that_cannot_be_served_is_one_sentence(tmp_path, capsys, name, problem):
    assert start("playbook", ["mcp", str(tmp_path / name)]) == 2
    assert problem in capsys.readouterr().err
