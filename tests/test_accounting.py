"""Noise multipliers and certified ε: known numbers, the accountant itself, and what it refuses."""

from functools import partial

import dp_accounting
import pytest
from dp_accounting import pld, rdp

from oralib import certified_epsilon, noise_multiplier
from oralib.dpsgd import accounting


def test_noise_multiplier(capfd, monkeypatch):
    """Known numbers, each in a few calls of the accountant."""
    calls, compose = [], rdp.RdpAccountant.compose
    monkeypatch.setattr(
        rdp.RdpAccountant, "compose", lambda *given: calls.append(given) or compose(*given)
    )
    for epsilon, delta, steps, sample_rate, sigma in (
        (2.0, 1e-5, 100, 0.1, 2.422402),
        (1.0, 1e-5, 100, 0.1, 4.277612),
        (8.0, 1e-5, 100, 0.1, 0.993727),
        (2.0, 1e-5, 1, 1.0, 2.149111),
        (16.0, 1e-5, 1, 1.0, 0.362481),
        (1.0, 1e-6, 5000, 0.002, 1.087439),
        (5.0, 1e-5, 10**12, 1.0, 952640.35271),
    ):
        accounting._noise_multiplier.cache_clear()
        accounting._spent.cache_clear()
        calls.clear()
        assert noise_multiplier(epsilon, delta, steps, sample_rate) == sigma
        assert len(calls) <= 8
    assert noise_multiplier(0.7, 1e-300, 10, 0.1) == 40.854663  # a guess far off
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("accountant", "levels"), [("rdp", (0.5, 1.0, 1.5, 2.5, 4.0, 8.0)), ("pld", (1.5, 4.0))]
)
def test_noise_and_level_are_inverse(accountant, levels):
    """On the safe side: by an accountant other than our own, of six some would be rounded down."""
    made = rdp.RdpAccountant if accountant == "rdp" else pld.PLDAccountant
    for epsilon in levels:
        sigma = noise_multiplier(epsilon, 1e-5, 1, 1.0, accountant=accountant)
        assert made().compose(dp_accounting.GaussianDpEvent(sigma)).get_epsilon(1e-5) <= epsilon
        for noise, enough in ((sigma, True), (sigma - 1e-6, False)):
            spent = certified_epsilon(noise, 1e-5, 1, 1.0, accountant=accountant)
            assert (spent <= epsilon) == enough
            assert spent == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.slow
def test_noise_multiplier_is_the_smallest():
    """Best orders in the middle of the accountant's, and at both ends."""
    for epsilon, steps, rate in (
        *((2.0, 1, 1.0), (4.0, 10, 0.5), (0.1, 100, 0.1), (16.0, 1000, 0.01)),
        (100.0, 10, 0.5),
    ):
        sigma = noise_multiplier(epsilon, 1e-5, steps, rate)
        for noise, enough in ((sigma, True), (sigma - 2e-6, False)):
            batch = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
            spent = rdp.RdpAccountant().compose(batch, steps).get_epsilon(1e-5)
            assert (spent <= epsilon) == enough


def test_certified_epsilon():
    """A single full step is a Gaussian mechanism, whose δ is known; PLD is exact, RDP larger."""
    by_pld = partial(certified_epsilon, accountant="pld")
    for sigma in (0.5, 4.0):
        exact = dp_accounting.get_epsilon_gaussian(sigma, 1e-5)
        assert exact <= by_pld(sigma, 1e-5, 1, 1.0) < exact + 1e-3
        assert certified_epsilon(sigma, 1e-5, 1, 1.0) > exact
        assert by_pld(10 * sigma, 1e-5, 100, 1.0) == by_pld(sigma, 1e-5, 1, 1.0)  # the same
    assert by_pld(2.422402, 1e-5, 100, 0.1) == pytest.approx(1.815, abs=1e-3)
    # In intervals as for a single step, the losses of so little noise would take 3 GB.
    assert by_pld(0.1, 1e-5, 10_000, 0.1) == pytest.approx(53132.1375, rel=1e-5)


def test_levels_beyond_all_noise_are_refused():
    """In some of these the search for it would have no end."""
    for given in ((0.01, 1e-8, 10_000, 0.1), (0.01, 1e-15, 1, 1.0), (1.0, 1e-5, 10**14, 0.5)):
        message = r"epsilon and delta must ask for .* in \[0.001, 1e\+06\].*, which ask for more"
        with pytest.raises(ValueError, match=message):
            noise_multiplier(*given)


@pytest.mark.slow
def test_rounding_errors_of_an_accountant_are_no_privacy():
    """It takes ε for 0 where a divergence is negative; so small an ε needs far more noise."""
    with pytest.raises(ValueError, match=r"the accountant cannot tell .* got epsilon=1e-09"):
        noise_multiplier(1e-9, 1e-20, 1, 1e-3)
    with pytest.raises(ValueError, match="rounding errors of the accountant 'rdp', got steps=1000"):
        certified_epsilon(1e6, 1e-12, 10**6, 1e-3)
    assert certified_epsilon(1e6, 1e-12, 10**6, 1e-3, accountant="pld") > 0
