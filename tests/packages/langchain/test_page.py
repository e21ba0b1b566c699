"""The example on the page about integrations, and what happens without the extra."""

import contextlib
import importlib
import importlib.util
import io
import re

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from tests.launching import ROOT


def test_the_pages_example_prints_what_the_page_shows():
    page = (ROOT / "docs/integrations.md").read_text()
    example, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "docs/integrations.md", "exec"), {"__name__": "example"})
    assert printed.getvalue() == shown


def test_without_the_extra_one_sentence_names_it(monkeypatch):
    import ace_langchain as package

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"needs an extra: pip install 'ace-bench\[langchain\]'"):
        importlib.reload(package)
