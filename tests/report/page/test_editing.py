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


def asked(server, address):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", address)
    reply = connection.getresponse()
    status, text = reply.status, reply.read().decode()
    connection.close()
    return status, text


def in_copy(state, bullet):
    return next(one for one in state["bullets"] if one["id"] == bullet)


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
    assert in_copy(json.loads(posted(edited, words)[1]), vote["bullet"])["content"] == "Say it in other words."
    assert load(answer["file"]).index[vote["bullet"]].helpful == first.helpful + 1
    other = [*load(answer["file"]).index.values()][1]
    status, text = posted(edited, {**words, "content": other.content})
    assert (status, text) == (400, f"bullet {other.id} already says exactly this")


def test_a_bullet_is_removed_put_back_and_added_and_a_reload_shows_it(edited, tmp_path):
    run, bullet = (a_vote(edited)[name] for name in ("run", "bullet"))
    assert asked(edited, f"/playbook?run={run}") == (200, "{}")
    assert not (tmp_path / "edited").exists()
    removed = json.loads(posted(edited, {"run": run, "bullet": bullet, "keep": False})[1])
    assert removed["removed"] == [bullet]
    assert bullet not in load(removed["file"]).index
    assert posted(edited, {"run": run, "bullet": bullet, "keep": False})[0] == 400
    added = json.loads(posted(edited, {"run": run, "section": "My Notes!", "content": "Check the unit."})[1])
    (new,) = added["bullets"]
    assert (new["section"], new["content"], added["removed"]) == ("my_notes", "Check the unit.", [bullet])
    assert load(added["file"]).index[new["id"]].sources == (f"user#{new['id']}",)
    assert "my_notes" in load(added["file"]).sections
    assert json.loads(asked(edited, f"/playbook?run={run}")[1]) == added
    back = json.loads(posted(edited, {"run": run, "bullet": bullet, "keep": True})[1])
    assert (back["removed"], back["bullets"]) == ([], [new])
    assert posted(edited, {"run": run, "bullet": bullet, "keep": True})[0] == 400
    assert posted(edited, {"run": run, "bullet": new["id"], "keep": False})[0] == 200
    status, text = posted(edited, {"run": run, "bullet": new["id"], "keep": True})
    assert (status, "cannot be put back" in text) == (400, True)


@pytest.mark.parametrize("run", ["", "0" * 12, "../../etc/passwd", "%00"])
def test_edits_are_shown_of_runs_in_the_list_alone(edited, run):
    assert asked(edited, f"/playbook?run={run}")[0] == 400


def test_a_copy_that_holds_something_else_is_refused(edited, tmp_path):
    vote = a_vote(edited)
    file = json.loads(posted(edited, vote)[1])["file"]
    for content in ("{", "[]", '{"kind": "instruction", "text": "x"}', "[" * 9000):
        with open(file, "w") as copy:
            copy.write(content)
        assert [asked(edited, f"/playbook?run={vote['run']}")[0], posted(edited, vote)[0]] == [400, 400], content


def test_the_tables_lead_back_with_the_token_only_where_the_request_had_it(tmp_path, shelf):
    copied(shelf.ace, tmp_path / "seed0")
    link = '<a href="index.html#view=summary&run=x">1</a> href=&#34;index.html'
    with viewing(tmp_path, editing=True, tables=link) as server:
        right = f"/tables.html?token={server.token}"
        assert asked(server, right)[1] == link.replace("html#", f"html?token={server.token}#")
        wrong = ["", server.token[:-1], f"{server.token}x", "%ff", "%ED%A0%80"]
        assert [asked(server, f"/tables.html?token={token}") for token in wrong] == [(200, link)] * len(wrong)


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
    assert asked(viewer, f"/playbook?run={next(iter(viewer.results.runs()))}")[0] == 404


@pytest.mark.parametrize(
    "more",
    [
        {"run": "0" * 12}, {"run": "../../etc"}, {"run": "."}, {"run": None}, {"bullet": "../x"}, {"bullet": "nope-1"},
        {"vote": "best"}, {"vote": None}, {"content": "both"}, {"note": "x" * 2001}, {"file": "/tmp/x"},
        {"vote": None, "content": " \x00 "}, {"vote": None, "content": 3}, {"keep": True}, {"section": "x"},
        {"vote": None, "keep": "no"}, {"vote": None, "keep": False, "bullet": ""},
        {"vote": None, "keep": False, "section": "x"}, {"vote": None, "bullet": "", "content": "x"},
        {"vote": None, "bullet": "", "content": "x", "section": "!?"},
        {"vote": None, "content": "x", "section": "x"},
        {"vote": None, "bullet": "", "content": "x", "section": "x" * 81},
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
