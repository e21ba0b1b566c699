"""The viewer in a real Chromium: what a user sees, clicks and types."""

import functools
import http.server
import json
import shutil

import pytest

from ace_bench.contexts.loading import load
from ace_bench.report.page.comparing import comparison
from ace_bench.report.page.content import write_site
from ace_bench.report.page.results import Results
from ace_bench.report.records import read_run
from ace_bench.report.statistics import compare, score_interval
from tests.backbones.serving import running
from tests.report.page.browsing import expect, expect_text, go, ready, rows
from tests.report.page.runs import copied, lines_of, metrics_of, unfinished_copy, viewing

OF_ONE_RUN = ("summary", "context", "rollouts")


def key_of(viewer, folder):
    return next(key for key, run in viewer.results.runs().items() if run.folder == folder)


def test_the_list_is_searched_filtered_sorted_and_grouped_and_the_address_holds_it(opened, shelf):
    page = opened()
    expect(rows(page)).to_have_count(5)
    expect_text(rows(page).nth(0), "unreadable")
    expect_text(rows(page).filter(has_text="so far"), "stopped")
    page.get_by_label("Search").fill("method=ace seed=1")
    expect(rows(page)).to_have_count(1)
    expect_text(rows(page), f"{metrics_of(shelf.again)['headline']['after']:.2f}")
    page.get_by_label("Search").fill("")
    page.get_by_label("method", exact=True).select_option("base")
    expect(rows(page)).to_have_count(1)
    page.reload()
    ready(page, "runs")
    expect(rows(page)).to_have_count(1)
    page.get_by_label("method", exact=True).select_option("")
    page.get_by_role("button", name="test accuracy").click()
    scores = page.locator("tbody td.score").all_inner_texts()
    values = [float(text.split()[0]) for text in scores if text.strip() and "so far" not in text]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)
    page.get_by_label("Group").select_option("seed")
    group = rows(page).filter(has_text="seeds").filter(has_text="ace")
    mean = sum(metrics_of(folder)["headline"]["after"] for folder in (shelf.ace, shelf.again)) / 2
    metric = metrics_of(shelf.ace)["headline"]["metric"]
    interval = score_interval({seed: read_run(run).points(metric) for seed, run in enumerate((shelf.ace, shelf.again))})
    expect_text(group, f"{mean:.2f} {interval.low:.1f}–{interval.high:.1f}, 2 of 3")
    page.get_by_label("state").select_option("stopped")
    expect_text(page.locator("td.score"), "stopped")


@pytest.mark.slow
def test_two_runs_are_chosen_and_compared_by_keyboard_alone(opened, viewer, shelf):
    page = opened()
    labels = {row["key"]: row["label"] for row in viewer.results.listing()["runs"]}
    for folder in (shelf.base, shelf.ace):
        page.get_by_label(f"Choose {labels[key_of(viewer, folder)]}", exact=True).focus()
        page.keyboard.press("Space")
    page.get_by_role("link", name="Compare 2 runs").focus()
    page.keyboard.press("Enter")
    ready(page, "compare")
    found = compare({0: read_run(shelf.ace).points("accuracy")}, {0: read_run(shelf.base).points("accuracy")})
    expect_text(page.locator(".charts"), "Learning curves")
    page.reload()
    expect_text(page.locator(".verdict"), f"{found.difference:+.2f} points")


@pytest.mark.slow
@pytest.mark.parametrize("view", ["runs", "compare", "playbooks", *OF_ONE_RUN])
def test_every_control_has_a_name_and_can_be_reached_by_keyboard(view, opened, viewer, shelf):
    one, other = (key_of(viewer, folder) for folder in (shelf.ace, shelf.again))
    page = opened(f"#view={view}&run={one}" if view in OF_ONE_RUN else f"#view={view}&runs={one},{other}")
    ready(page, view)
    expect(page.get_by_text("Reading …")).to_have_count(0)
    controls = page.locator("input, select, button, a, summary").all()
    assert len(controls) > 4
    for control in controls[:60]:
        assert control.evaluate("c => c.ariaLabel || (c.labels && c.labels[0]?.textContent) || c.textContent").strip()
        assert control.evaluate("c => c.tabIndex") >= 0


@pytest.mark.slow
def test_one_playbook_is_shown_against_another(opened, viewer, shelf):
    first, second = (key_of(viewer, folder) for folder in (shelf.ace, shelf.again))
    page = opened(f"#view=playbooks&runs={first},{second}")
    books = [
        json.loads((folder / "contexts" / "final.json").read_text())["bullets"] for folder in (shelf.ace, shelf.again)
    ]
    contents = [{(bullet["section"], bullet["content"]) for bullet in book} for book in books]
    expect_text(page.locator(".verdict"), f"{len(contents[0] & contents[1])} in both")
    page.get_by_label("Bullets").select_option("ins")
    alone = {content for _, content in contents[1] - contents[0]}
    assert alone.issuperset(page.locator("li.bullet .content").all_text_contents())
    page.get_by_label("From step, of 5").fill("2")
    page.get_by_label("To run").select_option(first)
    page.get_by_label("As").select_option("text")
    later = [bullet for line in lines_of(shelf.ace, "step")[2:] for bullet in line["patch"].get("set", ())]
    added = [bullet["content"] for bullet in later if bullet["created"] > 1]
    expect_text(page.locator("ins").first, added[0][:30])


@pytest.mark.slow
def test_a_running_run_is_followed_without_a_reload(opened, shelf, tmp_path):
    folder = unfinished_copy(shelf.ace, tmp_path / "seed0", lines=9)
    steps = len(lines_of(folder, "step"))
    assert steps
    with viewing(tmp_path) as server:
        page = opened(server=server)
        state = rows(page).first.locator(".score")
        expect_text(state, f"adapt {steps}/5")
        (folder / "journal.jsonl").write_bytes((shelf.ace / "journal.jsonl").read_bytes())
        expect_text(state, "evaluate 5/5")
        shutil.copy(shelf.ace / "metrics.json", folder)
        expect_text(rows(page).first, f"{metrics_of(shelf.ace)['headline']['after']:.2f}")
        expect(page.locator(".score .tag")).to_have_count(0)


@pytest.mark.slow
def test_steps_are_counted_in_whole_numbers(opened, shelf, tmp_path):
    unfinished_copy(shelf.ace, tmp_path / "seed0", lines=14)
    with viewing(tmp_path) as server:
        page = opened(f"#view=summary&run={next(iter(server.results.runs()))}", server=server)
        ticks = page.locator("figure.chart").nth(1).locator("text.tick").all_text_contents()
        assert ticks
        assert not [tick for tick in ticks if "." in tick]


@pytest.mark.slow
def test_answers_with_several_parts_show_which_of_them_differ(opened, viewer, shelf):
    page = opened(f"#view=rollouts&run={key_of(viewer, shelf.ace)}")
    tested = [line for line in lines_of(shelf.ace, "rollout") if line["stage"] == "evaluate"]
    wrong = [line for line in tested if 0 < line["grade"]["score"] < 1][-1]
    page.get_by_label("Search").fill(wrong["sample"])
    page.get_by_label("Stage").select_option("evaluate")
    page.locator(f'button.row[data-key="{wrong["key"]}"]').click()
    answer, gold = (text.split(",") for text in (wrong["attempt"]["answer"], wrong["grade"]["gold"]))
    differ = [(ours, theirs) for ours, theirs in zip(answer, gold, strict=True) if ours != theirs]
    expect_text(page.locator("article"), f"{len(differ)} of 4 parts differ.")
    assert page.locator("article del").all_text_contents() == [ours for ours, _ in differ]
    assert page.locator("article ins").all_text_contents() == [theirs for _, theirs in differ]


@pytest.mark.slow
def test_a_static_site_shows_the_same(watched, shelf, tmp_path):
    results = Results(shelf.root)
    write_site(results, tmp_path / "site", tables="")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with running(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        page = watched(f"http://127.0.0.1:{server.server_port}/")
        expect(rows(page)).to_have_count(5)
        page.get_by_label("Search").fill("method=base")
        expect(rows(page)).to_have_count(1)
        rows(page).get_by_role("link").click()
        ready(page, "summary")
        go(page, "rollouts", "Rollouts")
        page.locator("section.call").first.get_by_text("Reply", exact=True).click()
        expect_text(page.locator("section.call pre").first, ",")
        finished = {key: run for key, run in results.runs().items() if run.finished}
        page.evaluate(f"location.hash = '#view=compare&runs={','.join(finished)}'")
        (tested,) = comparison(finished)["pairs"]
        expect_text(page.locator(".verdict"), f": {tested['difference']:+.2f} points")
        expect_text(page.locator(".verdict"), "(2 seeds) against base")
        page.evaluate("location.hash = '#view=compare'")
        expect_text(page.locator(".verdict"), f": {tested['difference']:+.2f} points")


@pytest.mark.slow
def test_votes_comments_and_words_of_the_page_change_a_copy_of_the_playbook(watched, shelf, tmp_path):
    folder = copied(shelf.ace, tmp_path / "seed0")
    tested = (folder / "contexts" / "tested.json").read_bytes()
    with viewing(tmp_path, editing=True) as server:
        (key,) = server.results.runs()
        page = watched(server.address, f"?token={server.token}#view=context&run={key}")
        bullet = page.locator("li.bullet").first
        # the words of a bullet that is not painted yet are there as text_content alone
        name = bullet.locator("code").text_content()
        bullet.get_by_text("Feedback").click()
        bullet.get_by_label("Note").fill("wrong since May")
        bullet.get_by_role("button", name="Harmful").click()
        expect_text(bullet, "Written.")
        bullet.get_by_label("Words").fill("Other words.")
        bullet.get_by_role("button", name="Save the words").click()
        (copy,) = (tmp_path / "edited").glob("*.json")
        expect_text(page.locator("pre"), f"mode=evaluate mode.context={copy}")
        expect_text(bullet.locator("ins"), "Other words.")
        second = page.locator("li.bullet").nth(1)
        gone = second.locator("code").text_content()
        second.get_by_text("Feedback").click()
        second.get_by_role("button", name="Remove the bullet").click()
        expect_text(second, "removed in the copy")
        page.get_by_text("Add a bullet").click()
        page.locator(".adding").get_by_label("Section").fill("units")
        page.locator(".adding").get_by_label("Words").fill("Check the unit.")
        page.get_by_role("button", name="Add the bullet").click()
        expect_text(page.locator("li.bullet").first, "Check the unit.")
        page.reload()
        expect_text(page.locator("li.bullet").first, "added here")
        expect_text(page.locator("li.bullet", has_text=name).first, "Other words.")
        expect_text(page.locator("main"), "differs in 3 bullets")
        page.locator("li.bullet", has_text=gone).first.get_by_text("Feedback").click()
        page.get_by_role("button", name="Put it back").click()
        expect_text(page.locator("main"), "differs in 2 bullets")
        page.get_by_role("link", name="The paper's tables").click()
        expect(page).to_have_url(f"{server.address}tables.html?token={server.token}")
        reader = watched(server.address, f"#view=context&run={key}")  # without the token
        expect(reader.get_by_text("Feedback")).to_have_count(0)
    assert (folder / "contexts" / "tested.json").read_bytes() == tested
    changed = load(copy).index[name]
    before = load(folder / "contexts" / "tested.json").index[name]
    assert (changed.content, changed.harmful) == ("Other words.", before.harmful + 1)
    assert changed.sources[-2].endswith("harmful wrong since May")
    assert changed.sources[-1] == f"user#{name}"
