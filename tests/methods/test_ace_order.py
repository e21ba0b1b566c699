"""The order of the bullets that ACE's Generator is shown."""

from ace_bench.contexts.playbook.playbook import Playbook
from tests.contexts.making import SAMPLE, SECTIONS, bullet
from tests.launching import launch

BOOK = Playbook.of(
    [bullet(1, "old"), bullet(2, "harmful", harmful=1), bullet(3, "helpful", helpful=2), bullet(4, "new")],
    sections=SECTIONS,
)


def test_helpful_bullets_come_first_only_on_request(tmp_path):
    start = tmp_path / "start.txt"
    start.write_text("## OTHERS\n[o-1] helpful=0 harmful=1 :: last\n[o-2] helpful=3 harmful=0 :: first\n")
    settings = ("method=ace", "task=finer", "task.source=sample", "limit=1", "mode=evaluate")
    for order, shown in (("created", ["last", "first"]), ("helpful", ["first", "last"])):
        folder = launch(tmp_path / order, *settings, f"mode.context={start}", f"method.bullet_order={order}").folder
        calls = (folder / "calls.jsonl").read_text()
        assert sorted(shown, key=lambda text: calls.index(f") {text}")) == shown


def test_the_order_is_part_of_the_digest_and_never_saved():
    ordered = Playbook(**{**vars_of(BOOK), "helpful_first": True})
    lines = ordered.render(SAMPLE)["playbook"].splitlines()
    assert [line.split(") ")[1] for line in lines] == ["helpful", "old", "new", "harmful"]
    assert ordered.digest != BOOK.digest
    assert ordered.dump() == BOOK.dump()
    assert Playbook.load(ordered.dump()) == BOOK


def vars_of(book):
    return {name: getattr(book, name) for name in ("sections", "bullets", "next_number")}
