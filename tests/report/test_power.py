"""Planned power: what is simulated has the properties that were planted, and the test finds as much as theory says."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from ace_bench.cli.main import main
from ace_bench.report.power import Assumed, Design, Goal, _World, measure_runs, power
from ace_bench.report.statistics import Point

ALIKE = Assumed(base_adapts=True)


def seeds_of(scores, group=1):
    """The runs of one method (seeds, samples)."""
    groups = [f"g{n // group}" if group > 1 else "" for n in range(len(scores[0]))]
    return {
        seed: {f"s{n:04}": Point(score=float(score), group=groups[n]) for n, score in enumerate(run)}
        for seed, run in enumerate(scores)
    }


def draw(assumed, gain, spread, seeds=30, samples=1_500):
    design = Design(seeds=seeds, samples=samples, spread=spread)
    drawn = _World.of(assumed, gain, spread).draw(design, samples // assumed.group, 1, np.random.default_rng(2))
    return tuple(side[0] for side in drawn)


@pytest.mark.parametrize(
    "assumed", [ALIKE, Assumed(score=85, repeated=8, discordant=20), Assumed(score=20, repeated=20, discordant=25)]
)
def test_drawn_scores_have_the_properties_that_are_assumed(assumed):
    ours, base = draw(assumed, 5.0, 0.0)
    assert 100 * base.mean() == pytest.approx(assumed.score, abs=2.5)
    assert 100 * (ours.mean() - base.mean()) == pytest.approx(5.0, abs=2.5)
    assert 100 * (ours[0] != ours[1]).mean() == pytest.approx(assumed.repeated, abs=3.5)
    assert 100 * (ours[0] != base[0]).mean() == pytest.approx(assumed.discordant, abs=4)


def test_runs_say_what_was_planted_in_them():
    assumed = Assumed(score=50, repeated=25, discordant=35, group=3, alike=0.5, base_adapts=True)
    ours, base = draw(assumed, 6.0, 4.0)
    found = measure_runs(seeds_of(ours, 3), seeds_of(base, 3), base_adapts=True)
    assert (found.samples, found.assumed.group) == (1_500, 3)
    assert found.assumed.score == pytest.approx(50, abs=3)
    assert found.assumed.repeated == pytest.approx(25, abs=2)
    assert found.assumed.discordant == pytest.approx(35, abs=2)
    assert found.assumed.alike == pytest.approx(0.5, abs=0.15)
    assert found.spread == pytest.approx(4.0, abs=0.8)
    assert found.spread < found.upper < 1.3 * found.spread
    once = measure_runs(seeds_of(ours[:1]), seeds_of(base[:1]), base_adapts=False)
    assert (once.spread, once.assumed.repeated) == (
        None,
        35.0 if once.assumed.discordant > 35 else once.assumed.discordant,
    )


def test_the_power_of_one_run_is_that_of_a_paired_t_test():
    found = power(Assumed(), Goal(gain=8.0), Design(seeds=1, samples=400, spread=0.0))
    effect = 0.08 / np.sqrt(0.38 - 0.08**2)
    assert found == pytest.approx(TTestPower().power(effect, 400, 0.05), abs=0.07)


@pytest.mark.parametrize("assumed", [ALIKE, Assumed(group=4, alike=0.5, base_adapts=True)])
def test_without_a_gain_hardly_any_is_found_and_at_the_margin_hardly_any_is_equivalent(assumed):
    design = Design(seeds=5, samples=100, spread=4.0)
    assert power(assumed, Goal(gain=0.0), design) < 0.025 + 0.02
    assert power(assumed, Goal(gain=5.0, within=5.0), design) < 0.05 + 0.03


def test_more_seeds_and_samples_find_more_and_more_tests_looks_and_spread_less():
    design = Design(seeds=5, samples=200, spread=2.0)
    usual = power(ALIKE, Goal(gain=8.0), design)
    assert 0.4 < usual < 0.9
    assert power(ALIKE, Goal(gain=8.0), Design(seeds=10, samples=400, spread=2.0)) > usual + 0.1
    assert power(ALIKE, Goal(gain=8.0), Design(seeds=5, samples=200, spread=8.0)) < usual - 0.2
    assert power(ALIKE, Goal(gain=8.0, tests=4), design) < usual - 0.05
    assert power(ALIKE, Goal(gain=8.0, looks=5), design) < usual - 0.03


def test_the_command_names_the_first_design_that_is_enough(capsys):
    words = "plan --gain 20 --sd 1 --seeds 2,5 --samples 20,200 --tests 3 --looks 2"
    assert main(words.split()) == 0
    said = capsys.readouterr().out
    assert "## How often a true gain of 20 points is supported" in said
    assert said.count("| 5 | 200 | ") == 1
    assert "With a standard deviation over seeds of 1 points, 5 seeds on 200 samples have a power of " in said
    assert "With fewer than 3 seeds a result is about these playbooks only" in said
    assert "as Holm's first step needs for 3 tests, corrected for 2 looks." in said
    assert main(["plan", "--within", "9", "--base-adapts", "--sd", "0", "--seeds", "3", "--samples", "50"]) == 0
    said = capsys.readouterr().out
    assert "a difference of 0 points is shown to lie within 9" in said
    assert "no design here has a power of 80%" in said
    assert main(["plan", "--gain", "50"]) == 2
    assert "does not fit a base of 55%" in capsys.readouterr().err
    assert main(["plan", "results=nowhere", "task=finer"]) == 2, "a folder is named, so nothing is estimated"
    assert "nowhere is not a folder" in capsys.readouterr().err


def test_one_of_several_comparisons_is_chosen_by_the_setting_that_the_message_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sweep = "run -m task=formula limit=9 embedder=hashing"
    for settings in ("method=base", "method=ace method.refiner.threshold=0.5,0.9"):
        assert main([*sweep.split(), *settings.split()]) == 0
    plan = "plan results task=formula method=ace,base --seeds 3 --samples 50"
    assert main(plan.split()) == 2
    assert "choose one by method.refiner.threshold=..." in capsys.readouterr().err
    assert main([*plan.split(), "method.refiner.threshold=0.5"]) == 0, "the base, which has no such setting, stays"


def test_settings_without_runs_give_the_estimated_cost(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    usual = "plan task=formula task.source=sample limit=2 --seeds 3 --samples 50,100 --sd 2"
    assert main(usual.split()) == 0
    said = capsys.readouterr().out
    few, more = (int(line.split("|")[-2].replace(",", "")) for line in said.splitlines() if line.startswith("| 3 | "))
    assert few < more < 2 * few
    assert "`ace-bench run` estimates: 3 seeds x 50 samples cost about " in said
    assert main([*usual.split(), "method=ace,icl,base"]) == 2
    assert "a plan is for one method and its base" in capsys.readouterr().err
    (tmp_path / "few.csv").write_text("question,answer\n" + "".join(f"number {n},{'ab'[n % 2]}\n" for n in range(20)))
    few = "plan task=qa task.data=few.csv task.question=question task.answer=answer backbone=embedded"
    assert main(few.split()) == 2
    assert "fewer than 9 samples to test on" in capsys.readouterr().err
    (tmp_path / "runs").mkdir()
    assert main([*usual.split(), "runs"]) == 2
    assert "there are no runs in runs" in capsys.readouterr().err
