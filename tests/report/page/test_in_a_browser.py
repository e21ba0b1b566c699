"""The report in a real Chromium: what a reader clicks, types and drags."""

import json

import pytest

from ace_bench.playbook.bullets import number_of
from ace_bench.report.histories import bullet_history
from ace_bench.report.page.content import report_page
from ace_bench.report.page.results import Results
from ace_bench.report.records import read_run
from ace_bench.report.statistics import compare
from tests.launching import launch
from tests.report.page.browsing import expect, expect_text, go, ready
from tests.report.page.runs import FINER, Failing, changed, copied, lines_of, metrics_of

BROKEN = "finer-test-0003"


@pytest.fixture(scope="module")
def ace(tmp_path_factory):
    """An offline run, one of whose test samples failed."""
    settings = (*FINER, "limit=8", "mode.epochs=2", "accept_faults=true")
    folder = tmp_path_factory.mktemp("ace")
    return launch(folder, *settings, backbone=lambda inner: Failing(inner, marked=BROKEN)).folder


@pytest.fixture(scope="module")
def bullets(ace):
    return json.loads((ace / "contexts" / "final.json").read_text())["bullets"]


@pytest.fixture
def reported(watched, tmp_path):
    """Write the report of some folders and open it."""

    def open_report(*folders, view="summary"):
        file = tmp_path / "report.html"
        file.write_text(report_page(Results(*folders)), encoding="utf-8")
        page = watched(file.as_uri(), f"#view={view}")
        ready(page, view)
        return page

    return open_report


@pytest.mark.slow
def test_search_filters_and_order_of_the_playbook(ace, bullets, reported):
    page = reported(ace, view="context")
    rows, wanted = page.locator("li.bullet"), bullets[3]
    page.get_by_label("Search").fill(wanted["id"].upper())
    expect(rows).to_have_count(1)
    expect_text(rows, wanted["content"])
    page.get_by_label("Search").fill("no lesson says this")
    expect_text(page.locator("li.empty"), "No bullet matches.")
    page.get_by_label("Search").fill("")
    expect(rows).to_have_count(len(bullets))
    page.get_by_label("Order").select_option("used")
    used = {bullet.id: -1 if bullet.last_used is None else bullet.last_used for bullet in bullet_history(ace)}
    ordered = sorted(used, key=lambda key: (-used[key], number_of(key)))
    assert page.locator("li.bullet code").all_text_contents() == ordered
    page.get_by_label("Counters").select_option("helpful")
    helpful = [bullet for bullet in bullets if bullet["helpful"] > bullet["harmful"]]
    assert 0 < len(helpful) < len(bullets)
    expect(rows).to_have_count(len(helpful))
    page.get_by_label("Section").select_option(wanted["section"])
    expect(rows).to_have_count(sum(bullet["section"] == wanted["section"] for bullet in helpful))


def test_a_reader_follows_a_run_from_its_summary_over_the_steps_to_the_sample_of_a_bullet(ace, bullets, reported):
    page, metrics, steps, bullet = reported(ace), metrics_of(ace), lines_of(ace, "step"), bullets[0]
    expect_text(page.get_by_role("heading", level=1), "finer · ace · embedded · offline · labels=gold · seed 0")
    for text in ("simulated", "sample data"):
        expect_text(page.locator("header"), text)
    for text in (f"{metrics['headline']['after']:.2f}", "2 faults"):
        expect_text(page.locator(".tiles"), text)
    for text in ("generator", "second tries turned right", "votes accepted"):
        expect_text(page.locator(".roles"), text)
    for role, count in metrics["calls"]["adapt"].items():
        cells = page.get_by_role("table").get_by_role("row", name=f"adapt {role}").get_by_role("cell")
        assert cells.first.inner_text() == str(count)
    assert page.locator("polyline").count() >= 4
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"

    go(page, "context", "Playbook")
    slider, shown = page.get_by_role("slider", name="Step"), page.locator("li.bullet")
    slider.fill("0")
    expect_text(page.locator("output"), "before the first step")
    expect(shown).to_have_count(0)
    slider.fill("1")
    expect(page.locator("li.bullet.new")).to_have_count(steps[0]["context_size"])
    expect_text(page.locator(".changes"), steps[0]["samples"][0])
    page.get_by_role("button", name="Step on").click()
    expect_text(page.locator("output"), "step 2 of 16")
    expect(shown).to_have_count(steps[1]["context_size"])
    page.get_by_label("only what this step changed").check()
    expect(shown).to_have_count(len(steps[1]["patch"].get("set", [])))
    page.get_by_label("only what this step changed").uncheck()
    slider.fill("16")

    first = page.locator("li.bullet").first
    first.get_by_text("History of this bullet").click()
    times = [line["at"].replace("T", " ").replace("Z", " UTC") for line in steps]
    created, changed_at = bullet["created"], bullet["changed"]
    expect_text(first, f"Added at step {created + 1} ({times[created]}) from {bullet['sources'][0]}")
    expect_text(first, f"Last changed at step {changed_at + 1} ({times[changed_at]}). Last used at step ")
    for text in ("ADD", "+1 "):
        expect_text(first, text)
    first.get_by_role("link", name=bullet["sources"][0]).first.click()
    ready(page, "rollouts")
    expect_text(page.locator("article h2"), bullet["sources"][0])


@pytest.mark.slow
def test_faults_come_first_and_a_rollout_shows_its_prompts_and_replies(ace, reported):
    page = reported(ace, view="rollouts")
    rows = page.locator("button.row")
    expect_text(rows.first, BROKEN)
    expect_text(page.locator("article"), "Fault of the backbone: no_reply. the server said 500")
    page.get_by_label("Outcome").select_option("right")
    rows.first.click()
    expect_text(page.locator("article h2"), "right")
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Stage").select_option("adapt")
    page.get_by_label("Search").fill("finer-train-0001")
    expect(rows.filter(has_not_text="finer-train-0001")).to_have_count(0)
    rows.filter(has_not_text="try").last.click()
    expect_text(page.locator("article h2"), "finer-train-0001")
    roles = page.locator("section.call h4").all_inner_texts()
    assert {role.split()[0] for role in roles} == {"generator", "reflector", "curator"}
    call = page.locator("section.call").first
    call.get_by_text("Prompt", exact=True).click()
    sample = json.loads((ace / "samples.json").read_text())
    question = sample["texts"][sample["samples"]["finer-train-0001"]["inputs"]["question"]]
    call.locator("pre").first.wait_for(state="attached")
    assert question in "\n".join(call.locator("pre").all_text_contents())
    call.get_by_text("Reply", exact=True).click()
    expect_text(call.locator("pre").last, "final_answer")


@pytest.mark.slow
def test_the_trajectory_of_an_agent_is_shown_step_by_step_and_a_journal_without_times_as_it_is(ace, reported, tmp_path):
    folder = copied(ace, tmp_path / "seed0")

    def change(line):
        line.pop("at", None)
        if line["kind"] == "rollout":
            line["attempt"]["trajectory"] = [{"action": "print(1)", "observation": "1", "thought": "look"}] * 3

    changed(folder, "journal.jsonl", change)
    page = reported(folder, view="rollouts")
    page.get_by_label("Search").fill("test-0001")
    page.locator("button.row").first.click()
    expect(page.locator("ol.turns > li")).to_have_count(3)
    go(page, "context", "Playbook")
    first = page.locator("li.bullet").first
    first.get_by_text("History of this bullet").click()
    expect_text(first, "Added at step 1 (time n/a) from")


@pytest.mark.slow
def test_two_runs_are_compared_sample_by_sample(ace, reported, tmp_path):
    base = launch(tmp_path, *FINER, "limit=8", "method=base").folder
    page = reported(base, ace, view="compare")
    found = compare({0: read_run(ace).points("accuracy")}, {0: read_run(base).points("accuracy")})
    expect_text(page.locator(".verdict"), f"{found.difference:+.2f} points")
    expect_text(page.locator(".verdict"), f"over 8 samples: {found.better} win")
    rows = page.locator("table.samples tbody tr")
    expect(rows).to_have_count(found.discordant)
    page.get_by_label("Samples").select_option("losses")
    expect(rows).to_have_count(found.worse)
    page.get_by_label("Run", exact=True).select_option(index=0)
    expect_text(page.locator(".verdict"), "Choose two different runs.")
    page.get_by_label("against").select_option(index=1)
    expect_text(page.locator(".verdict"), f"{-found.difference:+.2f} points")
    expect(rows).to_have_count(found.better)
    go(page, "rollouts", "Rollouts")
    page.get_by_label("Run", exact=True).select_option(index=1)
    expect_text(page.locator("article"), BROKEN)


@pytest.mark.slow
def test_a_large_playbook_is_made_as_far_as_it_is_seen_and_whole_in_print(reported, tmp_path):
    fields = {"section": "others", "created": -1, "changed": -1, "tokens": 9}
    bullets = [{"id": f"b-{n:05d}", "content": f"Lesson {n} of many.", **fields} for n in range(1, 2001)]
    book = {"kind": "playbook", "sections": ["others"], "next_number": 2001, "bullets": bullets}
    (tmp_path / "book.json").write_text(json.dumps(book))
    saved = f"mode.context={tmp_path / 'book.json'}"
    page = reported(launch(tmp_path, *FINER, "limit=1", "mode=evaluate", saved).folder, view="context")
    rows = page.locator("li.bullet")
    assert rows.count() < 300
    page.get_by_label("Search").fill("lesson 1999")
    expect(rows).to_have_count(1)
    page.get_by_label("Search").fill("")
    expect_text(page.get_by_role("status"), "2,000 bullets of 2000")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(rows).to_have_count(2000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "mode", "expected"),
    [
        ("dc", "online", "1 rewritten"),
        ("icl", "offline", "Question:"),
        ("base", "offline", "There is no context to show."),
    ],
)
def test_other_contexts_show_sensibly(method, mode, expected, reported, tmp_path):
    folder = launch(tmp_path, *FINER, "limit=3", f"method={method}", f"mode={mode}").folder
    assert expected in reported(folder, view="context").locator("main").inner_text()
