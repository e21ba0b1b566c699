"""``ace-bench doctor`` keeps the sound replies of a damaged cache, and removes what killed processes left behind."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ace_bench.cli.main import start
from ace_bench.core.types import NO_USAGE, Completion
from ace_bench.store.folder import RunFolder
from ace_bench.store.responses import FILE, Responses
from tests.runners.test_repair import contents, lose_calls, made


def test_of_a_damaged_cache_the_sound_replies_are_kept(doctor, tmp_path):
    for number in range(2):
        with closing(Responses(tmp_path / str(number))) as cache:
            for key in range(200):
                cache.add(f"{key}", Completion(text=f"{key} " + "x" * 500, usage=NO_USAGE, seconds=0.0))
    with closing(sqlite3.connect(tmp_path / "0" / FILE)) as connection, connection:
        connection.execute("UPDATE checked_replies SET text = 'other' WHERE key = '7'")
    data = bytearray((tmp_path / "1" / FILE).read_bytes())
    data[len(data) // 2 : len(data) // 2 + 5000] = bytes(5000)
    (tmp_path / "1" / FILE).write_bytes(data)
    before = contents(tmp_path)
    assert [one["lost"]["calls"] for one in doctor(tmp_path)[1]["damaged"]] == [None, None]
    assert contents(tmp_path) == before
    assert doctor(tmp_path, "--repair")[0] == 0
    assert doctor(tmp_path)[0] == 0
    with closing(Responses(tmp_path / "0")) as cache:
        assert [key for key in range(200) if cache.find(f"{key}") is None] == [7]
    with closing(Responses(tmp_path / "1")) as cache:
        assert sum(cache.find(f"{key}") is not None for key in range(200)) > 20


HOLDS = """
import time
from ace_bench.core.scratch import scratch_folder
with scratch_folder("test") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_temporary_folders_of_killed_processes_are_removed_and_those_in_use_stay(doctor, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-c", HOLDS]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        folders = [Path(process.stdout.readline().strip()) for process in processes]
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        draft, young = results / "table.csv.0a1b2c3d.part", results / "table.csv.1a1b2c3d.part"
        for path in (draft, young):
            path.touch()
        for path in (*folders, draft):
            os.utime(path, (0, 0))
        assert {str(folders[0]), str(draft)} <= {one["path"] for one in doctor(results)[1]["temporary"]}
        assert all(path.exists() for path in (*folders, draft, young))
        assert doctor(results, "--repair")[0] == 0
        assert [path.exists() for path in (*folders, draft, young)] == [False, True, False, True]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_all_that_is_found_and_done_is_printed(snapshot, tmp_path, monkeypatch, capsys):
    """The output of a look and of a repair is that of ``doctor.txt``."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ace_bench.cli.doctor.abandoned_folders", list)  # of other tests
    sound = made(
        tmp_path / "one", "task=formula", "task.source=sample", "limit=2", "method=base", "seed=3", "concurrency=1"
    )
    folders = {}
    for name in ("a_sound", "b_flipped", "c_lost", "d_unknown", "e_unread", "f_used", "g_stopped"):
        shutil.copytree(sound, folders.setdefault(name, tmp_path / "results" / name / sound.parent.name / "seed3"))
    journal = folders["b_flipped"] / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"kind"', b'"kinD"', 1))
    for name in ("c_lost", "d_unknown", "g_stopped"):
        lose_calls(folders[name], 1)
    (folders["g_stopped"] / "metrics.json").unlink()
    (folders["d_unknown"] / "journal.jsonl").unlink()
    (folders["e_unread"] / "calls.jsonl").unlink()
    (folders["e_unread"] / "calls.jsonl").mkdir()
    with closing(Responses(tmp_path / "results")) as cache:
        cache.add("key", Completion(text="text", usage=NO_USAGE, seconds=0.0))
    (tmp_path / "results" / FILE).write_bytes(b"no database")
    draft = tmp_path / "results" / "table.csv.0a1b2c3d.part"
    draft.touch()
    os.utime(draft, (0, 0))
    printed = []
    with closing(RunFolder(folders["f_used"])):
        for options in ((), ("--repair",)):
            printed.append(f"## doctor {' '.join(options)}: status {start('doctor', ['results', *options])}")
            printed.append(capsys.readouterr().out.replace(sound.parent.name, "d" * 12))
    assert "\n".join(printed) == snapshot
