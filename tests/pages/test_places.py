"""Files and folders of the project that pages name in code spans are there."""

import re

import pytest

from tests.launching import ROOT
from tests.pages.reading import PAGES

PLACE = re.compile(r"`((?:ace_bench|packages|configs|prompts|scripts|tests|notebooks)/[\w./-]*\w)/?`")


@pytest.mark.parametrize("page", PAGES)
def test_places_that_a_page_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [place for place in dict.fromkeys(PLACE.findall(text)) if not (ROOT / place).exists()] == []
