"""One folder for all tests of the viewer, and pages of a real Chromium in which nothing may go wrong."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from tests.launching import launch
from tests.report.page.runs import FINER, copied, unfinished_copy, viewing

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """A results folder (``root``): two methods, two seeds, an unfinished run and a broken folder."""
    root = tmp_path_factory.mktemp("viewed")
    ace = launch(root, *FINER, "limit=5", "mode.epochs=1").folder
    again = launch(root, *FINER, "limit=5", "mode.epochs=1", "seed=1").folder
    base = launch(root, *FINER, "limit=5", "method=base").folder
    broken = copied(ace, root / "x")
    (broken / "identity.json").write_text("{")
    unfinished = unfinished_copy(ace, root / "other" / "seed0")
    return SimpleNamespace(root=root, ace=ace, again=again, base=base, unfinished=unfinished)


@pytest.fixture(scope="session")
def viewer(shelf):
    with viewing(shelf.root) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def watched(browser):
    """Open pages in which nothing may go wrong, no dialog may open, and nothing may be fetched from elsewhere."""
    troubles, pages = [], []

    def open_page(base, address="", *, width=1400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        page.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        page.on("request", lambda request: request.url.startswith(base) or troubles.append(request.url))
        page.goto(base + address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


@pytest.fixture
def opened(watched, viewer):
    """Open an address of the viewer."""
    return lambda address="", *, server=viewer, **settings: watched(server.address, address, **settings)
