"""Whether a training looks like the stated one: levels that hold, and bugs that are seen."""

import numpy as np
import pytest
from scipy import stats

from oralib import DpSgd, conformity
from oralib.__main__ import main
from oralib.dpsgd import noisy_gradients, run_dpsgd

STATED = DpSgd(n=120, d=40, steps=30, sample_rate=0.2, sigma=1.0)


def observed(dpsgd, seed):
    rng = np.random.default_rng(seed)
    included = rng.random(dpsgd.n) < 0.5
    return included, noisy_gradients(run_dpsgd(dpsgd, included, rng))


def assert_standard_normal(found):
    for name in ("signal", "spread", "steps"):
        values = [getattr(each, name) for each in found]
        assert stats.kstest(values, "norm").pvalue > 1e-4, name


def test_the_stated_training_has_standard_normal_statistics():
    found = [conformity(STATED, y, coins) for coins, y in (observed(STATED, i) for i in range(800))]
    assert_standard_normal(found)
    assert np.mean([each.p_value < 0.05 for each in found]) < 0.05 + 3 * np.sqrt(0.05 / 800)


@pytest.mark.parametrize("canaries", [1, 2, 5])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_mean_0_and_variance_1_by_quadrature(canaries, rate):
    """One coordinate, one step and little noise, so that the batch matters most."""
    sigma = 0.3
    stated, coins = DpSgd(canaries, 1, 1, rate, sigma=sigma), np.ones(canaries, dtype=bool)
    y, step = np.linspace(-3, canaries + 3, 3001, retstep=True)
    count = np.arange(canaries + 1)
    weight = stats.norm.pdf(y[:, None], count, sigma) @ stats.binom.pmf(count, canaries, rate)
    found = [conformity(stated, [[each]], coins) for each in y]
    for values in ([each.signal for each in found], [each.spread for each in found]):
        assert step * weight @ values == pytest.approx(0, abs=1e-6)
        assert step * weight @ np.square(values) == pytest.approx(1, abs=1e-6)


def test_canaries_that_hop_have_them_too():
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        included = rng.random(120) < 0.5
        places = np.array([rng.permutation(np.arange(120) % 40) for _ in range(30)])
        places[20:, :30] = -1  # dropped
        y = rng.standard_normal((30, 40))
        for t in range(30):
            drawn = places[t, included & (rng.random(120) < 0.2)]
            y[t] += np.bincount(drawn[drawn >= 0], minlength=40)
        found.append(conformity(STATED, y, included, places=places))
    assert_standard_normal(found)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda y: y * 0.8, "spread"),
        (lambda y: y * 1.2, "spread"),
        (lambda y: np.repeat(y[::2], 2, axis=0), "steps"),
        (lambda y: y + 0.3, "signal"),
    ],
)
def test_what_each_statistic_sees(change, name):
    coins, y = observed(STATED, 1)
    found = conformity(STATED, change(y), coins)
    assert abs(getattr(found, name)) > 3.5
    assert found.p_value < 0.01


def test_a_wrong_sample_rate_is_seen():
    coins, y = observed(DpSgd(120, 40, 30, 0.3, sigma=1.0), 1)
    assert conformity(STATED, y, coins).signal > 4


def test_shuffled_batches_are_told_from_poisson_ones_where_the_noise_is_small():
    """No canary is in two batches of an epoch: neighbours have the covariance -q² m, not 0."""
    for claim in (8.0, 1.0):
        stated = DpSgd.calibrated(claim, 1e-5, n=4000)
        for seed in range(4):
            included, honest = observed(stated, seed)
            rng = np.random.default_rng([seed, 1])
            shuffled = rng.normal(scale=stated.sigma, size=(100, 1000))
            for step, y in enumerate(shuffled):
                if step % 10 == 0:
                    batch = rng.permutation(np.arange(4000) % 10)
                drawn = np.flatnonzero(included & (batch == step % 10))
                y += np.bincount(drawn % 1000, minlength=1000)
            found = conformity(stated, shuffled, included)
            ones = np.bincount(np.flatnonzero(included) % 1000, minlength=1000)
            pull = (0.01 * ones / (stated.sigma**2 + 0.09 * ones)).sum()
            assert abs(found.steps + 90 * pull / np.sqrt(99_000)) < 3.5
            assert (found.p_value < 0.01) == (claim == 8)
            assert conformity(stated, honest, included).p_value > 0.01


def test_the_command_line(tmp_path, capsys):
    rng = np.random.default_rng(1)
    included = rng.random(100) < 0.5
    real = DpSgd(n=100, d=50, steps=100, sample_rate=0.1, sigma=1.0)
    gradients = -np.diff(run_dpsgd(real, included, rng), axis=0)
    np.savez(tmp_path / "released.npz", gradients=gradients, included=included)
    words = ["conformity", str(tmp_path / "released.npz"), "--sample-rate", "0.1", "--sigma"]
    assert main([*words, "1.0"]) == 0
    said = capsys.readouterr().out
    assert "this training looks like the stated one" in said
    assert "none in the file: canary i is taken to stay on coordinate i % 50" in said
    assert main([*words, "2.0"]) == 1
    assert "does not look like the stated one" in capsys.readouterr().out
    np.savez(tmp_path / "released.npz", included=included)
    assert main([*words, "1.0"]) == 2
    assert "must be an .npz file with the arrays gradients" in capsys.readouterr().err
