from concurrent.futures import ThreadPoolExecutor

import pytest

from ace_bench.core.errors import StoreError
from ace_bench.store.lines import AppendLog, read_lines


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_torn_tail_is_dropped_at_any_byte_and_writing_goes_on(tmp_path, cut, caplog):
    path = tmp_path / "log.jsonl"
    log = AppendLog(path)
    log.append({"n": 1})
    log.append({"n": 22222})
    log.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    log = AppendLog(path)
    assert log.records == [{"n": 1}]
    torn = len(b'{"n":22222}\n') - cut
    assert torn == 0 or f"log.jsonl ended in {torn} bytes of a line that was never finished" in caplog.text
    log.append({"n": 3})
    log.close()
    assert read_lines(path)[0] == [{"n": 1}, {"n": 3}]


def test_a_damaged_last_line_is_dropped_but_one_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"n":1}\n\x00\x00\x00\n')
    log = AppendLog(path)
    assert log.records == [{"n": 1}]
    log.close()
    path.write_bytes(b'{"n":1}\n{"n":\n{"n":3}\n')
    with pytest.raises(StoreError, match=r"log\.jsonl, line 2 .*resume=false"):
        AppendLog(path)


def test_threads_do_not_mix_their_lines(tmp_path):
    log = AppendLog(tmp_path / "log.jsonl")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: log.append({"n": n, "text": "x" * 5000}), range(400)))
    log.close()
    assert sorted(record["n"] for record in read_lines(log.path)[0]) == list(range(400))
