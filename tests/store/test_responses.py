"""The response cache bears damage, locks and other runs that use it at the same time."""

import logging
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from ace_bench.core.errors import Interrupted, StoreError
from ace_bench.core.types import NO_USAGE, Completion
from ace_bench.store import responses
from ace_bench.store.responses import Responses, damage_of

REPLY = Completion(text="fine", usage=NO_USAGE, seconds=1.0, model="m")


def unstopped():
    pass


def said(cache, key):
    found = cache.find(key)
    return None if found is None else found.text


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def fill(folder, number=1):
    with closing(Responses(folder)) as cache:
        for n in range(number):
            cache.add(f"k{n}", Completion(text=f"{n} " + "x" * 2_000, usage=NO_USAGE, seconds=0.0))


def test_the_first_reply_of_a_key_stays_for_all(folder):
    with closing(Responses(folder)) as one, closing(Responses(folder)) as other:
        one.add("k", REPLY)
        other.add("k", Completion(text="later", usage=NO_USAGE, seconds=0.0))
        assert said(one, "k") == said(other, "k") == "fine"
        assert other.find("k").replayed


def test_damage_that_is_met_while_runs_are_under_way_is_set_aside_once(folder, caplog):
    fill(folder, 200)
    path = folder / "responses.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)  # the first page, with the schema, stays
    path.write_bytes(bytes(data))
    with closing(Responses(folder)) as one, closing(Responses(folder)) as other:
        assert said(one, "k7") is None
        one.add("k7", REPLY)
        assert said(other, "k7") == "fine", "the new file of the one is the other's, too"
        other.add("k8", REPLY)
        assert said(one, "k8") == "fine"
    assert len(list(folder.glob("damaged-*.sqlite"))) == 1
    assert "goes on without" not in caplog.text


def flip_a_bit(folder):
    path = folder / "responses.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes().replace(b"of b", b"of\xe5b", 1))


def exchange_keys(folder):
    with closing(sqlite3.connect(folder / "responses.sqlite", isolation_level=None)) as connection:
        for before, after in (("a", "x"), ("b", "a"), ("x", "b")):
            connection.execute("UPDATE checked_replies SET key = ? WHERE key = ?", (after, before))


@pytest.mark.parametrize(("spoil", "left"), [(flip_a_bit, ["of a"]), (exchange_keys, [])])
def test_a_reply_that_is_not_as_it_was_stored_is_not_believed(spoil, left, folder, caplog):
    with closing(Responses(folder)) as cache:
        for key in "ab":
            cache.add(key, Completion(text=f"of {key}", usage=NO_USAGE, seconds=0.0, model="m"))
    spoil(folder)
    assert f"{2 - len(left)} of its replies are damaged" in damage_of(folder / "responses.sqlite")
    with closing(Responses(folder)) as cache:
        assert [text for key in "ab" if (text := said(cache, key))] == left
        for key in "ab":
            cache.add(key, REPLY)
            assert said(cache, key) in {"fine", *left}
    assert caplog.text.count("damaged reply") == 2 - len(left)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_file_that_another_program_keeps_locked_is_done_without(when, folder, caplog, monkeypatch):
    monkeypatch.setattr(responses, "_LOCKED_S", 0.2)
    fill(folder)
    with ExitStack() as opened:
        if when == "meanwhile":
            cache = opened.enter_context(closing(Responses(folder)))
        holder = sqlite3.connect(folder / "responses.sqlite", isolation_level=None)
        opened.enter_context(closing(holder))
        if when == "before":
            holder.execute("PRAGMA locking_mode=EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        if when == "before":
            cache = opened.enter_context(closing(Responses(folder)))
        cache.add("k", REPLY)
        assert said(cache, "k") is None
        with cache.claim("k", unstopped):
            pass
    assert caplog.text.count("goes on without the response cache") == 1


def test_a_folder_that_cannot_hold_a_cache_is_a_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"response_cache=.*choose another folder"):
        Responses(tmp_path / "file")


def test_many_threads_of_several_runs_pay_once_for_a_reply(folder):
    paid = []

    def ask(cache):
        with cache.claim("k", unstopped):
            found = said(cache, "k")
            if found is None:
                time.sleep(0.05)
                paid.append(1)
                cache.add("k", REPLY)
            return found or "paid"

    with closing(Responses(folder)) as one, closing(Responses(folder)) as other, ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(ask, [one, other] * 16))
    assert len(paid) == 1
    assert sorted(replies) == [*["fine"] * 31, "paid"]
    assert list((folder / "under_way").iterdir()) == []


PAYER = """
import sys, time
from pathlib import Path
from ace_bench.store.responses import Responses
with Responses(Path(sys.argv[1])).claim("k", lambda: None):
    print("claimed", flush=True)
    time.sleep(60)
"""


def test_a_payer_that_was_killed_leaves_its_call_to_the_next(folder):
    with subprocess.Popen([sys.executable, "-c", PAYER, folder], stdout=subprocess.PIPE, text=True) as payer:
        assert payer.stdout.readline() == "claimed\n"
        got = threading.Event()

        def claim():
            with closing(Responses(folder)) as cache, cache.claim("k", unstopped):
                got.set()

        thread = threading.Thread(target=claim)
        thread.start()
        assert not got.wait(0.3)
        payer.kill()
        assert got.wait(20)
        thread.join()


def test_a_stop_ends_the_wait_for_another_runs_reply(folder, monkeypatch):
    monkeypatch.setattr(responses, "_POLL_S", 0.05)

    def stopped():
        raise Interrupted("interrupted by the user")

    with closing(Responses(folder)) as one, closing(Responses(folder)) as other, one.claim("k", unstopped):
        with pytest.raises(Interrupted), other.claim("k", stopped):
            pytest.fail("claimed twice")
        with other.claim("another", stopped):
            pass


@pytest.fixture(autouse=True)
def _heard(caplog):
    caplog.set_level(logging.WARNING)
