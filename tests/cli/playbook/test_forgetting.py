"""What remains of a playbook after a sample, a bullet or a user is forgotten."""

import json

import pytest

from ace_bench.cli.main import start
from ace_bench.cli.playbook.forgetting import forget, run_lineage
from ace_bench.cli.playbook.looking import read_playbook
from ace_bench.contexts.loading import load, save_context
from ace_bench.core.errors import ConfigError
from ace_bench.playbook.bullets import Bullet
from ace_bench.playbook.embed import make_embedder
from ace_bench.playbook.feedback import give_feedback
from ace_bench.playbook.playbook import Playbook
from ace_bench.playbook.refine import Refiner
from tests.runners.scripted import Scripted, play

A, B, C, D, E = (f"others-0000{number}" for number in range(1, 6))


def add(content, **votes):
    return {"type": "ADD", "section": "others", "content": content, **votes}


OPERATIONS = [
    [add("alpha of zero", helpful=2), add("beta of zero")],
    [{"type": "UPDATE", "id": A, "content": "alpha of one"}, {"type": "TAG", "id": B, "tag": "helpful"}],
    [add("gamma of two"), {"type": "TAG", "id": B, "tag": "harmful"}],
    [{"type": "MERGE", "ids": [A, C], "content": "joint of three"}, add("delta of three")],
    [{"type": "TAG", "id": A, "tag": "helpful"}, {"type": "REMOVE", "id": D}, add("beta of  ZERO too", helpful=1)],
    [{"type": "MERGE", "ids": [B, E]}],
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A run in which each sample works on the bullets of those before it."""
    script = Scripted(curator=lambda call: {"operations": OPERATIONS[int(call.sample[-1])]})
    settings = ("mode.shuffle=false", "method.operations=[ADD,UPDATE,MERGE,REMOVE,TAG]", "method.refiner.when=never")
    return play(tmp_path_factory.mktemp("ran"), *settings, script=script, train=6, test=1).folder


def counted(path):
    return {one.id: (one.content, one.helpful, one.harmful) for one in load(path).bullets}


def forgotten(playbook, out, *options):
    assert start("playbook", ["forget", str(playbook), *options, "--out", str(out)]) == 0
    return counted(out)


FORGET = [*(f"--sample toy-train-{number}" for number in range(6)), f"--bullet {A}", f"--bullet {E}"]
FORGET += ["--sample toy-train-9", "--sample toy-train-1 --dry-run"]


def test_what_a_sample_or_bullet_gave_goes_and_the_rest_comes_back(snapshot, ran, tmp_path, capsys):
    lines = [*map(str, counted(ran / "contexts" / "tested.json").items())]
    for options in FORGET:
        out = tmp_path / f"{len(lines)}.json"
        status = start("playbook", ["forget", str(ran), *options.split(), "--out", str(out)])
        said = "".join(capsys.readouterr()).replace(str(out), "OUT")
        lines.append(f"$ forget {options}\n{said}({status})\n")
        assert out.exists() == (status == 0 and "--dry-run" not in options)
        if out.exists():
            lines += [str(one) for one in counted(out).items()]
            assert options.split()[1] not in json.dumps(load(out).dump()["bullets"])
    assert "\n".join(lines) == snapshot


def test_votes_of_users_count_in_refinement_and_can_be_taken_back(tmp_path, capsys):
    path = tmp_path / "book.json"
    bullet = Bullet(id="s-1", section="s", content="check units", helpful=1, created=0, changed=0, tokens=1)
    save_context(Playbook.build_from([bullet], sections=["s"]), path)
    said = [str(path), "--bullet", "s-1", "--harmful", "--note", "as in #s-9"]
    assert [start("playbook", ["feedback", *said, "--by", by]) for by in ("ann", "user", "user")] == [0, 0, 0]
    voted = load(path)
    assert voted.bullets[0].counters == "helpful 1, harmful 3, neutral 0"
    assert [source.partition("@")[0] for source in voted.bullets[0].sources] == ["ann", "user", "user"]
    assert voted.bullets[0].sources[0].endswith("harmful as in #s-9")
    refiner = Refiner(make_embedder("hashing"), harmful_min=3)
    assert refiner.refine(voted, [], step=0).playbook.size == 0
    assert forgotten(path, path, "--source", "user") == {"s-1": ("check units", 1, 1)}
    assert load(path).bullets[0].sources == voted.bullets[0].sources[:1]
    assert start("playbook", ["feedback", str(path), "--bullet", "s-2", "--helpful"]) == 2
    assert "there is no bullet s-2" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="is not a name"):
        give_feedback(voted, "s-1", vote="helpful", by="an n")


def test_a_run_forgets_a_user_who_voted_before_it_began(tmp_path, capsys):
    voted = tmp_path / "voted.json"
    first = Bullet(id=A, section="others", content="alpha", created=-1, changed=-1, tokens=1)
    save_context(give_feedback(Playbook.build_from([first], sections=["others"]), A, vote="helpful", by="ann"), voted)
    script = Scripted(curator=lambda _: {"operations": [add("beta")]})
    ran = play(tmp_path / "ran", f"method.initial={voted}", script=script, train=1, test=1).folder
    capsys.readouterr()
    assert forgotten(ran, tmp_path / "left.json", "--source", "ann") == {A: ("alpha", 0, 0), B: ("beta", 0, 0)}
    assert "Written after the start of the run" in capsys.readouterr().out


def test_bullets_of_one_batch_that_were_merged_come_from_the_one_whose_words_stay(tmp_path):
    words = "count every list of the page before it is added up, and check the sum against the last line "
    script = Scripted(curator=lambda call: {"operations": [add(words + "twice" * int(call.sample[-1]))]})
    ran = play(tmp_path / "runs", "mode.shuffle=false", "mode.batch_size=2", script=script, train=2, test=1)
    (bullet,) = load(ran.folder / "contexts" / "tested.json").bullets
    assert bullet.sources == ("toy-train-0", "toy-train-1")
    book = read_playbook(ran.folder)
    left = forget(book, run_lineage(ran.folder, book), "toy-train-1")
    assert [(one.content, one.sources) for one in left.playbook.bullets] == [(words.strip(), ("toy-train-0",))]
    assert left.notes[0] == "Written after step 0, when prompts may have shown it: no bullet."
    assert forget(book, run_lineage(ran.folder, book), "toy-train-0").playbook.size == 0


def test_a_playbook_that_was_written_anew_comes_from_all_samples_before(tmp_path):
    script = Scripted(curator=lambda call: {"playbook": f"(others) rule of {call.sample}"})
    ran = play(tmp_path, "mode.shuffle=false", "method.update=rewrite", script=script, train=3, test=1)
    book = read_playbook(ran.folder)
    for number in range(3):
        found = forget(book, run_lineage(ran.folder, book), f"toy-train-{number}")
        assert (book.size, found.playbook.size) == (1, 0)
