"""Canaries in a training loop: the law of the simulation, and nothing of a coin in a place.

Those with PyTorch are skipped where it is missing, unless ORALIB_REQUIRE_TORCH is set.
"""

import contextlib
import os
import pydoc
import re
import warnings
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise

import nbformat
import numpy as np
import pytest
from scipy import special, stats
from test_hopping import log_ratio, one_training

import oralib
from orabook.place import BOOK
from oralib import (
    AuditPlan,
    DpSgd,
    Dropping,
    audit_scores,
    certified_epsilon,
    plan_audit,
    simulate_hopping,
    valid_lower_bound,
)
from oralib.canaries import Canaries, mislabelled
from oralib.canaries._rows import Active, by_promise
from oralib.canaries.look import Look
from oralib.canaries.loop import _ARRAYS, SEEN_NOISE
from oralib.dpsgd import simulate_likelihood
from oralib.dpsgd.hopping import _Active, _sort
from oralib.dpsgd.likelihood import beliefs, likelihood_tables, log_likelihoods
from oralib.planning import Claim, Design, Forecast
from oralib.scores.file import read_scores

TORCH = find_spec("opacus") is not None or os.environ.get("ORALIB_REQUIRE_TORCH")
missing = pytest.mark.skipif(not TORCH, reason="PyTorch and Opacus are not installed: make torch")

CLAIM = DpSgd(n=800, d=100, steps=30, sample_rate=0.1, sigma=0.8)
DROPPING = Dropping(2, 0.9, 1.65, (3, 20))
WAYS = {"hop": {}, "stay": {"hop": False}, "drop": {"dropping": DROPPING}}


def step_of(canaries, rng, noise=1.0):
    """The noisy gradient of a step of an honest training, or of one with less noise."""
    dpsgd = canaries.dpsgd
    sampled = rng.random(dpsgd.n) < dpsgd.sample_rate
    added = rng.normal(scale=noise * dpsgd.sigma, size=dpsgd.used_coordinates)
    return canaries.gradient(canaries.step, sampled) + added


def trained(dpsgd, k, seed, noise=1.0, **how):
    canaries = Canaries(dpsgd, k, seed=seed, public_seed=seed, **how)
    rng = np.random.default_rng(seed)
    for step in range(dpsgd.steps):
        canaries.observe(step, step_of(canaries, rng, noise))
    return canaries


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_has_the_law_of_the_simulation(way):
    k, runs = 60, 16
    if way == "stay":
        law = simulate_likelihood(CLAIM, k, trials=500, seed=1).v
    else:
        law = simulate_hopping(CLAIM, k, dropping=WAYS[way].get("dropping"), trials=500, seed=1).v
    v = [trained(CLAIM, k, seed, **WAYS[way]).counts().v for seed in range(runs)]
    assert np.mean(v) == pytest.approx(law.mean(), abs=4 * law.std() / np.sqrt(runs))
    assert 0.5 < np.std(v) / law.std() < 1.6


def test_scores_have_the_law_of_the_simulation():
    """Those of included canaries, from 30 training runs each, against the mean score of the run.

    That mean follows how many are included in all, which differs from run to run.
    """
    dpsgd = DpSgd(n=600, d=30, steps=20, sample_rate=0.2, sigma=1.0)
    loop = [(each.included, each.scores) for each in (trained(dpsgd, 1, s) for s in range(30))]
    played = [one_training(dpsgd, None, seed) for seed in range(30)]
    mine, theirs = (
        np.concatenate([(scores - scores.mean())[included] for included, scores in runs])
        for runs in (loop, played)
    )
    assert stats.ks_2samp(mine, theirs).statistic < 0.03


def naive_scores(dpsgd, gradients, places):
    """Of canaries that hop: in each step what its coordinate says about a canary, by its load."""
    scores = np.zeros(dpsgd.n)
    for y, where in zip(gradients, places, strict=True):
        for canary in np.flatnonzero(where >= 0):
            load = (where == where[canary]).sum()
            scores[canary] += log_ratio(y[where[canary]], load, dpsgd.sample_rate, dpsgd.sigma)
    return scores


@pytest.mark.parametrize("way", WAYS)
def test_scores_step_by_step_are_those_of_the_whole_table(way):
    canaries, rng = Canaries(CLAIM, 60, seed=3, **WAYS[way]), np.random.default_rng(3)
    places, gradients = [], []
    for step in range(CLAIM.steps):
        places.append(canaries.places(step))
        if way == "drop":  # in each step those of most promise are in the first bands
            sizes = np.minimum(np.abs(canaries.scores) * 1024, 8191).astype(int)
            bands = [sizes[places[-1] // 10 == band] for band in range(10)]
            assert all(one.min() >= other.max() for one, other in pairwise(bands))
        gradients.append(step_of(canaries, rng))
        canaries.observe(step, gradients[-1])
    if way == "stay":
        tables = likelihood_tables(CLAIM.per_coordinate, 1, CLAIM.sample_rate, CLAIM.sigma)
        whole = beliefs(log_likelihoods(np.array(gradients), tables), tables.factorials)
        whole = np.tile(whole, CLAIM.per_coordinate)
    else:
        whole = naive_scores(CLAIM, gradients, places)
    active = places[-1] >= 0
    np.testing.assert_allclose(canaries.scores[active], whole[active], atol=2e-3)
    assert (canaries.scores[~active] == 0).all()
    if way == "drop":  # each row of the places has the loads of the schedule
        loads = DROPPING.loads(CLAIM)
        for row, load in zip(places, loads, strict=True):
            held = np.bincount(row[row >= 0], minlength=CLAIM.d)
            np.testing.assert_array_equal(held, np.repeat(load, 10))


def test_no_coin_enters_a_place():
    """Other coins, the same published gradients: the same places, drops and guesses."""
    rng = np.random.default_rng(5)
    one, other = (Canaries(CLAIM, 60, seed=seed, dropping=DROPPING) for seed in (1, 2))
    assert 300 < (one.included != other.included).sum() < 500
    for step in range(CLAIM.steps):
        np.testing.assert_array_equal(one.places(step), other.places(step))
        published = step_of(one, rng)
        one.observe(step, published)
        other.observe(step, published)
    np.testing.assert_array_equal(one.guessed(), other.guessed())
    third = Canaries(CLAIM, 60, seed=1, public_seed=1)
    assert (third.places(0) != Canaries(CLAIM, 60, seed=1).places(0)).any()


def test_canaries_are_sorted_as_in_the_simulation():
    scores = np.random.default_rng(1).normal(scale=3, size=500)
    scores[::7] = scores[3]
    coins = np.random.default_rng(2).random(500) < 0.5
    canaries = _Active(scores.copy(), coins.copy())
    _sort(500, 200, canaries, _Active(np.zeros(500), np.zeros(500, dtype=bool)))
    mine = by_promise(Active(np.arange(500, dtype=np.int32), scores, coins), 200)
    size = np.minimum(np.abs(scores) * 1024, 8191).astype(int)
    np.testing.assert_array_equal(mine.who, np.argsort(-size, kind="stable")[:200])
    np.testing.assert_array_equal(canaries.score[:200], mine.score)
    np.testing.assert_array_equal(canaries.coin[:200], mine.coin)


@pytest.mark.filterwarnings("ignore")  # that this is not the noise of the claim
def test_the_bound_covers_a_mechanism_that_is_just_as_private_as_claimed():
    """Randomized response in the place of the training: (ε, 0)-DP, and nothing hides it."""
    epsilon, n, runs = 1.0, 200, 300
    over = 0
    rng = np.random.default_rng(1)
    for seed in range(runs):
        canaries = Canaries(DpSgd(n, n, 1, 1.0, sigma=0.5), 100, seed=seed)
        where = canaries.places(0)
        told = canaries.included ^ (rng.random(n) > 1 / (1 + np.exp(-epsilon)))
        shown = np.empty(n)
        shown[where] = np.where(told, 1.0, -1.0) * (0.5 + rng.random(n))
        canaries.observe(0, shown)
        over += valid_lower_bound(canaries.counts(), beta=0.05) > epsilon
    assert 0.005 * runs < over <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)


@pytest.mark.parametrize("way", WAYS)
def test_a_training_that_was_killed_goes_on(way, tmp_path):
    """Saved and loaded again and again: as if it had never ended."""
    rng, again = np.random.default_rng(2), np.random.default_rng(2)
    canaries = Canaries(CLAIM, 60, seed=9, **WAYS[way])
    canaries.save(tmp_path / "canaries")
    for step in range(CLAIM.steps):
        canaries.observe(step, step_of(canaries, rng))
        revived = Canaries.load(tmp_path / "canaries")
        revived.observe(step, step_of(revived, again))
        revived.save(tmp_path / "canaries")
    np.testing.assert_array_equal(canaries.scores, revived.scores)
    np.testing.assert_array_equal(canaries.guessed(), revived.guessed())
    np.testing.assert_array_equal(canaries.included, revived.included)
    assert [path.name for path in tmp_path.iterdir()] == ["canaries"]
    whole = (tmp_path / "canaries").read_bytes()
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", setting="{}", **dict.fromkeys(_ARRAYS, np.zeros(3)))
    strange = [(tmp_path / name).read_bytes() for name in ("array.npy", "other.npz")]
    foreign = (b"nothing", b"", whole[: len(whole) // 2], *strange)
    for content in foreign:
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(ValueError, match=r"path must be a file from save, got .*: it is cut"):
            Canaries.load(tmp_path / "other")


def looks(way, runs=1, *, noise=1.0, size=1.0, repeated=0.0, steps=CLAIM.steps):
    """How trainings look: with this share of the noise, of the gradients, of the last noise."""
    for seed in range(runs):
        canaries, rng = Canaries(CLAIM, 60, seed=seed, **WAYS[way]), np.random.default_rng(seed)
        last = rng.normal(scale=noise * CLAIM.sigma, size=CLAIM.d)
        for step in range(steps):
            fresh = rng.normal(scale=noise * CLAIM.sigma, size=CLAIM.d)
            last = repeated * last + np.sqrt(1 - repeated**2) * fresh
            canaries.observe(step, size * canaries.gradient(step) + last)
        yield canaries.seen


@pytest.mark.filterwarnings("ignore")  # that this is not the noise of the claim
@pytest.mark.parametrize("way", WAYS)
def test_each_look_sees_its_own_bug(way):
    """And says by how much; an honest training fails one of three looks in 0.3% of audits."""
    for bug, seen in {
        "noise": next(looks(way, noise=0.8)),
        "gradient": next(looks(way, size=0.5)),
        "steps": next(looks(way, repeated=0.3)),
    }.items():
        check = {check.name: check for check in seen.checks}[bug]
        # Of the variance of a coordinate about 0.64 is noise, and the rest is sampling.
        right = {"noise": 0.8, "gradient": 0.5, "steps": 0.3 * 0.64}[bug]
        assert check.share == pytest.approx(right, abs=4 * check.error)
        assert not check.fits
        assert str(check) in seen.reasons
    assert not [reason for reason in seen.reasons if "its noise" in reason and "canaries" in reason]
    (more,) = looks(way, steps=CLAIM.steps + 1)
    assert more.reasons == ("it made 31 steps, and the claim is for 30",)
    honest = [seen.as_stated for seen in looks(way, 100)]
    assert honest.count(False) <= 3  # of 0.3 on average: more in 3 of 10,000 cases
    assert next(looks(way, steps=1)).checks[0].name == "gradient"


def test_a_look_by_hand():
    """The three numbers of two steps, from their definitions."""
    dpsgd, rng = DpSgd(60, 60, 2, 0.3, sigma=0.7), np.random.default_rng(2)
    look, m = Look(dpsgd), rng.integers(0, 3, (2, 60))
    y = rng.binomial(m, 0.3) + rng.normal(scale=0.7, size=m.shape)
    look.add(y[0], m[0])
    assert look.checks() == ()  # from 100 numbers on
    look.add(y[1], m[1])
    gradient, noise = look.checks()
    error, variance = y - 0.3 * m, 0.7**2 + 0.21 * m
    pull = m * error / variance
    assert gradient.z == pytest.approx(pull.sum() / np.sqrt((pull**2).sum()))
    assert gradient.share == pytest.approx((m * y / variance).sum() / (0.3 * m**2 / variance).sum())
    assert gradient.error == pytest.approx((gradient.share - 1) / gradient.z)
    assert noise.share**2 == pytest.approx((error**2 - 0.21 * m).mean() / 0.7**2)
    moments = [stats.binom(k, 0.3).stats("k") * stats.binom(k, 0.3).var() ** 2 for k in (1, 2)]
    of_squares = np.array([0, *moments])[m] + 2 * variance**2
    shape = variance.sum() ** 2 / of_squares.sum()
    p = stats.gamma(shape, scale=variance.sum() / shape).cdf((error**2).sum())
    assert stats.norm.cdf(noise.z) == pytest.approx(p, abs=2e-3)
    of_mean = np.sqrt(of_squares.sum()) / m.size  # and a square is off by twice its root's error
    assert noise.error == pytest.approx(of_mean / 0.7**2 / 2)
    look.add(y[0], m[0])
    steps, scaled = look.checks()[2], error / np.sqrt(variance)
    products = scaled[0] * scaled[1]
    assert steps.share == pytest.approx(products.mean())
    assert steps.error == pytest.approx(steps.share / steps.z)
    twice = np.sqrt(2)  # each product of a pair is there two times
    assert steps.z == pytest.approx(twice * products.sum() / np.sqrt((products**2).sum()))


@pytest.mark.parametrize("coin", [0, 1])
def test_a_look_at_gradients_needs_only_an_included_canary(coin):
    """However large the noise is."""
    look = Look(DpSgd(100, 100, 1, 0.3, sigma=50.0))
    look.add(np.random.default_rng(1).normal(scale=50.0, size=100), np.full(100, coin))
    assert [check.name for check in look.checks()] == ["gradient", "noise"][1 - coin :]


def test_canaries_that_are_sampled_here():
    """By default canaries are in a batch with the stated probability, and only included ones."""
    claim = DpSgd(n=3000, d=300, steps=1, sample_rate=0.2, sigma=1.0)
    drawn = [Canaries(claim, 60, seed=seed).gradient(0).sum() for seed in range(200)]
    tossed = [Canaries(claim, 60, seed=seed).included.sum() for seed in range(200)]
    away = np.sum(drawn) - 0.2 * np.sum(tossed)
    assert abs(away) < 4 * np.sqrt(0.16 * np.sum(tossed))
    full = Canaries(DpSgd(n=3000, d=300, steps=1, sample_rate=1.0, sigma=1.0), 60, seed=1)
    everybody = np.bincount(full.places(0)[full.included], minlength=300)
    np.testing.assert_array_equal(full.gradient(0), everybody)
    np.testing.assert_array_equal(full.gradient(0, np.full(3000, True)), everybody)


def test_the_file_makes_the_guesses_that_the_canaries_make(tmp_path):
    canaries = trained(CLAIM, 60, 4, dropping=DROPPING)
    canaries.write_scores(tmp_path / "scores.csv")
    file = read_scores(tmp_path / "scores.csv")
    np.testing.assert_array_equal(file.coins, canaries.included)
    farthest = np.argsort(-np.abs(file.values), kind="stable")[:60]
    assert set(farthest) == set(np.flatnonzero(canaries.guessed()))
    np.testing.assert_array_equal(np.sign(file.values[farthest]), canaries.guessed()[farthest])


@pytest.mark.parametrize("dropping", [None, Dropping(2.0, 1.0, 1.0, (2.0, 5.0))])
@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
def test_noise_is_weighed_by_its_likelihood(dropping):
    """By a naive twin: sums over how many of the canaries on a coordinate are in the batch."""
    dpsgd = DpSgd(n=80, d=10, steps=3, sample_rate=0.5, sigma=0.7)
    canaries, rng = Canaries(dpsgd, 5, seed=1, dropping=dropping), np.random.default_rng(1)
    due = np.zeros(len(SEEN_NOISE))
    for step in range(3):
        gradient, places = rng.normal(2.0, 1.5, size=10), canaries.places(step)
        for y, load in zip(gradient, np.bincount(places[places >= 0], minlength=10), strict=True):
            j = np.arange(load + 1)
            chances = stats.binom.logpmf(j, load, dpsgd.sample_rate / 2)
            scales = dpsgd.sigma * np.array(SEEN_NOISE)[:, None]
            due += special.logsumexp(chances + stats.norm.logpdf(y - j, scale=scales), axis=1)
        canaries.observe(step, gradient)
    fit, stated = canaries._fit, SEEN_NOISE.index(1.0)
    assert fit - fit[stated] == pytest.approx(due - due[stated], rel=1e-9, abs=1e-6)


def test_too_little_noise_is_seen_and_refuted():
    """With the stated noise in the scores, all canaries would seem to be left out."""
    claim = DpSgd(n=400, d=400, steps=40, sample_rate=0.2, sigma=2.0)
    assert all(trained(claim, 350, seed).noise_seen == 1 for seed in range(10))
    with pytest.warns(UserWarning, match=r"look like those with 0\.1 of the stated noise"):
        canaries = trained(claim, 350, 1, noise=0.1)
    assert canaries.noise_seen == 0.1
    assert canaries.counts().v >= 345
    for share in (0.75, 0.5, 0.35, 0.25, 0.15, 0.05, 0.02, 0.01, 2, 5, 20, 100):
        with pytest.warns(UserWarning, match=f"look like those with {share} of the stated noise"):
            assert trained(claim, 350, 1, noise=share).noise_seen == share
    with pytest.warns(UserWarning, match="or clip and batch are not those of the training"):
        Canaries(claim, 9, seed=1).observe(0, np.random.default_rng(1).normal(size=400) * 400)


def test_units_and_scores_before_the_last_step(tmp_path):
    rng = np.random.default_rng(1)
    one, other = (Canaries(CLAIM, 60, seed=1) for _ in range(2))
    for step in range(3):
        gradient = step_of(one, rng)
        one.observe(step, gradient)
        other.observe(step, gradient * 0.5 / 64, clip=0.5, batch=64)
    np.testing.assert_allclose(one.scores, other.scores)
    with pytest.warns(
        UserWarning, match=f"only 3 of {CLAIM.steps} planned steps were observed"
    ) as said:
        one.write_scores(tmp_path / "scores.csv")
    assert said[0].filename == __file__  # it points at the line that asked


@pytest.mark.filterwarnings("ignore")  # there is no noise at all
def test_no_step_is_observed_twice_nor_one_too_many():
    canaries, flat = Canaries(CLAIM, 60, seed=1), np.zeros(100)
    with pytest.raises(ValueError, match="gradient must lie in"):
        canaries.observe(0, flat * np.nan)
    assert canaries.step == 0
    canaries.observe(0, flat)
    with pytest.raises(ValueError, match="step must be 1, the next one, got step=0"):
        canaries.observe(0, flat)
    done = trained(CLAIM, 60, 1)
    before = done.scores
    with pytest.raises(ValueError, match="step must be less than 30, as planned, got step=30"):
        done.places(30)
    assert (done.gradient(30) == 0).all()
    with pytest.warns(UserWarning, match="step 31 of 30 planned ones: more steps than claimed"):
        done.observe(30, flat)
    done.observe(31, flat)
    np.testing.assert_array_equal(done.scores, before)
    assert done.seen.steps == 32


def test_the_canaries_of_a_plan():
    plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=0)
    canaries = Canaries.from_plan(plan, seed=1)
    assert (canaries.dpsgd, canaries.guesses) == (plan.design.dpsgd, plan.guesses)
    assert canaries.way == plan.design.way == "sum"
    assert f"the {plan.guesses} with scores farthest from 0" in str(plan)


def test_mislabelled_examples(tmp_path):
    labels = np.arange(1000) % 7
    canaries = mislabelled(labels, 300, seed=1)
    assert (canaries.labels != labels[canaries.rows]).all()
    rows, trained_on = canaries.training_set(labels)
    assert rows.size == 1000 - (~canaries.included).sum()
    assert (trained_on != labels[rows]).sum() == canaries.included.sum()
    canaries.write_scores(tmp_path / "scores.csv", np.where(canaries.included, 0.5, 1.0))
    file = read_scores(tmp_path / "scores.csv")
    audit = audit_scores(file.values, file.coins, delta=0.0, guesses=300 - 100)
    assert audit.v == 200
    assert {*mislabelled([5, -9], 1, seed=1).labels} < {5, -9}  # two kinds and one canary will do
    many, n = mislabelled(np.arange(21_000) % 7, 21_000, seed=1), 21_000
    assert many.included.mean() == pytest.approx(0.5, abs=2 / np.sqrt(n))  # four standard errors
    share = np.bincount((many.labels - np.arange(n)) % 7) / n  # all wrong labels are as likely
    assert share == pytest.approx([0, *[1 / 6] * 6], abs=1.5 / np.sqrt(n))
    with pytest.raises(ValueError, match="losses must have a number for each of 300 canaries"):
        canaries.write_scores(tmp_path / "scores.csv", [1.0])
    with pytest.raises(ValueError, match="labels must be at least -9007199254740992"):
        mislabelled([-(2**53) - 1, 0], 1, seed=1)


SMALL = DpSgd(n=480, d=60, steps=24, sample_rate=0.125, sigma=0.6)


def planned(dpsgd, k, dropping=None, way="examples"):
    """A plan of these canaries, for the claim that the accountant certifies."""
    run = dpsgd.sigma, 1e-5, dpsgd.steps, dpsgd.sample_rate
    epsilon = certified_epsilon(*run, accountant="pld")
    return AuditPlan(Claim(epsilon, 1e-5, 0.05), Design(dpsgd, dropping, way), k, Forecast(0.0))


def in_the_sum(mode, *, bug=None, physical=None, batches=8, steps=SMALL.steps, seed=1):
    """The audit of a training with canaries in the sum: two lines beside the training."""
    import torch
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from oralib.canaries.opacus import OpacusAudit

    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    data = TensorDataset(inputs := torch.randn(200, 5), (inputs.sum(1) > 0).long())
    optimizer, loss = (
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        nn.CrossEntropyLoss(),
    )
    how = {"module": model, "optimizer": optimizer, "noise_multiplier": SMALL.sigma}
    how |= {"max_grad_norm": 1.7, "data_loader": DataLoader(data, batch_size=200 // batches)}
    if mode == "ghost":
        how |= {"criterion": loss, "grad_sample_mode": "ghost"}
    elif mode == "per_layer":
        how |= {"max_grad_norm": [0.5] * 4, "clipping": "per_layer"}
    elif mode == "summed":
        how |= {"loss_reduction": "sum"}
    private = PrivacyEngine().make_private(**how)
    (model, optimizer, *rest), loader = private[:-1], private[-1]
    if mode == "summed":  # and no accountant is told of the steps
        optimizer.attach_step_hook(None)
    loss = rest[0] if rest else loss
    plan = planned(SMALL, 40, way="sum")
    audit = OpacusAudit(plan, optimizer=optimizer, seed=seed)  # this line, and one at the end
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    if bug is not None:
        bug(optimizer)
    while audit.canaries.step < steps:
        memory = {"data_loader": loader, "optimizer": optimizer}
        with BatchMemoryManager(max_physical_batch_size=physical or 200, **memory) as batches:
            for features, labels in batches:
                optimizer.zero_grad()
                loss(model(features), labels).backward()
                optimizer.step()
        schedule.step()
    state = optimizer.state_dict()["state"]
    assert len(state) == 4  # the weights of the model, and none of the audit
    return plan.audit(audit.canaries.scores, audit.canaries.included, audit.canaries.seen)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.torch
@missing
def test_canaries_in_the_sum_of_any_clipping():
    """Honest trainings look so, whatever clips; bugs of the noise are seen."""
    import torch

    for mode in ("hooks", "ghost", "per_layer", "summed"):
        for physical in (None, 11):
            audit = in_the_sum(mode, physical=physical)
            assert (audit.seen.reasons, audit.seen.steps) == ((), SMALL.steps)
            assert "Opacus" in audit.seen.software

    def less_noise(optimizer):
        optimizer.noise_multiplier *= 0.8

    def repeats(optimizer):
        inner = optimizer.add_noise
        state = torch.random.get_rng_state()

        def add_noise():
            torch.random.set_rng_state(state)
            inner()

        optimizer.add_noise = add_noise

    assert in_the_sum("ghost", bug=less_noise).status == "unlike"
    assert "neighbouring steps" in str(in_the_sum("hooks", bug=repeats).seen.reasons)
    assert "it made 32 steps" in str(in_the_sum("hooks", steps=32).seen.reasons)
    with pytest.raises(ValueError, match=r"rate of the plan, 0\.125, and .* is told 0\.2"):
        in_the_sum("hooks", batches=5)


def by_opacus(dpsgd, k, seed, *, noise=1.0, dropping=None):
    import torch
    from opacus import PrivacyEngine
    from torch import nn
    from torch.utils.data import TensorDataset

    from oralib.canaries.opacus import OpacusAudit

    torch.manual_seed(seed)
    inputs = torch.randn(200, 5)
    data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    network = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    audit = OpacusAudit(planned(dpsgd, k, dropping), network, data, seed=seed, public_seed=seed)
    optimizer = torch.optim.Adam(audit.model.parameters(), lr=0.05)
    loss = nn.CrossEntropyLoss()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=audit.model,
            optimizer=optimizer,
            data_loader=audit.loader,
            noise_multiplier=dpsgd.sigma * noise,
            max_grad_norm=1.7,
        )
        audit.attach(model, optimizer, loader)
        while audit.canaries.step < dpsgd.steps:
            for features, labels, who in loader:
                optimizer.zero_grad()
                loss(model(features, who), labels).backward()
                optimizer.step()
    assert engine.accountant.history[0][2] == dpsgd.steps  # it still counts
    return audit.canaries, float((model(inputs).argmax(1) == data.tensors[1]).float().mean())


@pytest.mark.torch
@missing
def test_a_training_by_opacus_has_the_law_of_the_simulation():
    dropping, k, runs = Dropping(2, 0.9, 1.65, (3, 20)), 40, 6
    law = simulate_hopping(SMALL, k, dropping=dropping, trials=500, seed=1).v
    made = [by_opacus(SMALL, k, seed, dropping=dropping) for seed in range(runs)]
    v = [audit.counts().v for audit, _ in made]
    assert np.mean(v) == pytest.approx(law.mean(), abs=4 * law.std() / np.sqrt(runs))
    assert all(audit.noise_seen == 1 for audit, _ in made)
    assert np.mean([accuracy for _, accuracy in made]) > 0.65  # it learns, too


@pytest.mark.filterwarnings("ignore")
@pytest.mark.torch
@missing
def test_opacus_with_a_tenth_of_the_noise():
    claim = DpSgd(n=300, d=300, steps=40, sample_rate=0.25, sigma=3.0)
    audit, _ = by_opacus(claim, 250, 1, noise=0.1)
    assert audit.counts().v >= 245
    verdict = planned(claim, 250).audit(audit.scores, audit.included, audit.seen)
    (doubt,) = verdict.seen.reasons  # the optimizer states that noise itself
    assert doubt.startswith("its σ = 0.3 gives ε = ")


@pytest.mark.torch
@missing
def test_the_gradients_of_canaries_and_of_data(tmp_path):
    """Each is where it should be, before clipping; and what cannot be attached is said."""
    import torch
    from opacus import GradSampleModule
    from torch import nn

    from oralib.canaries.opacus import OpacusAudit

    data = [(torch.ones(3), 0)]
    whole = OpacusAudit(planned(SMALL, 40), nn.Linear(3, 2), data, seed=2)
    inner, audit = whole.model, whole.canaries
    assert audit.included[:2].tolist() == [True, False]
    assert whole.growth == len(whole.data) == SMALL.n + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GradSampleModule(inner)
        with pytest.raises(ValueError, match=r"attach.* must come before the first step"):
            model(torch.ones(1, 3), torch.tensor([0]))
        inner.push = 3.0
        who = torch.tensor([-1, *range(40)])
        outputs = model(torch.randn(41, 3), who)
        nn.functional.cross_entropy(outputs, torch.zeros(41, dtype=torch.long)).backward()
    assert (inner.model.weight.grad_sample[0] != 0).any()
    assert (inner.model.weight.grad_sample[1:] == 0).all()
    expected = np.zeros((40, SMALL.d))
    expected[np.arange(40), audit.places(0)[:40]] = 3.0 * audit.included[:40]
    for half in inner.coordinates:
        assert (half.weight.grad_sample[0] == 0).all()
        np.testing.assert_allclose(half.weight.grad_sample[1:, :, 0], expected, rtol=1e-6)
    plain = torch.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(TypeError, match="optimizer must be one that make_private returns"):
        whole.attach(model, plain, [])
    with pytest.raises(TypeError, match="optimizer must be one that make_private returns"):
        OpacusAudit(planned(SMALL, 40, way="sum"), optimizer=plain, seed=1)
    for given in ((), (nn.Linear(3, 2), data)):
        with pytest.raises(ValueError, match="give optimizer=, and neither model nor data"):
            OpacusAudit(planned(SMALL, 40, way="sum"), *given, seed=1)
    with pytest.raises(ValueError, match="give model and data, and no optimizer"):
        OpacusAudit(planned(SMALL, 40), optimizer=plain, seed=1)
    with pytest.raises(ValueError, match="model must contain that of the audit, got Linear"):
        whole.attach(nn.Linear(1, 1), None, [])
    audit.save(tmp_path / "canaries.npz")
    again = OpacusAudit(whole.plan, nn.Linear(3, 2), data, resume=tmp_path / "canaries.npz")
    assert (again.canaries.included == audit.included).all()
    fewer = planned(DpSgd(n=60, d=60, steps=24, sample_rate=0.125, sigma=0.6), 40)
    for plan, seed in ((whole.plan, 9), (planned(SMALL, 21), None), (fewer, None)):
        with pytest.raises(ValueError, match=r"give one of seed and|resume must be a file of cana"):
            OpacusAudit(plan, nn.Linear(3, 2), data, seed=seed, resume=tmp_path / "canaries.npz")


@pytest.mark.torch
@missing
def test_which_optimizers_of_opacus_are_taken():
    """Those that the documentation names, of as many as it says that there are."""
    from opacus import optimizers

    from oralib.canaries import _torch, opacus

    kinds = [kind for kind in vars(optimizers).values() if isinstance(kind, type)]
    taken = {"sum": [], "examples": []}
    for way, names in taken.items():
        for kind in kinds:
            stand_in = object.__new__(kind)
            stand_in.noise_multiplier = 1.0
            with contextlib.suppress(TypeError):
                _torch.checked_optimizer(stand_in, way)
                names.append(kind.__name__)
    paragraph = opacus.__doc__.split("Of the eight optimizers")[1]
    assert len(kinds) == 8
    assert sorted(re.findall(r"``(\w+)``", paragraph)) == sorted(taken["sum"])
    assert taken["examples"] == ["DPOptimizer"]


@pytest.mark.torch
@missing
def test_what_attach_expects_of_noise_and_batches():
    """Another accountant's noise is believed if the claim holds for it; other batches are not."""
    import torch
    from opacus import PrivacyEngine
    from torch import nn

    from oralib.canaries.opacus import OpacusAudit

    def attached(noise, plan=SMALL, twice=False, **options):
        data = [(torch.ones(3), 0)] * 20
        audit = OpacusAudit(planned(plan, 40), nn.Linear(3, 2), data, seed=1)
        optimizer = torch.optim.SGD(audit.model.parameters(), lr=0.1)
        how = {"noise_multiplier": noise, "max_grad_norm": 1.0, "data_loader": audit.loader}
        engine = PrivacyEngine()
        private = engine.make_private(module=audit.model, optimizer=optimizer, **how, **options)
        audit.attach(*private)
        assert audit.model.push == 3 * how["max_grad_norm"]
        if twice:
            audit.attach(*private)
        return audit.canaries.seen.sigma

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="opacus")
        warnings.filterwarnings("ignore", module="torch")
        assert attached(SMALL.sigma) == SMALL.sigma
        assert attached(1.1 * SMALL.sigma) == 1.1 * SMALL.sigma
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert attached(SMALL.sigma / 2) == SMALL.sigma / 2
        said = " ".join(str(warning.message) for warning in caught)
        assert "optimizer adds noise with multiplier 0.3, by which the training is" in said
        with pytest.raises(ValueError, match="loader must draw Poisson samples"):
            attached(SMALL.sigma, poisson_sampling=False)
        with pytest.raises(ValueError, match="optimizer is audited already"):
            attached(SMALL.sigma, twice=True)
        odd = replace(SMALL, sample_rate=0.3)
        assert attached(odd.sigma, odd, poisson_sampling=False) == odd.sigma
        with pytest.raises(ValueError, match=r"the plan, 0\.3, got 0\.33.*poisson_sampling"):
            attached(odd.sigma, odd)


def test_help_is_short():
    """A page or two: what torch's classes bring along is not for an auditor."""
    assert len(pydoc.render_doc(oralib.canaries.opacus).splitlines()) < 150


@pytest.mark.filterwarnings("ignore")
@pytest.mark.torch
@missing
def test_the_lines_for_jax_in_the_chapter():
    """The honest training is not refuted; the other has 0.35 of its noise, which is seen."""
    names = {}
    for cell in nbformat.read(BOOK / "auditing-a-real-training.ipynb", 4).cells:
        if cell.id in ("cell-01", "cell-02", "cell-04", "jax-sum", "jax-training"):
            exec(cell.source, names)
    for way, train in (("sum", "train_with_jax"), ("examples", "train_examples_with_jax")):
        for share, status in ((1.0, "not refuted"), (0.35, "refuted")):
            canaries = names[train](share)
            audit = names["plans"][way].audit(canaries.scores, canaries.included, canaries.seen)
            assert audit.status == status
            assert canaries.noise_seen == share
