"""What the tests in a real Chromium share; they are skipped without playwright, or where there is no Chromium."""

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect


def expect_text(locator, text):
    expect(locator).to_contain_text(text)


def ready(page, view):
    page.wait_for_selector(f'html[data-ready="{view}"]')


def go(page, view, label):
    page.get_by_role("navigation").get_by_role("link", name=label).click()
    ready(page, view)


def rows(page):
    return page.locator("table.runs tbody tr")
