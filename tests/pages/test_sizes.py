"""The pages stay short: words as `wc -w` counts them."""

from tests.launching import ROOT

README_LINES, README_WORDS, CONTRIBUTING_WORDS, DOCS_WORDS = 120, 900, 1_500, 27_000


def count_words(*pages):
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def test_the_readme_fits_two_screens():
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= README_LINES
    assert count_words(readme) <= README_WORDS


def test_the_guide_for_contributors_is_short():
    assert count_words(ROOT / "CONTRIBUTING.md") <= CONTRIBUTING_WORDS


def test_the_pages_together_can_be_read_in_an_afternoon():
    assert count_words(*(ROOT / "docs").rglob("*.md")) <= DOCS_WORDS
