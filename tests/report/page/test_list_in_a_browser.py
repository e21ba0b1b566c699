"""The list of a mixed folder in a real Chromium: what the first screen shows, and the choice of columns."""

import itertools
import json

import pytest

from ace_bench.core.encoding import digest_of
from ace_bench.report.listing import COLUMNS
from tests.report.page.browsing import expect, expect_text, ready, rows
from tests.report.page.runs import viewing

MODELS = ("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.3-70B-Instruct")
VISIBLE = """(nodes) => nodes.filter((node) => {
  const { top, bottom, left, right, width } = node.getBoundingClientRect();
  return width > 0 && top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth;
}).length"""


@pytest.fixture(scope="module")
def mixed(shelf, tmp_path_factory):
    """Two models and two methods in two seeds, and a sweep of ACE's settings on another task in three: 20 runs."""
    root = tmp_path_factory.mktemp("mixed")
    for model, (source, method), seed in itertools.product(MODELS, ((shelf.ace, "ace"), (shelf.base, "base")), (0, 1)):
        about = {"backbone": "openai_compatible", "seed": seed}
        written(source, root / "served" / model / method / f"seed{seed}", about, {"backbone": {"model": model}})
    for labels, threshold, seed in itertools.product(("gold", "none"), (0.5, 0.7), (0, 1, 2)):
        about = {"task": "formula", "labels": labels, "seed": seed}
        written(shelf.ace, root / "sweep" / f"{labels}{threshold}" / f"seed{seed}", about, {
            "labels": labels, "method": {"refiner": {"threshold": threshold}}})  # fmt: skip
    return root


def written(source, folder, about, settings):
    """Write what the list reads of a run like another one."""
    folder.mkdir(parents=True)
    identity, metrics = (json.loads((source / name).read_text()) for name in ("identity.json", "metrics.json"))
    for name, value in settings.items():
        identity["settings"][name] = {**identity["settings"][name], **value} if isinstance(value, dict) else value
    identity["digest"] = metrics["digest"] = digest_of(identity["settings"])  # else all were one run with many results
    metrics["headline"]["after"] = 10.0 + len(str(folder)) % 7 + about["seed"]
    (folder / "identity.json").write_text(json.dumps(identity))
    (folder / "metrics.json").write_text(json.dumps({**metrics, **about}))


@pytest.fixture(scope="module")
def shown(mixed):
    with viewing(mixed) as server:
        yield server


def columns(page):
    """The heads of the table, without what is pinned."""
    return [text.replace("\n", "") for text in page.locator("thead th").all_inner_texts()[2:]]


def names(page):
    return page.locator("tbody th a").all_inner_texts()


@pytest.mark.slow
def test_the_first_screen_shows_a_score_for_each_of_many_runs(opened, shown):
    page = opened(server=shown)
    assert rows(page).evaluate_all(VISIBLE.replace("right <= innerWidth", "left < innerWidth")) >= 15
    assert page.locator("td.score").evaluate_all(VISIBLE) >= 15
    assert max(rows(page).evaluate_all("(all) => all.map((one) => one.offsetHeight)")) < 36  # one line each
    assert set(columns(page)) - {"threshold"} <= set(COLUMNS)  # the words of ace-bench ls
    assert columns(page) == ["model", "labels", "seed", "threshold", "gain", "cost", "tokens", "date"]
    assert page.locator(".scroll").evaluate("(all) => all.scrollWidth - all.clientWidth") == 0
    assert {"finer · ace", "finer · base", "formula · ace"} == set(names(page))
    assert not [name for name in names(page) if "=" in name or "openai" in name]
    page.set_viewport_size({"width": 900, "height": 900})
    score = page.locator("td.score").first
    before = score.bounding_box()["x"]
    assert page.locator(".scroll").evaluate("(all) => (all.scrollLeft = 1e4, all.scrollLeft)") > 50
    assert score.bounding_box()["x"] == pytest.approx(before, abs=before - 300)
    assert page.locator("tbody th").first.bounding_box()["x"] == page.locator(".scroll").bounding_box()["x"]


@pytest.mark.slow
def test_a_narrow_screen_shows_cards(opened, shown):
    page = opened(server=shown, width=420)
    assert rows(page).evaluate_all(VISIBLE) >= 4
    assert page.locator("td.score").evaluate_all(VISIBLE) >= 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    threshold = page.locator("td[data-label=threshold]").first
    assert threshold.evaluate("(cell) => getComputedStyle(cell, '::before').content") == '"threshold "'
    page.get_by_role("button", name="Filters and order").click()
    page.get_by_label("Order").select_option("score")
    scores = [float(text.split()[0]) for text in page.locator("td.score").all_inner_texts()]
    assert scores[:8] == sorted(scores[:8], reverse=True)


@pytest.mark.slow
def test_columns_are_chosen_hidden_and_ordered_and_the_address_holds_it(opened, shown):
    page = opened(server=shown)
    usual = columns(page)
    page.locator("summary", has_text="Columns").click()
    page.get_by_label("Column labels").uncheck()
    assert "formula · ace · labels=none" in names(page)
    page.get_by_label("Column method").check()
    page.get_by_label("Move method to the left").press("Enter")
    page.get_by_label("Move method to the left").press("Enter")  # it kept the focus
    chosen = [name for name in usual if name != "labels"]
    chosen.insert(len(chosen) - 2, "method")
    assert columns(page) == chosen
    page.reload()
    ready(page, "runs")
    assert columns(page) == chosen
    assert "finer · labels=gold" in names(page)
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("button", name="the usual columns").click()
    assert columns(page) == usual
    page.evaluate("location.hash = '#view=runs&cols=nothing,seed,<b>,seed'")
    expect(page.locator("thead th")).to_have_count(3)


@pytest.mark.slow
def test_scores_over_other_samples_are_not_mixed_and_seeds_are_one_row(opened, shown):
    page = opened("#view=runs&by=score&down=1&group=seed&cols=tested on", server=shown)
    expect(rows(page)).to_have_count(8)
    tested = page.locator("tbody td[data-label='tested on']").all_inner_texts()
    assert sum(one != other for one, other in itertools.pairwise(tested)) == len(set(tested)) - 1 > 0
    assert page.locator("tr.first").count() == len(set(tested)) - 1
    expect(page.locator("td.score", has_text="seeds draw nothing")).not_to_have_count(0)
    notes = {text.partition(" ")[2] for text in page.locator("td.score").all_inner_texts()}
    assert notes <= {"seeds draw nothing", "no interval"}  # the runs are copies without a journal
    expect(page.locator("tr.group", has_text="simulated")).to_have_count(8)
    page.locator("button.toggle").first.click()
    expect(page.locator("tr.inner")).to_have_count(2)
    page.evaluate("location.hash = '#view=runs&since=2999-01-01'")
    expect_text(rows(page), "No run matches.")
