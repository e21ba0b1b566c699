"""Secrets stay in the environment: planted in every place, they are in no file and on no console."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ace_bench.backbones.embedded.server import serve
from ace_bench.backbones.embedded.server.faults import Faults
from ace_bench.backbones.embedded.server.serve import Handler
from tests.backbones.serving import over_http, running
from tests.launching import launch

KEY, TOKEN, PASSWORD = "sk-planted-0123456789abcdef", 'gateway "planted" token', "planted-proxy-password"
ENCODED = (
    "".join(f"%{ord(one):02x}" for one in KEY),
    "".join(f"&#{ord(one)};" for one in KEY),
    "".join(f"\\u{ord(one):04x}" for one in KEY),
    base64.b64encode(f"me:{KEY}".encode()).decode(),
)
PLANTED = ("planted", "0123456789abcdef", *(form[12:-12] for form in ENCODED))
SAMPLES = ("task=finer", "task.source=sample", "method=ace", "limit={train: 3, val: 1, test: 3}")


class Echoing(Handler):
    """A server that repeats what it was sent: the worst that a gateway under debugging does."""

    def _error(self, status: int, code: str, message: str) -> None:
        super()._error(
            status, code, f"{message} You sent {dict(self.headers)} {ENCODED} to http://u:{PASSWORD}@me{self.path}"
        )

    def _send(self, status: int, content: Any, *, cut: bool = False) -> None:
        if "choices" in content and not self.server.count("replies") % 3:
            content["choices"][0]["message"]["content"] = f"not JSON: {self.headers['Authorization']} {ENCODED}"
            content["model"] = f"{content['model']} {ENCODED}"
        super()._send(status, content, cut=cut)


@pytest.fixture(autouse=True)
def _planted(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("MY_GATEWAY", TOKEN)
    for name in ("https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://user:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def reaching(url: str) -> tuple[str, ...]:
    return (
        *over_http(url, api_key_env="MY_KEY"),
        "+backbone.headers_from_env.X-Api-Key=MY_GATEWAY",
        "backbone.retry.first_pause=0.001",
        "backbone.retry.longest_pause=0.002",
        "backbone.retry.times=2",
        *SAMPLES,
    )


def found_in(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if any(secret.encode() in path.read_bytes() for secret in PLANTED)]


def clean(text: str) -> bool:
    return not any(secret in text for secret in PLANTED)


@pytest.mark.slow
def test_a_run_with_failing_calls_writes_and_shows_no_secret(tmp_path, capfd):
    faults = Faults(chances={"http_500": 0.2, "http_429": 0.1, "drop": 0.1}, seed=3)
    server = serve.ReaderServer(host="127.0.0.1", port=0, faults=faults)
    server.RequestHandlerClass = Echoing
    with running(server):
        ran = launch(tmp_path, *reaching(server.address))
        happened = server.stats()
    assert happened["fault_http_500"]
    assert happened["replies"] > 10
    assert "[key]" in (ran.folder / "calls.jsonl").read_text(), "the server did repeat them"
    assert found_in(tmp_path) == []
    shown = capfd.readouterr()
    assert clean(shown.out + shown.err)


def check_refused(tmp_path, capfd, url, *words):
    """Check that a run does not start, says so without a secret, and leaves nothing; return what it said."""
    assert launch(tmp_path, *reaching(url), *words).status in (2, 3)
    said = "".join(capfd.readouterr())
    assert clean(said)
    assert list(tmp_path.iterdir()) == []
    return said


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_run_that_cannot_start_shows_no_secret(tmp_path, capfd, status):
    class Refusing(Echoing):
        def _reply(self, *_: object, **__: object) -> None:
            self._error(status, "refused", "No.")

    server = serve.ReaderServer(host="127.0.0.1", port=0)
    server.RequestHandlerClass = Refusing
    with running(server):
        assert "[key]" in check_refused(tmp_path, capfd, server.address)


def test_a_proxy_that_cannot_be_reached_is_named_without_its_password(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("http_proxy", f"http://user:{PASSWORD}@127.0.0.1:9")
    monkeypatch.delenv("no_proxy")
    assert "cannot be reached" in check_refused(tmp_path, capfd, "http://127.0.0.1:8/v1")


@pytest.mark.parametrize(
    "command",
    [
        (
            "run",
            *SAMPLES,
            "backbone=openai_compatible",
            f"backbone.base_url=http://u:{PASSWORD}@h/v1",
            "--multirun",
        ),
        ("reproduce", "table=2", "--dry-run", f"backbone.base_url=http://h/v1?api_key={PASSWORD}"),
    ],
)
def test_commands_with_secrets_are_refused_and_never_repeated(tmp_path, command):
    command = [sys.executable, "-m", "ace_bench", *command, f"results={tmp_path / 'results'}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "environment variable" in done.stderr
    assert clean(done.stdout + done.stderr)
    assert not list(tmp_path.iterdir())
