"""What a confined process can do, and what kernels of each version are asked for."""

import ctypes
import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ace_bench.core import confine
from tests.hostile.machines import ran_on
from tests.launching import ROOT
from tests.outcomes import as_texts

MEMORY, ORDINARY, OWN = 1 << 30, 61_000, 61_005

CHILD = """
import ctypes, errno, json, os, signal, socket, sys, tempfile
given = json.loads(sys.argv[1])
sys.path.insert(0, given["root"])
from ace_bench.core import confine
if not given["filter"]:
    confine.restrict_calls = lambda: False  # so that what Landlock forbids is seen
if not given["uid"]:
    confine.resource.setrlimit(confine.resource.RLIMIT_NOFILE, (100, 100))  # a user's own limits stay
folder, other, harness = given["folder"], given["other"], os.getppid()
readable = [*confine.libraries(), f"{folder}/../readable", "/nowhere"]
bounds = confine.Bounds(folder=folder, readable=readable, uid=given["uid"], memory=given["memory"])
report = {"layers": confine.confine(bounds, harness if given["parent"] else None)}

def attempt(name, action):
    try:
        report[name] = action() or "done"
    except OSError as error:
        report[name] = errno.errorcode[error.errno]

def write(path):
    with open(path, "w") as file:
        file.write("x")

def connect(*address, kind=socket.AF_INET):
    with socket.socket(kind) as one:
        one.settimeout(1)
        one.connect(*address)

def bind():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))

def start():
    pid = os.fork()
    if not pid:
        try:
            os.execv("/proc/self/exe", ["python", "-c", ""])
        except OSError as error:
            os._exit(error.errno)
    return errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "done")

def last_signal():
    number = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
    return number.value

here = f"{folder}/../"
attempt("a readable file", lambda: open(f"{here}readable/file").read())
attempt("a readable folder", lambda: os.listdir(f"{here}readable"))
attempt("writing there", lambda: write(f"{here}readable/file"))
attempt("another file", lambda: open(other).read())
attempt("another folder", lambda: os.listdir(os.path.dirname(other)))
attempt("writing elsewhere", lambda: write(other))
attempt("its own folder", lambda: [write("a"), os.mkdir("b"), os.rename("a", "b/c"), write("b/c")] and "")
attempt("nothing", lambda: write("/dev/null"))
attempt("random bytes", lambda: len(open("/dev/urandom", "rb").read(4)))
attempt("a program", start)
attempt("binding", bind)
attempt("an abstract socket", lambda: connect(given["abstract"], kind=socket.AF_UNIX))
attempt("a signal to the harness", lambda: os.kill(harness, signal.SIGCONT))
attempt("a module", lambda: __import__("fractions").__name__)
attempt("an installed package", lambda: open(given["package"]).read())
attempt("the mode of new files", lambda: f"{os.umask(0):o}")
attempt("its signal at the parent's end", last_signal)
limits = {name: getattr(confine.resource, f"RLIMIT_{name}") for name in ("AS", "CORE", "FSIZE", "NOFILE", "NPROC")}
report["limits"] = {name: min({*confine.resource.getrlimit(kind)}) for name, kind in limits.items()}
report["users"] = [*os.getresuid(), *os.getresgid(), *os.getgroups()]
report["places"] = [os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"], tempfile.gettempdir()]
print(json.dumps(report))
"""


def report_of(folder: Path, machine: dict[str, object], **given: object) -> dict[str, object]:
    """Confine a process of a machine and return what it reports: each attempt by its result or error."""
    if os.getuid() or ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 6:
        pytest.skip("only root can play other machines, and Landlock's version 6 forbids all that is tried")
    for place in ("own", "readable"):
        (folder / place).mkdir()
        (folder / place).chmod(0o777)
    for file in (folder / "readable" / "file", other := folder / "secret"):
        file.write_text("seen")
        file.chmod(0o666)
    given |= {"folder": str(folder / "own"), "other": str(other), "memory": MEMORY}
    given |= {"root": str(ROOT), "package": pytest.__file__}
    about = {**machine, "home": str(folder)}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{secrets.token_hex(8)}")
        listener.listen()
        given["abstract"] = listener.getsockname().decode()
        done = ran_on(about, [sys.executable, "-c", CHILD, json.dumps(given)])
    if done.returncode and ran_on(about, ["true"]).returncode:
        pytest.skip("root may not mount or filter here, as in most containers")
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name).resolve()


MACHINES = {
    "all layers": ({}, {"filter": True, "uid": OWN, "parent": True}),
    "without the filter of calls": ({}, {"filter": False, "uid": OWN, "parent": False}),
    "an ordinary user's, without it and namespaces": (
        {"user": ORDINARY, "without": ["namespaces"]},
        {"filter": False, "uid": None, "parent": True},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_confined_process_can_do_no_more_than_it_must(snapshot, name, open_folder):
    machine, given = MACHINES[name]
    report = report_of(open_folder, machine, **given)
    assert report.pop("places") == [f"{open_folder}/own"] * 4
    assert json.dumps(report, indent=1) == snapshot


def test_each_kernel_is_asked_for_all_that_it_can_forbid(snapshot, monkeypatch, tmp_path):
    """No machine has all these kernels: what they would get is recorded."""
    outcomes = []
    for version in (-1, 0, 1, 2, 3, 4, 5, 6, 7, 99):
        calls = []

        class Libc:
            def syscall(self, number, *arguments, version=version, calls=calls):
                calls.append((number, *arguments))
                if arguments[0] is None:
                    assert arguments[2] == 1
                    return version
                return os.open(os.devnull, os.O_RDONLY) if number == 444 else 0

        monkeypatch.setattr(confine, "_libc", Libc())
        done, asked = confine._landlock(["/etc", "/etc/passwd"], str(tmp_path)), []
        if done:
            (_, attributes, size, _), *rules, (restrict, _, flags) = calls[1:]
            rights = struct.unpack(f"={size.value // 8}Q", attributes)
            asked = [f"{right:b}" for right in rights]
            assert [struct.unpack("=Qi", rule[3])[0] for rule in rules] == [0b1100, 0b100, 0b110, rights[0] - 1]
            assert ({rule[0] for rule in rules}, restrict, flags) == ({445}, 446, 0)
        outcomes.append((f"version {version}", f"{done} {' '.join(asked)}"))
    assert as_texts(outcomes) == snapshot


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("confine.adopt_orphans(); libc.prctl(37, ctypes.byref(found), 0, 0, 0); os._exit(found.value)", 1),
        (
            "confine.die_with_parent(os.getppid()); libc.prctl(2, ctypes.byref(found), 0, 0, 0); os._exit(found.value)",
            9,
        ),
        ("confine.die_with_parent(os.getppid() + 1)", -9),  # the parent has ended before
    ],
)
def test_processes_end_with_their_parents_and_are_found_after_them(code, status):
    start = "import ctypes, os; from ace_bench.core import confine; libc, found = ctypes.CDLL(None), ctypes.c_int(); "
    assert subprocess.run([sys.executable, "-c", start + code], check=False).returncode == status


def test_a_user_of_its_own_needs_root_and_folders_that_others_can_enter(open_folder, monkeypatch):
    assert [confine.is_open_to_others(folder) for folder in (open_folder, Path("/usr"))] == [True, True]
    (closed := open_folder / "closed" / "inside").mkdir(parents=True)
    closed.parent.chmod(0o776)
    assert not confine.is_open_to_others(closed)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert confine.own_user(closed) is None
    assert {confine.own_user(open_folder) for _ in range(5_000)} == set(range(61184, 65520))
    monkeypatch.setattr(os, "getuid", lambda: 1)
    assert confine.own_user(open_folder) is None


def test_layers_are_named_and_those_that_lack_are_explained():
    assert confine.describe_layers(["user", "files"]) == "Landlock, a user of its own"
    assert confine.describe_layers(()) == "nothing"
    assert confine.missing_layers(confine.NEEDED) == ""
    no_files, no_calls = confine.missing_layers(["calls"]), confine.missing_layers(["files"])
    assert "Landlock" in no_files
    assert "seccomp" in no_calls
    assert confine.missing_layers(["user"]) == f"{no_files}; {no_calls}"
