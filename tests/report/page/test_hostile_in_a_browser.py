"""Runs whose names, ids and texts attack the page: nothing runs, and nothing widens or turns around the layout."""

import itertools
import json
import re
import shutil

import pytest

from ace_bench.report.page.content import report_page, viewer_policy, write_site
from ace_bench.report.page.results import Results
from tests.report.page.browsing import expect, playwright
from tests.report.page.runs import HOSTILE, changed, viewing

SAMPLE = re.compile(r"finer-(?:train|val|test)-\d+")
OVERRIDE = "\u202e"
ATTACKS = (
    "W" * 46,
    "W" * 500,
    f"right{OVERRIDE}gnorw",
    "\u2067a\u2066b\u202dc",
    "line\nanother\r\n\tline",
    HOSTILE,
    "javascript:document.title='owned'",
    "'\" onmouseover=\"document.title='owned'\" x='",
)
VIEWS = ("summary", "context", "rollouts")
WIDE = """() => {
  const clipped = (node) => getComputedStyle(node).overflowX === "visible";
  const cut = [...document.querySelectorAll(".side, .list, .row, .detail, .bullet, .tile, .pair > *, .chart")]
    .filter((node) => node.scrollWidth > node.clientWidth + 1 && (clipped(node) || node.matches(".side")));
  return [document.documentElement.scrollWidth - innerWidth, ...cut.map((node) => node.className)];
}"""


READ = """() => document.title + document.body.textContent + [...document.querySelectorAll("*")].map(
  (node) => [...node.attributes].filter(({ name }) => /^(title|aria-label|data-label|placeholder)$/.test(name))
    .map(({ value }) => value).join(" ")).join(" ")"""
TALL = "(rows) => Math.max(0, ...rows.map((row) => row.offsetHeight))"


def attacked(folder, target, place=0):
    """A copy of a run whose samples, settings, answers and bullets are named by attacks."""
    shutil.copytree(folder, target)
    (target / "checksums.jsonl").unlink()
    attacks = itertools.cycle(ATTACKS)
    samples = (target / "samples.json").read_text()
    names = {name: f"{next(attacks)}{name[-4:]}" for name in sorted(set(SAMPLE.findall(samples)))}

    def renamed(text):
        return SAMPLE.sub(lambda found: json.dumps(names.get(found[0], found[0]))[1:-1], text)

    def spoil(line):
        line |= json.loads(renamed(json.dumps(line)))
        if line["kind"] == "rollout":
            line["attempt"] |= {"answer": next(attacks), "reasoning": next(attacks)}
            line["grade"] |= {"gold": next(attacks), "report": next(attacks)}
        for event in line.get("events", ()):
            event["reason"] = HOSTILE
        for bullet in line.get("patch", {}).get("set", ()):
            bullet["content"] = next(attacks)

    (target / "samples.json").write_text(renamed(samples))
    changed(target, "journal.jsonl", spoil)
    changed(target, "calls.jsonl", lambda line: line.update(json.loads(renamed(json.dumps(line))), text=next(attacks)))
    identity = json.loads((target / "identity.json").read_text())
    identity["settings"]["method"] |= {"tags": ATTACKS[place % len(ATTACKS)], f"x{ATTACKS[3]}": f"{HOSTILE}{place}"}
    (target / "identity.json").write_text(json.dumps(identity))
    note = ATTACKS[place % len(ATTACKS)].replace("\x00", "")
    (target / "notes.json").write_text(json.dumps({"tags": ["W" * 40], "note": note}))
    return target


@pytest.fixture(scope="module")
def hostile(shelf, tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile")
    for place in range(len(ATTACKS)):
        attacked(shelf.ace, root / f"run{place}" / f"seed{place}", place)
    return root


@pytest.fixture
def visited(watched):
    """Visit addresses of one page; a script that runs, a blocked one and a failed one are troubles alike."""

    def visit(base, addresses, width):
        page = watched(base, width=width)
        for address in addresses:
            page.evaluate(f"delete document.documentElement.dataset.ready; location.hash = {address!r}")
            page.wait_for_selector("html[data-ready]")
            expect(page.get_by_text("Reading …")).to_have_count(0)
            for more in page.locator("summary").all()[:12]:
                more.click()
            yield page, address
        assert "owned" not in page.title()

    return visit


def harmless(page, address):
    assert page.evaluate(WIDE) == [0], address
    assert page.locator("button.row").evaluate_all(TALL) < 160, address
    assert page.locator("img, main script").count() == 0
    text = page.evaluate(READ)
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069]", text), address
    assert not page.evaluate("[...document.links].some((a) => a.protocol === 'javascript:')")


@pytest.mark.slow
@pytest.mark.parametrize("width", [420, 1400])
def test_the_viewer_stays_whole(width, visited, hostile):
    with viewing(hostile) as server:
        keys = [*server.results.runs()]
        pair = ",".join(keys[:2])
        addresses = ["#view=runs", "#view=runs&group=seed", f"#view=compare&runs={','.join(keys)}",
                     f"#view=playbooks&runs={pair}", f"#view=playbooks&runs={pair}&as=text",
                     *(f"#view={view}&run={key}" for key in keys[:3] for view in VIEWS)]  # fmt: skip
        for page, address in visited(server.address, addresses, width):
            harmless(page, address)


@pytest.mark.slow
def test_a_report_stays_whole(visited, hostile, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(report_page(Results(*sorted(hostile.glob("*/*"))[:2])), encoding="utf-8")
    addresses = ["#view=compare", *(f"#view={view}&run=1" for view in VIEWS)]
    for page, address in visited(file.as_uri(), addresses, 420):
        harmless(page, address)


def test_no_script_can_make_markup_and_a_site_has_the_policy_of_the_server(browser, shelf, tmp_path):
    attacked(shelf.ace, tmp_path / "run" / "seed0")
    write_site(Results(tmp_path / "run"), tmp_path / "site", tables="")
    page = browser.new_page()
    page.goto((tmp_path / "site" / "index.html").as_uri())
    assert page.locator("meta[http-equiv]").get_attribute("content") == viewer_policy()
    with pytest.raises(playwright.Error, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    page.close()
