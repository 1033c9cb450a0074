"""What canaries show of trainings like published ones: short cuts against the long way."""

from math import isnan

import numpy as np
import pytest

from orabook.studies import published
from orabook.studies.published import best_power, largest_share_found
from oralib import Training, TrainingTest, epsilon_lower_bound

STATED = Training(2.661485, published.SAMPLE_RATE, published.STEPS)


@pytest.mark.parametrize("excess", [0.0, 0.1, 0.4])
def test_largest_bound_is_that_of_all_thresholds(excess, monkeypatch):
    monkeypatch.setattr(published, "DELTA", 1e-3)  # so that bounds for δ = 0 are another order
    rng = np.random.default_rng(1)
    guesses = np.arange(1, 601)
    for _ in range(4):
        right = np.cumsum(rng.random(600) < 0.5 + excess * np.exp(-guesses / 200))
        every = epsilon_lower_bound(right, guesses, n=600, delta=published.DELTA)
        assert published._largest_bound(right, guesses) == pytest.approx(every.max(), abs=1e-9)


@pytest.mark.slow
def test_largest_share_found_is_the_last_one():
    needed = {k: TrainingTest(STATED, n=5000, guesses=k).needed for k in (820, 1300)}
    share = largest_share_found(STATED, 5000, needed)
    found, missed = (best_power(STATED, 5000, x, needed)[1] for x in (share, share + 0.01))
    assert missed < published.POWER <= found
    # The better number of guesses counts.
    each = {best_power(STATED, 5000, share, {k: v})[1]: k for k, v in needed.items()}
    assert best_power(STATED, 5000, share, needed) == (each[max(each)], max(each))


def test_claims_that_nothing_refutes_have_no_share():
    assert isnan(largest_share_found(STATED, 5000, {100: None, 200: None}))
    with pytest.raises(ValueError, match=r"30% of the noise"):
        largest_share_found(STATED, 5000, {5: 6})
