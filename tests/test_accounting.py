"""Noise multipliers and certified ε: known numbers, the accountant itself, and what it refuses."""

import dp_accounting
import pytest
from dp_accounting import rdp

from oralib import DpSgd, certified_epsilon, noise_multiplier, plan_audit


def test_noise_multiplier(capfd):
    for epsilon, steps, sample_rate, sigma in (
        (2.0, 100, 0.1, 2.422401),
        (1.0, 100, 0.1, 4.277611),
        (8.0, 100, 0.1, 0.993727),
        (2.0, 1, 1.0, 2.149110),
        (16.0, 1, 1.0, 0.362481),
    ):
        found = noise_multiplier(epsilon, 1e-5, steps, sample_rate)
        assert found == pytest.approx(sigma, abs=3e-6)
    assert noise_multiplier(0.7, 1e-300, 10, 0.1) == pytest.approx(40.854663, abs=1e-5)
    assert noise_multiplier(5.0, 1e-5, 10**12, 1.0) == pytest.approx(952640.35, abs=0.01)
    assert capfd.readouterr() == ("", "")


def test_noise_is_rounded_to_the_safe_side():
    """Of six noise multipliers some would be rounded down to the nearest decimal."""
    for epsilon in (0.5, 1.0, 1.5, 2.5, 4.0, 8.0):
        noise = dp_accounting.GaussianDpEvent(noise_multiplier(epsilon, 1e-5, 1, 1.0))
        assert rdp.RdpAccountant().compose(noise).get_epsilon(1e-5) <= epsilon


def test_planned_noise_is_enough_by_either_accountant():
    small = {"steps": 1, "sample_rate": 1.0, "most": 8, "trials": 2, "seed": 1}
    for accountant in ("rdp", "pld"):
        plan = plan_audit(0.5, 1e-5, d=4, accountant=accountant, **small)
        spent = certified_epsilon(plan.design.dpsgd, 1e-5, accountant=accountant)
        assert 0.4999 < spent <= 0.5


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
    for sigma in (0.5, 4.0):
        one = DpSgd(10, 10, 1, 1.0, sigma)
        exact = dp_accounting.get_epsilon_gaussian(sigma, 1e-5)
        assert exact <= certified_epsilon(one, 1e-5) < exact + 1e-3
        assert certified_epsilon(one, 1e-5, accountant="rdp") > exact
        many = DpSgd(10, 10, 100, 1.0, 10 * sigma)  # the same, in a hundred steps
        assert certified_epsilon(many, 1e-5) == certified_epsilon(one, 1e-5)
    paper = DpSgd(1000, sigma=2.422402)
    assert certified_epsilon(paper, 1e-5) == pytest.approx(1.815, abs=1e-3)
    assert certified_epsilon(paper, 1e-5, accountant="rdp") == pytest.approx(2, abs=1e-5)
    # In intervals as for a single step, the losses of so little noise would take 3 GB.
    weak = DpSgd(10, 10, 10_000, 0.1, 0.1)
    assert certified_epsilon(weak, 1e-5) == pytest.approx(53132.1375, rel=1e-5)


def test_a_level_that_asks_for_more_noise_than_a_training_can_have():
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
    weak = DpSgd(10, 10, 10**6, 1e-3, 1e6)
    with pytest.raises(ValueError, match="rounding errors of the accountant 'rdp', got steps=1000"):
        certified_epsilon(weak, 1e-12, accountant="rdp")
    assert certified_epsilon(weak, 1e-12) > 0
