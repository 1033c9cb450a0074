"""The tables that chapters read are those of this library."""

from itertools import product

import pandas as pd
import pytest

from orabook import studies
from orabook.builder import data
from orabook.experiments import REPORTED, improvement_ladder
from orabook.laws import mean_bound
from orabook.studies import published as published_study
from orabook.studies.counts_power import CANARIES, TRAININGS
from orabook.studies.methods import METHODS
from orabook.studies.stated_noise import law_of_right
from oralib import (
    DpSgd,
    Training,
    certified_epsilon,
    simulate_dpsgd,
)
from oralib.bounds import Exact, Steinke

#: Audits that look for better numbers of canaries and guesses, apart from those of the tables.
PILOT = {"trials": 64, "seed": 1}


def read(name):
    return pd.read_csv(data.FOLDER / f"{name}.csv")


def test_best_bounds_are_all_there_and_rise():
    table = read("best-bounds").set_index("method")
    assert list(table.index) == list(METHODS)
    assert table["trials"].to_dict() == data.TRIALS
    assert table["bound"].idxmax() == "crowding"
    assert table["steinke"]["paper"] == pytest.approx(0.605, abs=0.001)  # as in Chapter 6
    assert table["bound"]["crowding"] > 0.959
    assert (table["bound"] < table["ceiling"]).all()
    assert (table["above"] <= 0.05).all()


@pytest.mark.slow
def test_best_bounds_are_those_of_this_library():
    """The first block of audits, played again."""
    again = studies.best_bounds(trials=data.FIRST)["bound"]
    assert again.tolist() == pytest.approx(read("best-bounds")["first"].tolist(), abs=1e-6)


def test_every_rung_of_the_ladder_shows_more():
    ladder = read("ladder")
    paper, ours = ladder.iloc[0], ladder.iloc[-1]
    assert abs(paper["bound"] - REPORTED[8][0]) < 3 * REPORTED[8][1]
    rises, errors = ladder["bound"].diff()[1:], ladder["bound_se"].rolling(2).max()[1:]
    assert (rises > 2 * errors).all()
    best = read("best-bounds").set_index("method").loc["crowding"]
    assert (ours["bound"], ours["n"], ours["k"]) == tuple(best[["bound", "n", "k"]])


@pytest.mark.slow
def test_the_ladder_is_that_of_this_library():
    again = improvement_ladder(trials=data.FIRST)["bound"]
    assert again.tolist() == pytest.approx(read("ladder")["first"].tolist(), abs=1e-6)


def test_many_weights_show_more_up_to_the_ceiling():
    table = read("many-weights").set_index("change")
    designs = table[["n", "k", "sees", "places", "rule", "trials"]].itertuples(index=False)
    audits = [audit._replace(rule=audit.rule.name) for audit in data.LARGE.values()]
    assert [*map(tuple, designs)] == [audit[:6] for audit in audits]
    errors = table["bound_se"]
    control, _, one_each, many = table["bound"]
    # With a weight for each canary it is the ceiling.
    assert abs(one_each - table["ceiling"]["a canary each"]) < 3 * errors["a canary each"]
    assert read("ladder")["bound"].max() + 4 * errors.max() < control
    assert control + 4 * errors.max() < one_each < many - 4 * errors.max()
    assert many < table["ceiling"].iloc[-1]


@pytest.mark.slow
def test_control_is_the_papers_best_audit():
    """Its guesses are those of the best guesser of sums; one canary a weight is the best number."""
    table = read("many-weights").set_index("change")
    control = data.LARGE["control"]
    ladder = read("ladder").set_index("change")
    setting = (control.sees, control.places, control.rule.name)
    assert setting == tuple(ladder.loc["as in the paper", ["sees", "places", "rule"]])
    best = studies.isolated_ceiling([data.LARGE_D], sees=["sum"], rules=[Steinke()]).iloc[0]
    assert control.k == best["k"]
    assert table["bound"]["control"] == pytest.approx(best["bound"], abs=0.012)
    assert table["bound"]["control"] < best["bound"] + 3 * table["bound_se"]["control"]
    for n, guesses in ((data.LARGE_D // 2, (500, 700)), (2 * data.LARGE_D, (1500, 2000, 3000))):
        for k in guesses:
            counts = simulate_dpsgd(DpSgd.calibrated(2.0, 1e-5, n=n, d=data.LARGE_D), k, **PILOT)
            bounds = Steinke().lower_bound(counts.v, counts.r, n=n, delta=1e-5)
            assert bounds.mean() < table["bound"]["control"] + 3 * data.standard_error(bounds)


@pytest.mark.slow
def test_many_weights_are_those_of_this_library():
    again = data.many_weights(data.LARGE_FIRST)
    assert again["bound"].tolist() == pytest.approx(read("many-weights")["first"], abs=1e-6)


def test_benchmark_has_the_trainings_that_we_audit():
    """Its notebook names epochs of eleven steps; our accountant certifies about the same ε."""
    for row in read("auditbench").iloc[::3].itertuples():
        certified = certified_epsilon(3.0, 1e-5, row.steps, 1 / 11, accountant="pld")
        assert certified == pytest.approx(row.certified, abs=0.02)


def test_no_audit_is_above_its_ceiling():
    """Isolated canaries come close to it; and some rows are computed again."""
    table = read("ceilings").set_index(["n", "k"])
    assert tuple(table.index) == data.CEILINGS
    gap = table["ceiling"] - table["isolated"]
    assert ((gap > 0) & (gap < 0.013)).all()
    for name in ("ladder", "many-weights"):
        for row in read(name).itertuples():
            assert row.bound < table["ceiling"][row.n, row.k]
    again = data.ceilings(data.CEILINGS[1:2])
    assert again.iloc[0].tolist() == pytest.approx(read("ceilings").iloc[1].tolist(), abs=1e-5)
    assert again["ceiling"][0] == pytest.approx(0.85797, abs=2e-4)


def test_power_of_counts_is_that_of_this_library():
    """Some cells, computed again; and more canaries prove more."""
    table = read("counts-power")
    keys = ["epsilon", "steps", "sample_rate"]
    designs = [(*training, n) for training, n in product(TRAININGS, CANARIES)]
    assert [*table[[*keys, "n"]].drop_duplicates().itertuples(index=False, name=None)] == designs
    again = studies.counts_power([TRAININGS[0]], [CANARIES[2]])
    same = table[(table[keys] == list(TRAININGS[0])).all(axis=1) & (table["n"] == CANARIES[2])]
    assert len(same) == 6
    for name in again:
        assert same[name].tolist() == pytest.approx(again[name].tolist(), abs=1e-6), name
    honest = table.query("share == 1")
    assert (honest["power"] < 0.05).all()
    for _, rows in honest.groupby(keys):
        assert rows["bound"].is_monotonic_increasing
    for _, rows in table.groupby([*keys, "n"]):
        assert rows["power"].is_monotonic_increasing
        assert rows["bound"].is_monotonic_increasing


def test_published_audits_are_of_the_stated_trainings():
    table = read("published-audits")
    published = read("auditbench-cifar10").set_index("certified")
    designs = [*product(published.index, data.PUBLISHED_SIZES)]
    assert [*zip(table["certified"], table["n"], strict=True)] == designs
    for row in table.itertuples():
        stated = Training(row.sigma, published_study.SAMPLE_RATE, published_study.STEPS)
        run = stated.steps, stated.sample_rate
        again = certified_epsilon(row.sigma, 1e-5, *run, accountant="pld")
        assert again == pytest.approx(row.certified, abs=1e-4)
        # The law of the count by other means.
        law = law_of_right(stated, row.n, row.k)
        assert mean_bound(law, delta=1e-5, rule=Exact()) == pytest.approx(row.bound, abs=1e-4)
    assert (table["bound_in"] < table["bound"]).all()
    assert (table["bound"] < table["certified"]).all()
    assert (table["noise"] >= table["noise_claim"].fillna(0)).all()
    assert (table["found_stated"] < 0.5).all()


def test_best_thresholds_are_like_the_published_ones():
    """Each of the four published audits is as far from the mean as an audit may be."""
    table = read("published-audits").dropna(subset="trials").set_index("certified")
    scatter = table["any_threshold_se"] * table["trials"] ** 0.5
    apart = read("auditbench-cifar10").set_index("certified")["steinke"] - table["any_threshold"]
    assert (apart.abs() < 2 * scatter).all()


@pytest.mark.slow
def test_published_audits_are_those_of_this_library():
    row = read("published-audits").query("certified == 7.788 and n == 5000").iloc[0]
    again = studies.audits_like_published(7.788, 5000)
    assert again == pytest.approx(row[[*again]].to_dict(), abs=1e-6, nan_ok=True)
    bounds = studies.best_threshold_bounds(7.788, 5000, trials=data.FIRST, seed=0)
    assert bounds.mean() == pytest.approx(row["first"], abs=1e-6)


@pytest.mark.slow
def test_the_map_is_that_of_this_library():
    table = read("bound-map")
    assert len(table) == 4 * 3 * 7 * 5
    for method in ("staying", "hopping", "one-way"):
        row = table.query("epsilon == 2 and x == 2 and k == 100 and method == @method").iloc[0]
        again = studies.bound_map((2,), (100,), epsilons=(2.0,), methods=(method,), trials=20)
        assert again["valid"][0] == pytest.approx(row["valid"], abs=1e-6)
