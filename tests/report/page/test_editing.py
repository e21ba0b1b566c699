"""What the viewer's server takes as a change of a playbook, and what it refuses."""

import http.client
import json
import socket

import pytest

from ace_bench.contexts.loading import load
from ace_bench.report.page.editing import LARGEST
from tests.report.page.runs import copied, viewing


@pytest.fixture
def edited(shelf, tmp_path):
    copied(shelf.ace, tmp_path / "seed0")
    with viewing(tmp_path, editing=True) as server:
        yield server


def posted(server, body, path="/playbook", **headers):
    """Send a change as the page does, with other headers. Return the status and the text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    usual = {"Origin": server.address.rstrip("/"), "X-Token": server.token, "Content-Type": "application/json"}
    sent = {name: value for name, value in {**usual, **headers}.items() if value is not None}
    connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), sent)
    reply = connection.getresponse()
    status, text = reply.status, reply.read().decode()
    connection.close()
    return status, text


def a_vote(server, **more):
    ((key, run),) = server.results.runs().items()
    bullet = next(iter(load(run.context_file("tested")).index))
    return {"run": key, "bullet": bullet, "vote": "helpful", **more}


def files(root):
    return sorted(path.relative_to(root).as_posix() for path in (root / "edited").glob("*"))


def test_a_vote_and_new_words_are_written_to_a_copy_and_counted_once_each(edited, tmp_path):
    vote = a_vote(edited, note="it held")
    status, text = posted(edited, vote)
    answer = json.loads(text)
    first = load(answer["file"]).index[vote["bullet"]]
    assert (status, files(tmp_path)[-1]) == (200, f"edited/finer-ace-{vote['run']}.json")
    assert "mode=evaluate" in answer["command"]
    assert "task=finer" in answer["command"]
    assert posted(edited, vote)[0] == 200
    words = {"run": vote["run"], "bullet": vote["bullet"], "content": "Say it\x00 in other words."}
    assert json.loads(posted(edited, words)[1])["content"] == "Say it in other words."
    assert load(answer["file"]).index[vote["bullet"]].helpful == first.helpful + 1
    other = [*load(answer["file"]).index.values()][1]
    status, text = posted(edited, {**words, "content": other.content})
    assert (status, text) == (400, f"bullet {other.id} already says exactly this")


def test_who_may_change_nothing_is_told_so_and_nothing_is_written(edited, tmp_path):
    vote = a_vote(edited)
    port = edited.server_port
    refused = [
        {"X-Token": None}, {"X-Token": ""}, {"X-Token": edited.token[:-1]}, {"X-Token": "\xe9" * 32},
        {"Origin": None}, {"Origin": "null"}, {"Origin": "http://evil.example"}, {"Origin": f"https://127.0.0.1:{port}"},
        {"Origin": f"http://localhost:{port}"}, {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example", "Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"},
    ]  # fmt: skip
    assert [posted(edited, vote, **headers)[0] for headers in refused] == [403] * len(refused)
    assert [posted(edited, vote, **{"Content-Type": kind})[0] for kind in ("text/plain", None)] == [404, 404]
    assert posted(edited, vote, path="/playbook/../x")[0] == 404
    assert posted(edited, vote, path=f"/playbook?token={edited.token}")[0] == 404
    assert not (tmp_path / "edited").exists()


def test_a_read_only_viewer_takes_no_change(viewer):
    assert viewer.token == ""
    assert viewer.editing_address == viewer.address
    assert posted(viewer, {})[0] == 403


@pytest.mark.parametrize(
    "more",
    [
        {"run": "0" * 12}, {"run": "../../etc"}, {"run": "."}, {"run": None}, {"bullet": "../x"}, {"bullet": "nope-1"},
        {"vote": "best"}, {"vote": None}, {"content": "both"}, {"note": "x" * 2001}, {"file": "/tmp/x"},
        {"vote": None, "content": " \x00 "}, {"vote": None, "content": 3},
    ],
)  # fmt: skip
def test_what_is_no_change_of_a_bullet_is_refused_with_a_reason(edited, more):
    status, text = posted(edited, a_vote(edited, **more))
    assert status == 400
    assert len(text) > 20


def test_bodies_that_are_large_cut_or_no_json_are_refused(edited, tmp_path):
    assert posted(edited, b" " * (LARGEST + 1))[0] == 413
    assert posted(edited, b"x", **{"Content-Length": "-1"})[0] == 413
    assert posted(edited, b"0\r\n\r\n", **{"Transfer-Encoding": "chunked", "Content-Length": "5"})[0] == 413
    for body in (b"", b"{", b"[1]", b"\xff\xfe", b"[" * 60_000, b'{"run": "' + b"a" * 1000 + b'"}'):
        assert posted(edited, body)[0] == 400, body[:20]
    head = (
        f"POST /playbook HTTP/1.1\r\nHost: 127.0.0.1:{edited.server_port}\r\nOrigin: {edited.address.rstrip('/')}\r\n"
    )
    with socket.create_connection(("127.0.0.1", edited.server_port), timeout=10) as connection:
        rest = f"X-Token: {edited.token}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
        connection.sendall((head + rest).encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(64).startswith(b"HTTP/1.1 400 ")
    assert not (tmp_path / "edited").exists()


def test_nothing_is_written_through_a_link(edited, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "edited").symlink_to(elsewhere)
    status, text = posted(edited, a_vote(edited))
    assert (status, [*elsewhere.iterdir()]) == (400, [])
    assert "is a link" in text
