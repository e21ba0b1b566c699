"""The report in a real Chromium: what a reader clicks, types and drags."""

import json
import shutil

import pytest

from ace_bench.contexts.playbook.bullets import number_of
from ace_bench.report.histories import bullet_history
from ace_bench.report.records import read_run
from ace_bench.report.statistics import compare
from ace_report.page.content import report_page
from ace_report.page.results import Results
from tests.launching import launch
from tests.packages.report.page.runs import FINER, HOSTILE, Failing, changed, copied

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine (apt install chromium)")

BROKEN = "finer-test-0003"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def ace(tmp_path_factory):
    """An offline run, one of whose test samples failed."""
    folder = tmp_path_factory.mktemp("ace")
    return launch(
        folder,
        *FINER,
        "limit=8",
        "mode.epochs=2",
        "accept_faults=true",
        backbone=lambda inner: Failing(inner, marked=BROKEN),
    ).folder


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return launch(tmp_path_factory.mktemp("base"), *FINER, "limit=8", "method=base").folder


@pytest.fixture
def opened(browser, tmp_path):
    """Write the report of some folders and open it; nothing may be fetched, and nothing may go wrong in the page."""
    troubles = []
    pages = []

    def open_report(*folders, view="summary"):
        file = tmp_path / "report.html"
        file.write_text(report_page(Results(*folders)), encoding="utf-8")
        page = browser.new_page()
        pages.append(page)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        page.on("request", lambda request: request.url.startswith("file:") or troubles.append(request.url))
        page.goto(f"{file.as_uri()}#view={view}")
        page.wait_for_selector(f'html[data-ready="{view}"]')
        return page

    yield open_report
    for page in pages:
        page.close()
    assert troubles == []


def go(page, view, label):
    page.get_by_role("navigation").get_by_role("link", name=label).click()
    page.wait_for_selector(f'html[data-ready="{view}"]')


def expect_text(locator, text):
    playwright.expect(locator).to_contain_text(text)


def test_the_summary_says_what_was_run_and_what_came_out(ace, opened):
    page = opened(ace)
    metrics = json.loads((ace / "metrics.json").read_text())
    expect_text(page.get_by_role("heading", level=1), "finer · ace · embedded · offline · labels=gold · seed 0")
    expect_text(page.locator("header"), "simulated")
    expect_text(page.locator("header"), "sample data")
    expect_text(page.locator(".tiles"), f"{metrics['headline']['after']:.2f}")
    expect_text(page.locator(".tiles"), "2 faults")
    table = page.get_by_role("table")
    for role, count in metrics["calls"]["adapt"].items():
        cells = table.get_by_role("row", name=f"adapt {role}").get_by_role("cell")
        assert cells.first.inner_text() == str(count)
    assert page.locator("polyline").count() >= 4


@pytest.mark.slow
def test_search_and_filters_narrow_the_playbook(ace, opened):
    page = opened(ace, view="context")
    bullets = json.loads((ace / "contexts" / "final.json").read_text())["bullets"]
    rows = page.locator("li.bullet")
    assert rows.count() == len(bullets) > 5
    wanted = bullets[3]
    page.get_by_label("Search").fill(wanted["id"].upper())
    playwright.expect(rows).to_have_count(1)
    expect_text(rows, wanted["content"])
    page.get_by_label("Search").fill("no lesson says this")
    expect_text(page.locator("li.empty"), "No bullet matches.")
    page.get_by_label("Search").fill("")
    playwright.expect(rows).to_have_count(len(bullets))
    page.get_by_label("Counters").select_option("helpful")
    helpful = sum(bullet["helpful"] > bullet["harmful"] for bullet in bullets)
    assert 0 < helpful < len(bullets)
    playwright.expect(rows).to_have_count(helpful)
    page.get_by_label("Section").select_option(wanted["section"])
    alike = sum(b["helpful"] > b["harmful"] and b["section"] == wanted["section"] for b in bullets)
    playwright.expect(rows).to_have_count(alike)


def test_the_slider_shows_what_each_step_changed(ace, opened):
    page = opened(ace, view="context")
    slider = page.get_by_role("slider", name="Step")
    journal = [json.loads(line) for line in (ace / "journal.jsonl").read_text().splitlines()]
    steps = [line for line in journal if line["kind"] == "step"]
    slider.fill("0")
    expect_text(page.locator("output"), "before the first step")
    playwright.expect(page.locator("li.bullet")).to_have_count(0)
    slider.fill("1")
    playwright.expect(page.locator("li.bullet.new")).to_have_count(steps[0]["context_size"])
    expect_text(page.locator(".changes"), steps[0]["samples"][0])
    page.get_by_role("button", name="Step on").click()
    expect_text(page.locator("output"), "step 2 of 16")
    playwright.expect(page.locator("li.bullet")).to_have_count(steps[1]["context_size"])
    page.get_by_label("only what this step changed").check()
    playwright.expect(page.locator("li.bullet")).to_have_count(len(steps[1]["patch"].get("set", [])))


def test_a_bullet_tells_its_life_and_leads_to_the_sample_it_came_from(ace, opened):
    page = opened(ace, view="context")
    first = page.locator("li.bullet").first
    first.get_by_text("History of this bullet").click()
    (bullet, *_) = json.loads((ace / "contexts" / "final.json").read_text())["bullets"]
    journal = [json.loads(line) for line in (ace / "journal.jsonl").read_text().splitlines()]
    times = [line["at"].replace("T", " ").replace("Z", " UTC") for line in journal if line["kind"] == "step"]
    created, changed_at = bullet["created"], bullet["changed"]
    expect_text(first, f"Added at step {created + 1} ({times[created]}) from {bullet['sources'][0]}")
    expect_text(first, f"Last changed at step {changed_at + 1} ({times[changed_at]}). Last used at step ")
    expect_text(first, "ADD")
    expect_text(first, "+1 ")
    first.get_by_role("link", name=bullet["sources"][0]).first.click()
    page.wait_for_selector('html[data-ready="rollouts"]')
    expect_text(page.locator("article h2"), bullet["sources"][0])


@pytest.mark.slow
def test_a_folder_of_a_version_without_times_has_steps_alone(ace, opened, tmp_path):
    folder = copied(ace, tmp_path / "seed0")
    changed(folder, "journal.jsonl", lambda line: line.pop("at", None))
    first = opened(folder, view="context").locator("li.bullet").first
    first.get_by_text("History of this bullet").click()
    expect_text(first, "Added at step 1 (time n/a) from")


@pytest.mark.slow
def test_bullets_are_ordered_by_their_last_use(ace, opened):
    page = opened(ace, view="context")
    page.get_by_label("Order").select_option("used")
    used = {bullet.id: -1 if bullet.last_used is None else bullet.last_used for bullet in bullet_history(ace)}
    ordered = sorted(used, key=lambda key: (-used[key], number_of(key)))
    assert page.locator("li.bullet code").all_text_contents() == ordered


@pytest.mark.slow
def test_faults_come_first_and_a_rollout_shows_its_prompts_and_replies(ace, opened):
    page = opened(ace, view="rollouts")
    rows = page.locator("button.row")
    expect_text(rows.first, BROKEN)
    expect_text(page.locator("article"), "Fault of the backbone: no_reply. the server said 500")
    page.get_by_label("Outcome").select_option("right")
    rows.first.click()
    expect_text(page.locator("article h2"), "right")
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Stage").select_option("adapt")
    page.get_by_label("Search").fill("finer-train-0001")
    playwright.expect(rows.filter(has_not_text="finer-train-0001")).to_have_count(0)
    rows.filter(has_not_text="try").last.click()
    expect_text(page.locator("article h2"), "finer-train-0001")
    roles = page.locator("section.call h4")
    assert {roles.nth(place).inner_text().split()[0] for place in range(roles.count())} == {
        "generator",
        "reflector",
        "curator",
    }
    call = page.locator("section.call").first
    call.get_by_text("Prompt", exact=True).click()
    sample = json.loads((ace / "samples.json").read_text())
    question = sample["texts"][sample["samples"]["finer-train-0001"]["inputs"]["question"]]
    call.locator("pre").first.wait_for(state="attached")
    assert question in "\n".join(call.locator("pre").all_text_contents())
    call.get_by_text("Reply", exact=True).click()
    expect_text(call.locator("pre").last, "final_answer")


@pytest.mark.slow
def test_the_trajectory_of_an_agent_is_shown_step_by_step(ace, opened, tmp_path):
    folder = copied(ace, tmp_path / "seed0")

    def acts(line):
        if line["kind"] == "rollout":
            turns = [{"action": "print(1)", "observation": "1", "thought": "look"}]
            line["attempt"]["trajectory"] = turns * 3

    changed(folder, "journal.jsonl", acts)
    page = opened(folder, view="rollouts")
    page.get_by_label("Search").fill("test-0001")
    page.locator("button.row").first.click()
    playwright.expect(page.locator("ol.turns > li")).to_have_count(3)


def test_two_runs_are_compared_sample_by_sample(ace, base, opened):
    page = opened(base, ace, view="compare")
    found = compare({0: read_run(ace).points("accuracy")}, {0: read_run(base).points("accuracy")})
    expect_text(page.locator(".verdict"), f"{found.difference:+.2f} points")
    expect_text(page.locator(".verdict"), f"over 8 samples: {found.better} win")
    rows = page.locator("table.samples tbody tr")
    playwright.expect(rows).to_have_count(found.discordant)
    page.get_by_label("Samples").select_option("losses")
    playwright.expect(rows).to_have_count(found.worse)
    page.get_by_label("Run", exact=True).select_option(index=0)
    expect_text(page.locator(".verdict"), "Choose two different runs.")
    page.get_by_label("against").select_option(index=1)
    expect_text(page.locator(".verdict"), f"{-found.difference:+.2f} points")
    playwright.expect(rows).to_have_count(found.better)
    go(page, "rollouts", "Rollouts")
    page.get_by_label("Run", exact=True).select_option(index=1)
    expect_text(page.locator("article"), BROKEN)


def test_hostile_text_stays_text(ace, opened, tmp_path):
    folder = copied(ace, tmp_path / "seed0")

    def spoil(line):
        for name in ("reasoning", "answer"):
            if "attempt" in line:
                line["attempt"][name] = HOSTILE
        for event in line.get("events", []):
            event["reason"] = HOSTILE

    changed(folder, "journal.jsonl", spoil)
    changed(folder, "calls.jsonl", lambda line: line.update(text=HOSTILE))
    page = opened(folder, view="rollouts")
    expect_text(page.locator("article"), "<img src=x onerror")
    go(page, "context", "Playbook")
    page.get_by_text("All events of this step").click()
    page.locator("li.bullet").first.get_by_text("History of this bullet").click()
    expect_text(page.locator(".changes"), "<img src=x onerror")
    assert page.locator("img").count() == 0
    assert "owned" not in page.title()


@pytest.mark.slow
def test_a_large_playbook_is_made_as_far_as_it_is_seen_and_whole_in_print(opened, tmp_path):
    fields = {"section": "others", "created": -1, "changed": -1, "tokens": 9}
    bullets = [{"id": f"b-{n:05d}", "content": f"Lesson {n} of many.", **fields} for n in range(1, 2001)]
    book = {"kind": "playbook", "sections": ["others"], "next_number": 2001, "bullets": bullets}
    (tmp_path / "book.json").write_text(json.dumps(book))
    saved = f"mode.context={tmp_path / 'book.json'}"
    page = opened(launch(tmp_path, *FINER, "limit=1", "mode=evaluate", saved).folder, view="context")
    rows = page.locator("li.bullet")
    assert rows.count() < 300
    page.get_by_label("Search").fill("lesson 1999")
    playwright.expect(rows).to_have_count(1)
    page.get_by_label("Search").fill("")
    expect_text(page.get_by_role("status"), "2,000 bullets of 2000")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    playwright.expect(rows).to_have_count(2000)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dc", "icl", "base"])
def test_other_contexts_show_sensibly(method, opened, tmp_path):
    mode = "online" if method == "dc" else "offline"
    folder = launch(tmp_path, *FINER, "limit=3", f"method={method}", f"mode={mode}").folder
    page = opened(folder, view="context")
    shown = page.locator("main").inner_text()
    expected = {"dc": "1 rewritten", "icl": "Question:", "base": "There is no context to show."}[method]
    assert expected in shown


@pytest.mark.slow
@pytest.mark.parametrize("view", ["summary", "context", "rollouts"])
def test_every_control_has_a_name_and_can_be_reached_by_keyboard(view, ace, opened):
    page = opened(ace, view=view)
    controls = page.locator("input, select, button, a, summary")
    for place in range(min(controls.count(), 60)):
        control = controls.nth(place)
        name = control.evaluate("c => c.ariaLabel || (c.labels && c.labels[0]?.textContent) || c.textContent")
        assert name.strip()
        assert control.evaluate("c => c.tabIndex") >= 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
