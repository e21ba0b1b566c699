"""Pages stay short, and the files and folders of the project that they name in code spans are there."""

import re

import pytest

from tests.launching import ROOT
from tests.pages.reading import PAGES

PLACE = re.compile(r"`((?:ace_bench|packages|configs|examples|prompts|scripts|tests|notebooks)/[\w./-]*\w)/?`")


@pytest.mark.parametrize("page", PAGES)
def test_places_that_a_page_names_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [place for place in dict.fromkeys(PLACE.findall(text)) if not (ROOT / place).exists()] == []


def test_the_readme_fits_two_screens_and_all_pages_can_be_read_in_an_afternoon():
    """Words as `wc -w` counts them."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    words = {page: len(text.split()) for page, text in texts.items()}
    assert len(texts["README.md"].splitlines()) <= 120
    assert words["README.md"] <= 900
    assert words["CONTRIBUTING.md"] <= 1_500
    assert sum(count for page, count in words.items() if page.startswith("docs/")) <= 27_000


def test_sentences_end_with_full_stops():
    """Semicolons outside of code: at most 2 in 1,000 words of all pages."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    prose = [re.sub(r"```.*?```|`[^`]*`|&#?\w+;", "", text, flags=re.DOTALL) for text in texts]
    assert sum(text.count(";") for text in prose) <= sum(len(text.split()) for text in texts) / 500
