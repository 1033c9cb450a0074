"""Experiments: the paper's defaults, honest means, points that do not depend on each other."""

import inspect

import numpy as np
import pytest
from scipy import stats

import oralib
from orabook import experiments
from orabook.experiments import summarise
from orabook.laws import count_in_sets_law, mean_bound
from orabook.studies.methods import METHODS
from oralib import Counts, epsilon_lower_bound


def test_paper_defaults():
    def default(function, name):
        return inspect.signature(function).parameters[name].default

    for function in (experiments.taken_guesses, experiments.elements_per_coordinate):
        setting = {"epsilon": 2, "delta": 1e-5, "d": 1000, "steps": 100, "sample_rate": 0.1}
        for name, value in {**setting, "beta": 0.05, "trials": 200}.items():
            assert default(function, name) == value
    assert default(experiments.taken_guesses, "n") == 5000
    assert default(experiments.elements_per_coordinate, "k") == 100
    assert default(experiments.taken_guesses_by_epsilon, "trials") == 20
    assert default(experiments.elements_by_epsilon, "epsilons") == (1, 2, 4, 8, 16)
    assert default(experiments.adaptive_dpsgd, "tau") == 1
    assert default(experiments.adaptive_dpsgd, "trials") == 200
    assert default(experiments.adaptive_count_in_sets, "tau") == np.inf
    assert default(experiments.adaptive_count_in_sets, "sets") == 100
    assert default(experiments.adaptive_count_in_sets, "trials") == 100


def test_means_and_standard_errors():
    counts = Counts(np.array([7, 8, 6, 9]), np.array([10, 10, 10, 10]), 20, "test")
    row = summarise(counts, beta=0.1, delta=1e-4).iloc[0]
    bounds = [epsilon_lower_bound(v, 10, beta=0.1, delta=1e-4, n=20) for v in (7, 8, 6, 9)]
    assert row["bound"] == pytest.approx(np.mean(bounds))
    assert row["bound_se"] == pytest.approx(stats.sem(bounds))
    assert row["efficacy"] == pytest.approx(0.75)
    assert row["efficacy_se"] == pytest.approx(stats.sem([0.7, 0.8, 0.6, 0.9]))
    assert row["estimation"] == pytest.approx(np.mean(oralib.p_inv([0.7, 0.8, 0.6, 0.9])))
    assert row["guesses"] == 10
    assert (row["all_right"], row["no_guesses"], row["trials"]) == (0, 0, 4)


def test_undefined_means_are_shown():
    row = summarise(Counts(np.array([5, 10]), np.array([10, 10]), 10, "test")).iloc[0]
    assert row["estimation"] == np.inf
    assert np.isnan(row["estimation_se"])
    assert row["all_right"] == 1
    row = summarise(Counts(np.array([5, 0]), np.array([10, 0]), 10, "test")).iloc[0]
    assert np.isnan(row["efficacy"])
    assert np.isnan(row["estimation"])
    assert row["no_guesses"] == 1
    assert np.isfinite(row["bound"])
    row = summarise(Counts(np.array([0, 10]), np.array([10, 10]), 10, "test")).iloc[0]
    assert np.isnan(row["estimation"])
    row = summarise(Counts(np.array([5]), np.array([10]), 10, "test")).iloc[0]
    assert np.isnan(row["bound_se"])


def test_the_ladder_changes_one_thing_at_a_time():
    """It begins with the paper's own audits and ends with those of our best way."""
    ladder = experiments.improvement_ladder(trials=4, seed=1)
    setting = ladder[["n", "k", "sees", "places", "rule"]]
    assert (setting.ne(setting.shift()).iloc[1:].sum(axis=1) == 1).all()
    papers = experiments.elements_per_coordinate([8], trials=4, seed=1)
    assert ladder["bound"][0] == ladder["steinke"][0] == papers["bound"][0]
    assert ladder["steinke"][1] == ladder["steinke"][2] < ladder["bound"][2]  # the same audits
    way, last = METHODS["crowding"], ladder.iloc[-1]
    training = oralib.DpSgd.calibrated(2.0, 1e-5, n=100_000)
    counts = way.play(training, way.guesses, trials=4, seed=1)
    assert last["bound"] == oralib.valid_lower_bound(counts, delta=1e-5).mean()
    assert (last["n"], last["k"]) == (counts.n, way.guesses)


def test_elements_per_coordinate():
    table = experiments.elements_per_coordinate((0.1, 1, 8, 64), trials=200)
    assert table["n"].tolist() == [100, 1000, 8000, 64000]
    assert (np.abs(table["bound"] - [0.0809, 0.4852, 0.6043, 0.036]) < 0.05).all()
    assert table["bound"].argmax() == 2


def test_several_epsilons():
    table = experiments.elements_by_epsilon((1, 4), epsilons=(1, 4), trials=20)
    assert table["epsilon"].tolist() == [1, 1, 4, 4]
    assert table["trials"].tolist() == [20] * 4
    assert table[table["epsilon"] == 4]["bound"].min() > table[table["epsilon"] == 1]["bound"].max()
    table = experiments.taken_guesses_by_epsilon((0.02,), epsilons=(2,), trials=30, seed=5)
    alone = experiments.taken_guesses((0.02,), trials=30, seed=5)
    assert table["bound"].tolist() == alone["bound"].tolist()


def test_adaptive_dpsgd():
    table = experiments.adaptive_dpsgd((1, 10, 40), trials=100)
    plain, one_way, full = (
        table[table["feedback"] == feedback]["bound"].tolist()
        for feedback in ("none", "one-way", "full")
    )
    assert plain[1] < min(one_way[1], full[1])
    assert plain[2] < 0.1 < 0.8 < one_way[2]
    guesses = table[table["feedback"] == "full"]["guesses"]
    np.testing.assert_allclose(guesses, [36, 211, 294], rtol=0.05)


def test_count_in_sets_against_exact_means():
    """With tau = inf all guesses are right, so the mean bound follows from the law of R."""
    table = experiments.adaptive_count_in_sets((1, 2, 4, 10), trials=100)
    for feedback, rows in table.groupby("feedback"):
        means = [mean_bound(count_in_sets_law(s, 100, feedback)) for s in (1, 2, 4, 10)]
        assert (np.abs(rows["bound"] - means) <= 4 * rows["bound_se"] + 1e-12).all()


def test_local_laplace_approaches_the_efficacy():
    table = experiments.local_laplace((1, 4), n=50_000, trials=50)
    limit = oralib.p_inv(1 - np.exp(-table["x"] / 2) / 2)
    assert (np.abs(table["estimation"] - limit) <= 4 * table["estimation_se"]).all()
    assert (table["bound"] < limit).all()
    assert (table["bound"] > limit - 0.05).all()


def test_adding_a_point_changes_no_other():
    few = experiments.elements_per_coordinate((1, 4), trials=40, seed=3)
    many = experiments.elements_per_coordinate((0.5, 4, 2, 1), trials=40, seed=3)
    assert few["bound"].tolist() == [many["bound"][3], many["bound"][1]]


def test_one_number_is_a_grid_of_one_point():
    few = {"n": 100, "trials": 2, "seed": 1}
    for x in (5, 5.0, np.array(5), np.float64(5), [5], iter([5])):
        assert experiments.local_laplace(x, **few)["x"].tolist() == [5.0]
