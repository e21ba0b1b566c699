"""The vector store keeps each model's vectors through kills, beside other processes, and says what is wrong with it."""

import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from ace_bench.core.errors import StoreError
from ace_bench.store import vectors
from ace_bench.store.sqlite_files import use_write_ahead_log
from ace_bench.store.vectors import FILE, VectorStore

WRITER = """
import struct, sys
from pathlib import Path
from ace_bench.store.vectors import VectorStore
folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = VectorStore(Path(folder))
for n in range(first, first + count):
    store.add("m", {f"{n}/{part}": struct.pack("<384f", *[n] * 384) for part in range(20)})
    if n == first:
        print("writing", flush=True)
"""


def row(*values):
    return struct.pack(f"<{len(values)}f", *values)


def writer(folder, first, count):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(first), str(count)], stdout=subprocess.PIPE)


def kept(folder, numbers):
    with closing(VectorStore(folder)) as store:
        return store.find("m", [f"{n}/{part}" for n in numbers for part in range(20)])


def test_vectors_stay_and_those_of_two_models_are_apart(tmp_path):
    with closing(VectorStore(tmp_path / "new" / "folder")) as store:
        store.add("a", {"x": row(1, 0)})
        store.add("a", {"x": row(0, 1), "y": row(0, 1)})
        store.add("b", {"x": row(0, 0, 1)})
    with closing(VectorStore(tmp_path / "new" / "folder")) as store:
        assert store.find("a", ["x", "y", "z"]) == {"x": row(1, 0), "y": row(0, 1)}
        assert store.find("b", ["x", "y"]) == {"x": row(0, 0, 1)}
        assert store.find("c", ["x"]) == {}


def test_another_model_under_the_same_name_is_refused(tmp_path):
    with closing(VectorStore(tmp_path)) as store:
        store.add("m", {"x": row(1, 0)})
        with pytest.raises(StoreError, match=r"vectors of 2 numbers by 'm'.*choose another vector_store"):
            store.add("m", {"y": row(1, 0, 0)})
        assert store.find("m", ["x", "y"]) == {"x": row(1, 0)}


def test_a_process_that_is_killed_leaves_whole_batches(tmp_path):
    for turn in range(3):
        with writer(tmp_path, turn * 2_000, 2_000) as process:
            process.stdout.readline()
            time.sleep(0.1)
            process.kill()
    found = kept(tmp_path, range(6_000))
    assert found
    assert len(found) % 20 == 0
    assert all(vector == row(*[int(key.partition("/")[0])] * 384) for key, vector in found.items())


def test_two_processes_write_at_once(tmp_path):
    with writer(tmp_path, 0, 50) as one, writer(tmp_path, 25, 50) as other:
        assert (one.wait(), other.wait()) == (0, 0)
    assert len(kept(tmp_path, range(75))) == 75 * 20


class Refusing:
    """A connection to a new file whose write-ahead log other processes ask for at the same time."""

    def __init__(self, times):
        self.left = times

    def execute(self, _):
        if self.left:
            self.left -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error


def test_processes_that_open_a_new_file_at_once_wait_for_each_other():
    use_write_ahead_log(Refusing(times=2), patience_s=5.0)
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        use_write_ahead_log(Refusing(times=99), patience_s=0.1)


def test_a_file_that_is_locked_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_LOCKED_S", 0.1)
    with closing(VectorStore(tmp_path)) as store, closing(sqlite3.connect(tmp_path / FILE)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"cannot be used \(database is locked\): let no other program lock it"):
            store.add("m", {"x": row(1)})


def zeroed(data):
    return data[:4096] + bytes(len(data) - 4096)


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (lambda _: b"not a database" * 400, "file is not a database"),
        (lambda data: data.replace(row(0.5, 0.25), row(0.5, 0.125)), "differs from its checksum"),
        (zeroed, "malformed"),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(spoil, cause, tmp_path):
    with closing(VectorStore(tmp_path)) as store:
        store.add("m", {"x": row(0.5, 0.25)})
    (tmp_path / FILE).write_bytes(spoil((tmp_path / FILE).read_bytes()))
    damaged = pytest.raises(StoreError, match=rf"{FILE} is damaged \(.*{cause}.*\): delete .*{FILE}\*")
    with damaged, closing(VectorStore(tmp_path)) as store:
        store.find("m", ["x"])


def test_a_table_of_another_program_is_damage(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE)) as other, other:
        other.execute("CREATE TABLE vectors (embedder, text, vector, checksum)")
        other.execute("INSERT INTO vectors VALUES ('m', 'x', 'words', 1)")
    with closing(VectorStore(tmp_path)) as store, pytest.raises(StoreError, match="differs from its checksum"):
        store.find("m", ["x"])


@pytest.mark.parametrize("place", ["/proc/sys", __file__])
def test_a_folder_that_cannot_be_written_is_refused_at_once(place):
    with pytest.raises(StoreError, match="vector_store"):
        VectorStore(Path(place))
