"""Lines with checksums: what kills, full disks and damage leave of them, and what is reported."""

import json
import random
import resource
import zlib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ace_bench.core.errors import FolderUnwritable
from ace_bench.store.lines import AppendLog, read_lines
from tests.outcomes import as_texts, outcome

PARSE = msgspec.json.Decoder(dict[str, object]).decode


def written(path, *numbers):
    log = AppendLog(read_lines(path, PARSE))
    for number in numbers:
        log.append({"n": number})
    log.close()
    return path.read_bytes().splitlines(keepends=True)


def content(path):
    return [entry["n"] for entry in read_lines(path, PARSE).entries]


def test_a_line_is_json_with_its_number_and_a_checksum_that_anybody_can_compute(tmp_path):
    lines = written(tmp_path / "log.jsonl", 7, 8)
    for number, line in enumerate(lines, start=1):
        assert json.loads(line) == {"n": 6 + number, "line": number, "crc32": json.loads(line)["crc32"]}
        assert int(json.loads(line)["crc32"], 16) == zlib.crc32(line.partition(b',"crc32"')[0])


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_tail_is_dropped_at_any_byte_and_writing_goes_on(tmp_path, cut, caplog):
    path = tmp_path / "log.jsonl"
    lines = written(path, 1, 22222)
    path.write_bytes(b"".join(lines)[:-cut])
    log = AppendLog(read_lines(path, PARSE))
    assert log.found.entries[0]["n"] == 1
    log.append({"n": 3})
    log.close()
    torn = len(lines[1]) - cut
    assert torn == 0 or f"log.jsonl ended in {torn} bytes of a line that was never finished" in caplog.text
    assert content(path) == [1, 3]


def third(change):
    """Return what changes the third line."""
    return lambda lines: [*lines[:2], change(lines[2]), *lines[3:]]


DAMAGES = {
    "bit": third(lambda line: line[:5] + b"\xff" + line[6:]),
    "zeros": third(lambda _: b"\x00" * 30 + b"\n"),
    "content": third(lambda line: line.replace(b'"n":3', b'"n":9')),
    "no seal": third(lambda _: b'{"n":3}\n'),
    "glued": lambda lines: [*lines[:2], lines[2][:9] + lines[3], *lines[4:]],
    "last": lambda lines: [*lines[:4], b"\x00" * 30 + b"\n"],
    "empty": lambda lines: [b"\n", *lines[1:]],
    "twice": lambda lines: [*lines[:3], lines[1], *lines[3:]],
    "missing": lambda lines: [*lines[:1], *lines[3:]],
}


def test_damage_is_reported_set_aside_and_gone_the_next_time(snapshot, tmp_path, caplog):
    outcomes = []
    for case, spoil in DAMAGES.items():
        path = tmp_path / f"{case}.jsonl"
        spoilt = spoil(written(path, 1, 2, 3, 4, 5))
        path.write_bytes(b"".join(spoilt))
        found = read_lines(path, PARSE)
        left = [entry["n"] for entry in found.entries]
        caplog.clear()
        log = AppendLog(found, meaning="so what")
        log.append({"n": 6})
        log.close()
        again = read_lines(path, PARSE)
        assert ([entry["n"] for entry in again.entries], again.problems) == ([*left, 6], ())
        aside = path.with_name(f"{path.name}.damaged")
        assert not aside.exists() or aside.read_bytes() in b"".join(spoilt), "what was taken out is kept as it was"
        said = [str(outcome(found.check)), *(record.getMessage() for record in caplog.records)]
        said = str(said).replace(str(tmp_path), "FOLDER")
        outcomes.append((case, f"{left}, set aside: {aside.exists()}\n    {said}"))
    assert as_texts(outcomes) == snapshot


def test_lines_that_changed_places_are_put_in_order(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(reversed(written(path, 1, 2, 3))))
    found = read_lines(path, PARSE)
    assert ([entry["n"] for entry in found.entries], found.problems) == ([1, 2, 3], ())


def test_random_damage_never_passes_for_content_and_never_ends_reading(tmp_path):
    path = tmp_path / "log.jsonl"
    lines = written(path, *range(40))
    rng = random.Random(0)
    for _ in range(200):
        data = bytearray(b"".join(lines))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(1, 60)] = rng.randbytes(rng.randrange(60))
        path.write_bytes(data)
        found = read_lines(path, PARSE)
        assert {entry["n"] for entry in found.entries} <= set(range(40))
        assert len(found.entries) == 40 or found.problems or found.whole < len(data) or found.entries[-1]["n"] < 39


def test_a_file_without_checksums_is_read_and_gets_them_when_it_goes_on(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n":1}\n{"n": 2}\n')
    assert content(path) == [1, 2]
    log = AppendLog(read_lines(path, PARSE))
    log.append({"n": 3})
    log.close()
    assert (content(path), path.read_bytes().count(b"crc32")) == ([1, 2, 3], 3)
    path.write_bytes(b'{"n":1}\n{"n":\n{"n":3}\n{"n":3}\n')
    found = read_lines(path, PARSE)
    assert [entry["n"] for entry in found.entries] == [1, 3]
    assert "line 2 is damaged" in found.summary
    assert "line 4 comes twice" in found.summary
    assert found.count == 3


def test_threads_do_not_mix_their_lines(tmp_path):
    log = AppendLog(read_lines(tmp_path / "log.jsonl", PARSE))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: log.append({"n": n, "text": "x" * 5000}), range(400)))
    log.close()
    found = read_lines(log.path, PARSE)
    assert (sorted(entry["n"] for entry in found.entries), found.problems) == (list(range(400)), ())


@pytest.fixture
def limited():
    """Sets how large a file may grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_line_that_does_not_fit_is_cut_back_and_none_follows_it_from_any_thread(tmp_path, limited):
    path = tmp_path / "log.jsonl"
    log = AppendLog(read_lines(path, PARSE))
    log.append({"n": -1})

    def add(n):
        try:
            log.append({"n": n, "text": "x" * 300})
        except FolderUnwritable as error:
            return error.reason
        return n

    limited(2000)  # not at the end of a line
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(add, range(40)))
    limited(resource.RLIM_INFINITY)
    assert path.stat().st_size < 2000
    kept = content(path)
    assert sorted(kept[1:]) == sorted(result for result in results if isinstance(result, int))
    (reason,) = {result for result in results if isinstance(result, str)}
    assert reason == f"{path} cannot be written (File too large); raise the limit on the size of files (ulimit -f)"
    with pytest.raises(FolderUnwritable):
        log.append({"n": 99})
    log.close()
    log = AppendLog(read_lines(path, PARSE))
    log.append({"n": 100})
    log.close()
    assert content(path) == [*kept, 100]
