"""The sandbox against hostile code: it comes back with what was printed, and nothing else has happened."""

import os
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ace_bench.agents import sandbox, sandboxed
from ace_bench.agents.sandbox import REFUSED, Sandbox
from ace_bench.core.confine import describe_layers
from ace_bench.core.scratch import scratch_folder
from tests.launching import ROOT
from tests.outcomes import outcomes

GOLDS = ROOT / "ace_bench" / "tasks" / "samples" / "finer" / "test.jsonl"


def made(seconds=1):
    box = Sandbox(seconds=seconds, memory_mib=256, output_chars=400)
    if box.run("") == REFUSED:
        pytest.skip("this machine cannot confine code")
    return box


@pytest.fixture
def box():
    return made()


@pytest.fixture(params=["root", "ordinary"])
def either(request, monkeypatch):
    """A sandbox where the harness is root, and one where it is an ordinary user, as far as it knows."""
    if request.param == "root" and os.getuid():
        pytest.skip("only root can give code a user of its own")
    if request.param == "ordinary":
        monkeypatch.setattr(sandbox, "own_user", lambda *_: None)
    return made()


# Code that does no harm, and what is shown of it.
SANDBOX = [
    "print(6 * 7)",
    "",
    "from datetime import datetime\nprint(datetime.strptime('7', '%d').day)",
    "import statistics, fractions\nprint(statistics.mean([fractions.Fraction(1, 2), 1]))",
    "def f():\n    return f() if __name__ == '' else 'deep'\nprint(f())",
    "print('one')\nraise SystemExit(3)",
    "open('note', 'w').write('kept'); print(open('note').read())",
    "import random; print(random.random() == random.Random(0).random())",
]


def test_harmless_code_works(snapshot, box):
    assert outcomes(box.run, SANDBOX) == snapshot


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("print('before')\n1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
        ("x = '\0'", "null bytes"),
        ("input()", "EOFError"),
        ("import numpy", "ModuleNotFoundError"),
        ("import ctypes\nctypes.string_at(0)", "killed by signal 11"),
        ("print('\\ud800')", "UnicodeEncodeError"),
    ],
)
def test_errors_are_shown_as_python_shows_them(box, code, shown):
    output = box.run(code)
    assert shown in output
    assert str(Path(sandboxed.__file__)) not in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
        "import signal, itertools\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nfor _ in itertools.count(): pass",
    ],
)
def test_endless_code_is_stopped(box, code, monkeypatch):
    monkeypatch.setattr(sandbox, "_STARTING_S", 1.0)
    assert box.run(code) == "(stopped after 1 seconds)"


@pytest.mark.slow
@pytest.mark.parametrize("code", ["x = bytearray(10**10)", "x = [0]\nwhile True: x += x", "10 ** (10 ** 12) % 7 and 1"])
def test_memory_has_an_end(box, code):
    assert any(word in box.run(code) for word in ("MemoryError", "stopped", "OverflowError"))


def test_output_is_cut(box):
    output = box.run("while True: print('x' * 1000)")
    assert len(output) < 500
    assert output.startswith("x" * 400)
    assert "output cut here" in output


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fork()",
        "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo ran'])",
        "import subprocess\nprint(subprocess.run(['/bin/echo', 'ran']))",
        "import os\nos.kill(os.getppid(), 9)",
        "import os\nos.killpg(os.getpgid(os.getppid()), 9)",
    ],
)
def test_no_other_process_is_started_or_harmed(box, code):
    output = box.run(code)
    assert output.startswith("Traceback")
    assert "ran" not in output.split()


@pytest.mark.parametrize("how", ["open({path!r}).read()", "__import__('os').open({path!r}, 0)"])
def test_no_file_can_be_read_that_could_hold_answers_or_keys(either, how, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    paths = [GOLDS, secret, Path("/etc/passwd"), Path("/proc/self/environ")]
    reading = "\n".join(
        f"try: print({how.format(path=str(path))})\nexcept PermissionError: print('denied')" for path in paths
    )
    assert either.run(reading) == "\n".join(["denied"] * len(paths))


def test_nothing_is_parsed_or_imported_for_code_before_it_is_confined(either):
    # This module makes an environment as it is imported, in the folder that the process's first argument names.
    assert "the following arguments are required" in either.run("import venv.__main__")


def test_nothing_can_be_written_outside_of_its_folder(either, tmp_path):
    tmp_path.chmod(0o777)
    target = tmp_path / "written"
    assert "PermissionError" in either.run(f"open({str(target)!r}, 'w')")
    assert not target.exists()


def test_the_environment_is_not_inherited(box, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    output = box.run("import os\nprint(sorted(os.environ))")
    assert output == "['HOME', 'LANG', 'PYTHONHASHSEED', 'TMPDIR']"


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_there_is_no_network_not_even_to_this_machine(either, kind):
    with socket.socket(socket.AF_INET, getattr(socket, kind)) as listening:
        listening.bind(("127.0.0.1", 0))
        if kind == "SOCK_STREAM":
            listening.listen()
        address = listening.getsockname()
        output = either.run(
            f"import socket\ns = socket.socket(socket.AF_INET, socket.{kind})\n"
            f"s.connect({address!r})\ns.send(b'out')\nprint('sent')"
        )
        if kind == "SOCK_DGRAM":
            listening.setblocking(False)
            with pytest.raises(BlockingIOError):
                listening.recv(9)
    assert "Error" in output


def test_runs_at_the_same_time_do_not_meet(box):
    meet = "import os\nopen('mine', 'w').write('x')\nprint(os.listdir('.'), len(os.listdir(os.getcwd())))"
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(box.run, [meet] * 6)) == {"['mine'] 1"}


def test_where_code_cannot_be_confined_it_is_not_run_and_that_is_said_ahead(monkeypatch, tmp_path):
    script = tmp_path / "unconfined.py"
    script.write_text(f"import os\nos._exit({sandboxed.REFUSED})\n")
    monkeypatch.setattr(sandboxed, "__file__", str(script))
    box = Sandbox(seconds=1, memory_mib=256, output_chars=400)
    said = []
    box.start(said.append)
    assert "cannot confine" in said[0]
    assert box.run("print('ran')") == REFUSED


def test_no_exit_status_of_code_means_that_it_was_not_run(box):
    assert box.run(f"import os\nprint('ran', flush=True)\nos._exit({sandboxed.REFUSED})") == "ran"


@pytest.fixture
def temporary(monkeypatch):
    """A place for temporary files that other users may pass through, as they may through ``/tmp``."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_folders_nested_deep_are_removed_like_any_other(temporary):
    box = made(seconds=30)  # a busy machine takes its time to make the folders
    code = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\nprint('deep')"
    assert box.run(code) == "deep"
    assert list(temporary.iterdir()) == []


def test_a_killed_harness_leaves_a_folder_that_the_next_start_removes(temporary):
    running = (
        "import os, signal\nfrom ace_bench.agents.sandbox import Sandbox\n"
        "Sandbox._execute = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Sandbox(seconds=1, memory_mib=256, output_chars=400).run('')"
    )
    subprocess.run([sys.executable, "-c", running], cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, check=False)
    (left,) = temporary.iterdir()
    others = (temporary / "ace-bench-code-link", temporary / "ace-bench-other")
    others[0].symlink_to(ROOT)
    others[1].mkdir()
    for folder in (left, others[1]):
        os.utime(folder, (0, 0))
    with scratch_folder("code") as running_now:
        os.utime(running_now, (0, 0))
        said, box = [], made()
        box.start(said.append)
        confined = f"Code of the generator is confined by: {describe_layers(box.layers)}."
        assert said == [f"{confined} See docs/methods/dynamic_cheatsheet.md"]
        assert set(temporary.iterdir()) == {running_now, *others}
