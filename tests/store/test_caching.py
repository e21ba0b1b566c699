"""Where caches go."""

from pathlib import Path

import pytest

from ace_bench.store.files import cache_folder


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ACE_BENCH_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/own/x"),
        ({"ACE_BENCH_CACHE": "~/own", "HOME": "/home/me"}, "/home/me/own/x"),
        ({"ACE_BENCH_CACHE": "", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/ace-bench/x"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/ace-bench/x"),
    ],
)
def test_the_users_choice_comes_first(variables, expected, monkeypatch):
    for name in ("ACE_BENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder("x") == Path(expected)
