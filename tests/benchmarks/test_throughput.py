"""The harness beside a bare client: both send the same requests, and the case prints what they get in a second."""

import re
from contextlib import closing

import pytest

from ace_bench.store.calls import read_calls
from benchmarks import command, throughput
from benchmarks.writing_server import digest_of_prompt, writing_server
from tests.backbones.openai_compatible.scripted import serving
from tests.launching import launch

ACE = ("task=finer", "task.source=sample", "limit={train: 2, test: 2}", "mode.epochs=1", "mode.before=false")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("recorded"), *ACE, "method=ace").folder


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(throughput, "_ROUNDS", 1)
    monkeypatch.setattr(throughput, "_EACH", 2)
    monkeypatch.setattr(throughput, "TOKEN_S", 0.0002)


@pytest.mark.parametrize("served", [False, True])
def test_the_ratio_is_printed_for_each_number_of_calls_in_flight(served, recorded, quick, tmp_path):
    words = ["throughput", "--results", str(recorded), "--slots", "1", "4", "--out", str(tmp_path / "table.md")]
    with writing_server(0.001) as url:
        assert command.main([*words, "--url", url] if served else words) == 0
    rows = re.findall(r"(\d+) in flight.*median ([\d.]+), least ([\d.]+)", (tmp_path / "table.md").read_text())
    assert [in_flight for in_flight, *_ in rows] == ["1", "4"]
    assert all(float(ratio) > 0 for _, *ratios in rows for ratio in ratios)


def test_harness_and_bare_client_send_the_same_requests_and_count_the_same_tokens(recorded, tmp_path):
    calls = list(read_calls(recorded))
    with serving(models=["m"]) as server:
        with closing(throughput._Harness(server.url, "m", tmp_path / "harness")) as harness:
            tokens = [harness.send(calls, 3).tokens]
        asked = server.asked()
        tokens.append(throughput._Bare(server.url, "m", calls).send(3).tokens)
        assert tokens == [20 * len(calls)] * 2
        assert sorted(map(str, server.asked()[len(asked) :])) == sorted(map(str, asked))
    assert {digest_of_prompt(message["content"] for message in body["messages"]) for body in asked} == {
        digest_of_prompt(message.content for message in call.request.messages) for call in calls
    }


def test_an_address_without_a_server_is_one_sentence(recorded, capsys):
    assert command.main(["throughput", "--results", str(recorded), "--url", "http://127.0.0.1:9/v1"]) == 2
    assert "lists no models" in capsys.readouterr().err
