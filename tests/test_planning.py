"""Predictions and plans, compared with simulated audits."""

import json
import shlex
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orabook.place import BOOK
from oralib import (
    AuditPlan,
    Canaries,
    Counts,
    DpSgd,
    Dropping,
    certified_epsilon,
    epsilon_lower_bound,
    noise_multiplier,
    p,
    plan_audit,
    planning,
    simulate_hopping,
    valid_lower_bound,
)
from oralib.__main__ import main
from oralib.bounds.refuting import guesses_needed, right_needed
from oralib.canaries.opacus import OpacusAudit
from oralib.dpsgd.prediction import predicted_accuracy
from oralib.ground.types import WAYS
from oralib.planning import (
    Claim,
    Design,
    Forecast,
    Outcome,
    expected_outcomes,
    plan_black_box,
    plans_by_price,
)
from oralib.planning.blackbox import EXAMPLE, BlackBoxPlan
from oralib.planning.designs import designs
from oralib.planning.measured import MEASURED
from oralib.planning.price import price_table

SIGMA = noise_multiplier(2.0, 1e-5, 100, 0.1)
search = planning.search


@pytest.mark.parametrize(
    ("dpsgd", "k", "dropping"),
    [
        (DpSgd(n=1000, sigma=SIGMA), 100, None),
        (DpSgd(n=16_000, sigma=SIGMA), 300, None),
        (DpSgd(n=48_000, sigma=SIGMA), 300, Dropping(2, 0.9, 1.65, (3, 20))),
        (DpSgd(n=8000, sigma=0.9937), 100, Dropping(1, 1, 1, (2, 5))),
        (DpSgd(n=4000, d=500, steps=20, sample_rate=0.5, sigma=4.0), 50, None),
    ],
)
def test_prediction_is_close_to_simulated_audits(dpsgd, k, dropping):
    """Two per cent of accuracy: it is a heuristic, for planning."""
    predicted = predicted_accuracy(dpsgd, np.array([k]), dropping)[0]
    played = simulate_hopping(dpsgd, k, dropping=dropping, trials=30, seed=1).accuracy
    assert predicted == pytest.approx(played.mean(), abs=0.02 + 3 * played.std() / np.sqrt(30))


def test_prediction_knows_what_can_be_known_exactly():
    """No information: every guess is a coin. And fewer guesses are never worse."""
    blind = DpSgd(n=1000, d=100, steps=5, sigma=1e5)
    assert predicted_accuracy(blind, np.array([10, 500])) == pytest.approx(0.5, abs=0.02)
    accuracy = predicted_accuracy(DpSgd(n=16_000, sigma=SIGMA), np.array([50, 100, 400, 5000]))
    assert (np.diff(accuracy) < 0).all()


def test_a_plan_is_worth_its_while():
    """It finds more canaries than coordinates, drops most, and its prediction comes true."""
    plan = plan_audit(2.0, 1e-5, d=200, steps=50, sample_rate=0.1, trials=30)
    assert plan.design.dpsgd.n >= 20 * 200
    assert plan.design.dropping is not None
    expect = plan.forecast.honest
    assert plan.forecast.predicted == pytest.approx(expect.bound, abs=0.1 + 3 * expect.bound_se)
    few = plan_audit(2.0, 1e-5, d=200, steps=50, sample_rate=0.1, canaries=200, trials=30)
    assert few.design.dpsgd.n == 200
    alone = few.forecast.honest
    assert alone.bound < expect.bound - 3 * (alone.bound_se + expect.bound_se)


def test_a_training_that_is_too_large_to_simulate(capsys):
    given = ["--d", "10000000", "--steps", "100", "--sample-rate", "0.01", "--epsilon", "1"]
    assert main(["plan", *given, "--delta", "1e-9", "--canaries", "10000000"]) == 0
    assert "(predicted, not simulated)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("way", WAYS)
def test_plan_on_the_command_line(way, capsys):
    given = ["--d", "50", "--steps", "10", "--sample-rate", "0.2", "--delta", "1e-5", "--way", way]
    assert main(["plan", *given, "--epsilon", "4", "--trials", "4"]) == 0
    said, err = capsys.readouterr()
    assert err.startswith("Looking for a plan")
    for label in (
        "words",
        "claim",
        "way in",
        "time",
        "canaries",
        "guess",
        "expect",
        "at best",
        "valid",
    ):
        assert f"\n{label}" in f"\n{said}"
    assert max(map(len, said.splitlines())) <= 80
    assert ("/N times as many examples" in said) == (way == "examples")


def test_what_more_computation_shows(capsys):
    """As examples, canaries are at most that share of the data, and more of them show more."""
    setting = {"steps": 20, "sample_rate": 0.1, "seed": 3}
    plans = plans_by_price(40_000, 1.0, 1e-5, trials=10, d=20_000, **setting)
    assert list(plans) == [0, 0.01, 0.05, 0.1, 0.5]
    free, *paid = plans.values()
    assert free.design.way == "sum"
    assert free.design.growth(40_000) == 1
    for share, plan in list(plans.items())[1:]:
        assert plan.design.way == "examples"
        assert 1 < plan.design.growth(40_000) <= 1 + share
        assert {each.bug for each in plan.forecast.outcomes} >= {"no clipping"}
    bounds = [plan.forecast.predicted for plan in paid]
    assert bounds == sorted(bounds)
    words = ["--epsilon", "1", "--delta", "1e-5", "--steps", "20", "--sample-rate", "0.1"]
    words += ["--d", "20000", "--seed", "3", "--trials", "0", "--way", "examples"]
    assert main(["plan", *words, "--canaries", "1000", "--examples", "40000"]) == 0
    said = capsys.readouterr().out
    assert price_table(plans) in said
    assert "has 1.02 times as many examples as your 40,000" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    small = plans_by_price(50, 1.0, 1e-5, trials=2, **setting)
    assert (list(small), small[0.5].forecast.honest.trials) == ([0, 0.05, 0.1, 0.5], 2)


def test_times_are_those_of_the_table():
    """What is printed about time is what price.csv has, and all of it."""
    table = pd.read_csv(BOOK / "data" / "price.csv").query("way != 'none'")
    by_weights = table.pivot(index=["way", "canaries"], columns="weights", values="ratio").round(2)
    assert {each[:2]: each[2:] for each in MEASURED} == {
        key: tuple(row) for key, row in zip(by_weights.index, by_weights.to_numpy(), strict=True)
    }
    assert (table.machine.unique(), table.examples.unique()) == (["NVIDIA H200"], [50_000])
    assert by_weights.columns.tolist() == [289_426, 4_584_522]
    printed = price_table({})
    assert all(f"{x.canaries:,}   " in printed and f"{x.larger:.2f}" in printed for x in MEASURED)


def test_predicted_refutations_are_those_of_simulated_audits():
    """Where a table of prices does not simulate: within what twenty audits can tell."""
    plan = plan_audit(1.0, 1e-5, d=5000, steps=20, sample_rate=0.1, canaries=5000, trials=20)
    predicted = price_table({0.0: replace(plan, forecast=Forecast(1.0))}).splitlines()[1]
    shares = [float(word.rstrip("%")) / 100 for word in predicted.split() if word.endswith("%")]
    found = [outcome.refuted for outcome in plan.forecast.outcomes[1:]]
    assert shares == pytest.approx(found, abs=0.3)
    assert predicted.endswith("unseen")
    assert plan.design.refuting(2, plan.claim) == 0  # not even if both are right
    two = expected_outcomes(plan, trials=2)
    assert (two, two[0].trials) == (expected_outcomes(plan, trials=2, seed=0), 2)
    share = predicted_accuracy(plan.design.dpsgd, np.array([100]), plan.design.dropping)[0]
    for epsilon in (0.8, 1.2, 1.6):
        need = right_needed(Counts(0, 100, 5000, r_fixed=True), epsilon, **plan.claim.test)
        predicted = plan.design.refuting(100, replace(plan.claim, epsilon=epsilon))
        assert predicted == pytest.approx(stats.binom.sf(need - 1, 100, share), abs=0.02)
    plan = plan_audit(1.0, 1e-5, d=1000, steps=20, sample_rate=0.1, aim="refute", trials=2)
    refuted = {outcome.bug: outcome.refuted for outcome in plan.forecast.outcomes}
    assert plan.forecast.refuted == refuted[f"{plan.forecast.noise} of the noise"]


def test_what_is_searched():
    """A plan is found again with the same numbers, on every machine and in every release."""
    guesses = "50 70 100 150 200 250 300 350 400 500 600 800 1000 1500 2000 3000 5000"
    assert guesses.split() == [str(k) for k in search.GUESSES]
    assert (search.MOST_CANARIES, search.FREE) == (1_000_000, (100_000, 800_000))
    assert search.NOISE_SHARES == (0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
    assert search.MULTIPLES == (1, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2, 3, 5)
    assert planning.price.SHARES == (0, 0.01, 0.05, 0.1, 0.5)
    training, schedule = DpSgd(n=1, d=2000, sigma=1.0), (0.9, 1.65, (3, 20))
    loads = {s: min(s, 8) for s in (2, 4, 8, 16, 24, 32, 48, 64, 100, 150)}
    expected = [(n, None) for n in (2000, 1000)]
    for s, most in loads.items():
        kinds = [None, *(Dropping(final, *schedule) for final in (1, 2, 4) if final < most)]
        expected += [(2000 * s, dropping) for dropping in kinds]
    tried = [(each.dpsgd.n, each.dropping) for each in designs(training, 300_000, "sum")]
    assert tried == expected
    fewer = [(each.dpsgd.n, each.dropping) for each in designs(training, 299_999, "sum")]
    assert tried[:-4] == fewer
    assert [each.dpsgd.n for each in designs(replace(training, d=1999), 1, "sum")] == [1]


def test_the_limits_of_a_plan():
    given = {"epsilon": 2.0, "delta": 1e-5, "d": 1, "steps": 1, "sample_rate": 0.2, "trials": 0}
    limits = {"epsilon": (r"\(0, 1000\]", 0, 1000.5), "delta": (r"\(0, 1\)", 0, 1)}
    limits |= {"steps": (r"\[1, 1000000\]", 0), "sample_rate": (r"\[1e-12, 1\]", 0.9e-12, 1.5)}
    limits |= {"trials": (r"\[0, 1000000\]", 10**6 + 1), "d": (r"\[1, 100000000\]", 10**8 + 1)}
    for name, (allowed, *wrong) in {**limits, "canaries": ("be at least 1", 0)}.items():
        for value in wrong:
            with pytest.raises(ValueError, match=rf"{name} must (lie in )?{allowed}"):
                plan_audit(**given | {name: value})
    assert plan_audit(**given | {"sample_rate": 1.05e-12}).guesses == 1


@pytest.mark.parametrize(("steps", "sigma"), [(1, 1e-3), (20, 0.09), (1001, 0.3)])
def test_a_prediction_is_a_share_whatever_the_noise_is(steps, sigma):
    """Little noise says so much in a step that scores pass the end of the grid at once."""
    k = np.array([1, 50, 100])
    for rate in (0.1, 1.0):
        for s, dropping in ((1, None), (16, Dropping(2, 0.9, 1.65, (3, 20)))):
            share = predicted_accuracy(DpSgd(s * 100, 100, steps, rate, sigma=sigma), k, dropping)
            assert ((share >= 0.5 - 1e-9) & (share <= 1 + 1e-9)).all()


def test_a_long_training_is_planned_in_stages():
    dropping = Dropping(2, 0.9, 1.65, (3, 20))
    long = DpSgd(9600, 100, 10_000, 0.1, sigma=24.224)
    loads = dropping.loads(long)
    assert loads.shape == (10_000, 10)
    assert (np.diff(dropping.active(long)) <= 0).all()
    assert (loads[::10] == loads[9::10]).all()
    short = DpSgd(9600, 100, 1000, 0.1, sigma=24.224 / 10**0.5)
    assert (loads[::10] == dropping.loads(short)).all()
    # The same information in ten times as many steps.
    k = np.array([50, 100])
    ratio = predicted_accuracy(long, k, dropping) / predicted_accuracy(short, k, dropping)
    np.testing.assert_allclose(ratio, 1, atol=0.03)


@pytest.mark.parametrize("typed", [{"canaries": 1000}, {"d": 50}, {"d": 500, "canaries": 300}])
def test_too_few_canaries_to_refute_are_named_and_what_they_still_see(typed, capsys):
    setting = {"epsilon": 8, "delta": 1e-5, "steps": 50, "sample_rate": 0.1, "aim": "refute"}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {**setting, **typed}.items()]
    assert main(["plan", *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"error: {list(typed)[-1]} must be larger: refuting an epsilon of 8")
    still = plan_audit(**setting | typed | {"aim": "bound"}, trials=0).forecast.predicted
    assert error.endswith(f"expect a bound of {still:.2f}, and checks of noise, steps, accountant")


@pytest.mark.parametrize(("epsilon", "d", "steps"), [(1.0, 1000, 50), (4.0, 220, 100)])
@pytest.mark.slow
def test_a_plan_to_refute_is_seen_to_refute(epsilon, d, steps):
    plan = plan_audit(epsilon, 1e-5, d=d, steps=steps, sample_rate=0.1, aim="refute", trials=0)
    assert plan.forecast.refuted >= 0.5
    outcomes = {outcome.bug: outcome for outcome in expected_outcomes(plan, trials=20, seed=1)}
    seen = {0.5: "half the noise", 0.1: "a tenth of the noise"}
    bug = seen.get(plan.forecast.noise, f"{plan.forecast.noise:g} of the noise")
    assert outcomes["none"].refuted == 0 < 0.4 <= outcomes[bug].refuted
    assert f"{plan.forecast.refuted:.0%} of simulated audits do" in " ".join(str(plan).split())


@pytest.mark.slow
def test_a_plan_that_cannot_test_its_claim_names_one_that_can(capsys):
    how = {"steps": 20, "sample_rate": 0.1, "trials": 2}
    first, *_, command = str(plan_audit(8.0, 1e-5, d=50, **how)).split("\n\n")[:2]
    assert first.startswith("This plan cannot test a claim of 8:\nat best it shows")
    words = shlex.split(command.replace("\\\n", ""))[1:]
    assert main([*words, "--trials", "0", "--canaries", "300"]) == 2
    assert "too few" in capsys.readouterr().err


@pytest.mark.slow
def test_coordinates_that_are_left_out_are_found():
    """Most bugs are refuted in nine of ten audits, on other random numbers too."""
    with pytest.raises(ValueError, match="canaries or d must be given for aim='bound'"):
        plan_audit(1.0, 1e-5, steps=20, sample_rate=0.1, way="examples")
    plan = plan_audit(1.0, 1e-5, steps=20, sample_rate=0.1, aim="refute", trials=0)
    honest, *bugs = expected_outcomes(plan, trials=40, seed=5)
    assert honest.refuted == 0
    assert np.median([bug.refuted for bug in bugs]) > 0.7


CLAIM, TRAINING = Claim(1.0, 1e-5, 0.05), DpSgd(100, 100, 20, 0.1, sigma=2.0)
TEST = {"delta": 1e-5, "beta": 0.05}
shown = partial(epsilon_lower_bound, method="exact", **TEST)


def played(monkeypatch, right):
    """In simulated audits ``right`` says how many guesses are right; a list of what it was told."""
    told = []

    def counts(dpsgd, guesses, *, trials, seed, dropping, norm=1.0):
        told.append((dpsgd.sigma / 2, norm, seed, dpsgd.n))
        right_of = [(right(k, *told[-1]), [k] * trials) for k in guesses]
        return [Counts(*pair, dpsgd.n, r_fixed=True) for pair in right_of]

    monkeypatch.setattr(search, "hopping_counts", counts)
    return told


def test_how_often_a_plan_refutes_is_seen_in_other_audits_than_chose_it(monkeypatch):
    """Of numbers that refute as often, the one with most right guesses to spare is chosen."""
    rng, k = np.random.default_rng(1), np.array([40, 45, 50, 60])
    for _ in range(50):
        need, v = k - rng.integers(4, size=4), k[:, None] - rng.integers(6, size=(2, 4, 10))
        told = played(monkeypatch, lambda r, *how, v=v: v[min(how[2], 1), [*k].index(r)])
        spare = v - need[:, None]
        *_, i = max(((x >= 0).sum(), x.sum(), -i) for i, x in enumerate(spare[0]))
        candidate = search._Candidate(Design(TRAINING, None), k, need)
        assert search._simulated(candidate, 0.5, 0) == (k[-i], (spare[1, -i] >= 0).mean())
        assert told == [(0.5, 1, 0, 100), (0.5, 1, max(1, told[1][2]), 100)]


@pytest.mark.parametrize(("d", "canaries"), [(10, 10), (8000, 16_000)])
@pytest.mark.parametrize("reach", [1.0, 0.4, 0.07, 0.01])
def test_a_plan_to_refute_has_the_most_noise_where_half_refute(d, canaries, reach, monkeypatch):
    """Ten guesses suffice, if all are right. Of six designs four are simulated."""
    share = {16_000: 1.0, 8000: 0.97, 4000: 0.6, 2000: 0.9, 1000: 0.95, 10: 1.0}

    def right(k, *how):
        need = right_needed(Counts(0, k, how[-1], r_fixed=True), 1.0, **TEST)
        return need - (np.arange(10) % 2 if how[0] <= reach else np.ones(10, dtype=int))

    told = played(monkeypatch, right)
    predicted = "oralib.planning.designs.predicted_accuracy"
    monkeypatch.setattr(predicted, lambda dpsgd, k, _: share[dpsgd.n] * k / k)
    given = list(designs(replace(TRAINING, n=1, d=d), canaries, "sum")), CLAIM, 0
    if reach > 0.05:
        *_, found = search.find_refutation(*given)
        assert (found.noise, found.refuted) == ({1.0: 0.5, 0.4: 0.35, 0.07: 0.05}[reach], 0.5)
        return
    enough = max(2 * d, search.coordinates_to_refute(TRAINING, CLAIM))
    with pytest.raises(ValueError, match=f"{d:,} co.* most {canaries:,} can.* try d={enough},"):
        search.find_refutation(*given)
    assert [how[-1] for how in told[:8:2]][: d // 10] in ([10], [16_000, 16_000, 8000, 1000])


def test_what_takes_too_long_is_simulated_if_nothing_else_can_refute(monkeypatch):
    assert [Design(TRAINING, None).affordable(trials) for trials in (1, 2)] == [0, 2]
    monkeypatch.setattr(Design, "affordable", lambda *_: 0)
    able = search._Candidate(Design(TRAINING, None), np.array([50]), np.array([1]))
    assert search._most_promising([able], 0.5) == [able]


def test_coordinates_to_begin_with():
    """Five for each guess that it takes, of canaries that come into a batch, to two digits."""
    for epsilon, steps, rate in product((0.5, 2.0, 8.0), (1, 20, 1000), (0.01, 0.1, 1.0)):
        exact = 5 * np.ceil(np.log(0.05) / np.log(p(epsilon))) / (1 - (1 - rate) ** steps)
        training = replace(TRAINING, steps=steps, sample_rate=rate)
        found = search.coordinates_to_refute(training, replace(CLAIM, epsilon=epsilon))
        assert exact * (1 - 1e-9) <= found == float(f"{found:.2g}") <= 1.1 * exact + 1
    endless = replace(TRAINING, steps=10**4), replace(CLAIM, epsilon=100.0)
    assert search.coordinates_to_refute(*endless) == 5 * 10**7


def test_coordinates_are_doubled_until_nine_of_ten_audits_refute_for_most_bugs(monkeypatch):
    def found(training, claim, most, d, *rest):
        tried.append(d)
        if (shares := bugs.pop(0)) is None:
            raise search.NoRefutationError("no plan")
        return [SimpleNamespace(refuted=share) for share in (0.0, *shares)]

    plan, given = search._plan, (TRAINING, CLAIM, None, None, "refute", "sum", 0)
    monkeypatch.setattr(search, "_plan", found)
    monkeypatch.setattr(search, "expected_outcomes", lambda outcomes, **_: outcomes)
    first = search.coordinates_to_refute(TRAINING, CLAIM)
    for shares in ([None, (0.9, 0.89), (0.9, 0.9, 0.1)], [*[(0.0, 0.0)] * 4, (0.8, 0.8)]):
        tried, bugs = [], shares.copy()
        plan(*given)
        assert tried == [first * 2**i for i in range(len(shares))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noise", [1.0, 0.5, 0.35])
def test_bugs_are_what_their_names_say(noise, way, monkeypatch):
    """In the sum of gradients canaries are not clipped by the training, so there is one less."""
    told = played(monkeypatch, lambda *_: np.array([20, 45, 50, 50]))
    plan = AuditPlan(CLAIM, Design(TRAINING, None, way), 50, Forecast(0.5, noise))
    outcomes = expected_outcomes(plan, trials=4)
    bugs = {"none": (1, 1), "half the noise": (0.5, 1), "a tenth of the noise": (0.1, 1)}
    bugs |= {"no clipping": (1, 3)} if way == "examples" else {}
    bugs |= {"0.35 of the noise": (0.35, 1)} if noise == 0.35 else {}
    assert {outcome.bug: how[:2] for outcome, how in zip(outcomes, told, strict=True)} == bugs
    bounds = shown([20, 45, 50, 50], 50, n=100)
    numbers = [f(x) for x in ([20, 45, 50, 50], bounds, bounds > 1) for f in (np.mean, stats.sem)]
    for outcome in outcomes:
        assert list(vars(outcome).values())[1:] == pytest.approx([*numbers, 4])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dropping", "beta"), [(None, 0.05), (Dropping(2, crowding=(3, 9)), 0.1)])
def test_the_script_of_a_plan_makes_its_canaries(dropping, beta, way, tmp_path, monkeypatch):
    """It runs with a class in the place of OpacusAudit, and its command audits what it wrote."""
    design = Design(replace(TRAINING, n=1600 if dropping else 100), dropping, way)
    plan = AuditPlan(replace(CLAIM, beta=beta), design, 50, Forecast(0.5))
    said, due = str(plan), Canaries.from_plan(plan, seed=1)

    class Trained:
        def __init__(self, *parts, **named):
            self.given = signature(OpacusAudit).bind(*parts, **named).arguments
            plan = AuditPlan.load(self.given.pop("plan"))
            self.canaries = Canaries.from_plan(plan, seed=self.given.pop("seed"))
            for step, noise in enumerate(np.random.default_rng(1).normal(scale=2, size=(20, 100))):
                self.canaries.observe(step, self.canaries.gradient(step) + noise)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("oralib.canaries.opacus.OpacusAudit", Trained)
    plan.save("plan.json")
    made = {name: name for name in ("optimizer", "model", "data")}
    exec(said[said.index("from oralib") : said.index("In a loop")].replace("...", "1"), made)
    for name in ("dpsgd", "guesses", "dropping", "hop", "way"):
        assert getattr(made["audit"].canaries, name) == getattr(due, name)
    given = {"sum": ["optimizer"], "examples": ["model", "data"]}[way]
    assert made["audit"].given == {name: name for name in given}
    (command,) = (line for line in said.splitlines() if line.startswith("oralib audit"))
    assert main(shlex.split(command)[1:]) == 0
    assert json.loads((tmp_path / "audit" / "report.json").read_text())["beta"] == beta
    assert "coordinates are used" not in said
    if dropping:
        active = dropping.active(design.dpsgd)
        falls = ", ".join(f"{active[t]:,} in step {t + 1}" for t in (0, 5, 10, 15, 19))
        crowd = "undecided canaries share coordinates with more others"
        assert f"active: {falls}; {crowd}" in " ".join(said.split())


def test_a_plan_that_cannot_test_its_claim_says_so():
    best = AuditPlan(CLAIM, Design(TRAINING, None), 50, Forecast(0.5)).best
    for epsilon, share in ((best, 1), (1.0, 0.49), (1.0, 0.5)):
        seen = [Outcome(bug, 0, 0, 0, 0, p, 0, 9) for bug, p in (("none", 1), ("some", share))]
        claim, forecast = replace(CLAIM, epsilon=epsilon), Forecast(0.5, outcomes=tuple(seen))
        said = str(AuditPlan(claim, Design(TRAINING, None), 50, forecast))
        assert said.startswith("This plan cannot test") == (share != 0.5)
        assert ("which cannot refute" in said) == (share == 1)
    for n in (100, 200):
        sure = replace(CLAIM, beta=1e-9)
        said = str(AuditPlan(sure, Design(replace(TRAINING, n=n), None), 50, Forecast(0.5)))
        assert "confidence 1 - 1e-9 for" in " ".join(said.split())
        assert ("drawn again in each step" in said) == (n == 200)


def test_a_predicted_bound_lies_between_those_of_whole_numbers(monkeypatch):
    k = np.array([50, 80])
    for right in (20.0, 30.5, 41.75, 49.9, 50.0):
        share = right / k
        monkeypatch.setattr("oralib.planning.designs.predicted_accuracy", lambda *_, p=share: p)
        whole = [np.interp(right, range(r + 1), shown(np.arange(r + 1), r, n=100)) for r in k]
        assert Design(TRAINING, None).bounds(k, CLAIM) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("how", [{"r_fixed": True}, {}, {"r_fixed": True, "feedback": "full"}])
def test_what_it_takes_to_refute_is_where_the_bound_passes_the_claim(how):
    test = {"delta": 1e-5, "beta": 0.05}
    for k, n, epsilon in ((50, 400, 2.0), (200, 1000, 4.0), (200, 10_000, 1.0)):
        v = right_needed(Counts(0, k, n, **how), epsilon, **test)
        r = guesses_needed(Counts(0, k, n, **how), epsilon, **test)
        for right, taken in ((v, k), (r, r)):
            assert valid_lower_bound(Counts(right, taken, n, **how), **test) > epsilon
        fewer = Counts(v - 1, k, n, **how), Counts(r - 1, r - 1, n, **how)
        assert max(valid_lower_bound(counts, **test) for counts in fewer) <= epsilon


@pytest.mark.slow
def test_claims_by_their_noise_and_by_another_accountant():
    setting = {"d": 50, "steps": 20, "sample_rate": 0.1, "trials": 0}
    plan = plan_audit(None, 1e-5, sigma=1.5, accountant="pld", **setting)
    assert plan.design.dpsgd.sigma == 1.5
    certified = certified_epsilon(1.5, 1e-5, 20, 0.1, accountant="pld")
    assert plan.claim.epsilon == pytest.approx(certified)
    back = plan_audit(plan.claim.epsilon, 1e-5, accountant="pld", **setting)
    assert back.design.dpsgd.sigma == pytest.approx(1.5, abs=2e-6)
    assert plan_audit(9.0, 1e-5, sigma=1.5, **setting).claim.epsilon == 9.0
    assert plan_audit(plan.claim.epsilon, 1e-5, **setting).design.dpsgd.sigma > 1.5  # by RDP
    with pytest.raises(ValueError, match="epsilon or sigma must be given, got neither"):
        plan_audit(None, 1e-5, **setting)


def test_fewer_canaries_than_coordinates():
    plan = plan_audit(2.0, 1e-5, d=10**6, steps=20, sample_rate=0.1, canaries=300, trials=0)
    assert (plan.design.dpsgd.n, plan.design.dpsgd.d) == (300, 10**6)
    assert "300 of 1,000,000 coordinates are used" in " ".join(str(plan).split())


@pytest.mark.parametrize("epsilon", [2.0, 4.0, 8.0])
def test_a_plan_for_the_last_model_says_what_its_audit_can_do(epsilon, tmp_path, capsys):
    """The line is where the bound of that many right guesses is; its command draws it there."""
    plan = plan_black_box(epsilon, 1e-5, 501)
    n, k, low = plan.canaries, plan.guesses, plan.guesses // 2
    counts = Counts(np.arange(k + 1), np.full(k + 1, k), n, r_fixed=True)
    bounds = valid_lower_bound(counts, delta=1e-5)
    assert plan.needed == next(iter(np.flatnonzero(bounds > epsilon)), None)
    assert k == {2.0: n // 5, 4.0: 2 * plan.least, 8.0: n // 5}[epsilon]
    for r, needed in ((plan.least, plan.least), (plan.least - 1, None)):
        assert plan_black_box(epsilon, 1e-5, max(n, r), r).needed == needed
    assert [plan_black_box(8.0, 1e-5, *how).guesses for how in ((n, 1), (4,))] == [1, 1]
    assert plan_black_box(0.5, 0.0, least := plan_black_box(0.5, 0.0, n).least).guesses == least
    given = ["--black-box", f"--epsilon={epsilon}", "--delta=1e-5", "--canaries=501"]
    assert main(["plan", *given]) == 0
    said = capsys.readouterr().out
    assert said == f"{plan}\n"
    assert max(map(len, said.splitlines())) <= 80
    for words in (f"{plan.right:.1f} right of {k}", f"the {low} largest", f"the {k - low} with"):
        assert words in said
    plan.save(path := tmp_path / "plan.json")
    assert BlackBoxPlan.load(path) == plan
    with pytest.raises(ValueError, match=r"from AuditPlan.save, got .* a BlackBoxPlan"):
        AuditPlan.load(path)
    for one_too_few in (0, 1):
        coins = np.arange(n) > n // 2
        coins[n - (k - (plan.needed or k)) - one_too_few :] = False  # these guesses are wrong
        rows = [f"{score},{int(coin)}\n" for score, coin in enumerate(coins)]
        (tmp_path / "scores.csv").write_text("".join(["score,included\n", *rows]))
        status = 3 if plan.needed is None else 1 - one_too_few
        assert main(["audit", str(tmp_path / "scores.csv"), "--plan", str(path)]) == status
        assert capsys.readouterr().out == f"{plan.audit(np.arange(n), coins)}\n"
    balanced = np.arange(500) % 7, np.arange(500) // 2 % 2 == 0  # by chance, as each has a coin
    assert not plan_black_box(epsilon, 1e-5, 500).audit(*balanced).problem
    with pytest.raises(ValueError, match="those of 501 examples by the last model, as planned"):
        plan.audit(np.arange(9), np.arange(9) % 2)


def test_the_most_right_guesses_of_a_true_claim_are_those_of_a_mechanism():
    """Randomized response that shows a coin with probability δ and says so: a guess of each."""
    plan = plan_black_box(1.0, 0.2, 30, 30)
    e, delta = np.exp(plan.claim.epsilon), plan.claim.delta
    told = 30 * (delta + (1 - delta) * e / (1 + e))
    assert plan.right == pytest.approx(told)


def test_what_a_plan_for_the_last_model_quotes_is_what_the_trainings_showed():
    shown = pd.read_csv(BOOK / "data" / "black-box.csv").query("score == 'loss'")
    assert shown.groupby("kind", sort=False)["v"].mean().round(1).to_dict() == EXAMPLE


@pytest.mark.parametrize("wrong", ["epsilon", "examples", "seed", "canaries"])
def test_impossible_plans_for_the_last_model(wrong, capsys):
    given = [] if wrong == "epsilon" else ["--epsilon=2", f"--{wrong}=0"]
    assert main(["plan", "--black-box", "--delta=1e-5", *given]) == 2
    assert f"{wrong} must " in capsys.readouterr().err
