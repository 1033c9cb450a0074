"""Accountants: how much noise a training run with DP-SGD needs, and which ε its noise gives.

There are two, from dp-accounting, each for Poisson-sampled batches and for adding or removing one
element: ``"rdp"``, which follows Rényi divergences, as the paper does; and ``"pld"``, which follows
the law of the privacy loss itself, and is exact except for a discretization error on the safe side,
of less than 0.001 (more at an ε of a hundred and above).
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import inf, isnan, log, log1p, nan, sqrt
from typing import Any

from oralib.ground import arguments
from oralib.ground.solve import largest_passing
from oralib.ground.types import ACCOUNTANTS, Accountant

__all__ = ["SIGMA_RANGE", "certified_epsilon", "coarseness", "composed_epsilon", "event"]
__all__ += ["noise_multiplier", "quiet_accountant"]

#: The smallest and the largest noise multiplier of a training run.
SIGMA_RANGE = 1e-3, 1e6

#: The cells of :func:`composed_epsilon` are this many times as wide as those of one kind of steps.
WIDER = 20


def noise_multiplier(
    epsilon: float, delta: float, steps: int, sample_rate: float, *, accountant: Accountant = "rdp"
) -> float:
    """Return the smallest noise multiplier for which an accountant certifies (ε, δ)-DP.

    It has six decimals, so that it is the same number on every machine. It is the inverse of
    :func:`certified_epsilon`.

    Parameters
    ----------
    epsilon : float
        The ε of the claim, in (0, 1000].
    delta, steps, sample_rate, accountant
        As in :func:`certified_epsilon`.

    Examples
    --------
    >>> round(noise_multiplier(2.0, 1e-5, 100, 0.1), 4)
    2.4224
    """
    epsilon = arguments.real("epsilon", epsilon, 0, 1000, interval="(]")
    return _noise_multiplier(epsilon, *_checked(delta, steps, sample_rate, accountant))


@lru_cache(maxsize=1024)
def _noise_multiplier(
    epsilon: float, delta: float, steps: int, sample_rate: float, accountant: Accountant
) -> float:
    run = delta, steps, sample_rate, accountant

    def excess(x: float) -> float:
        """Return at most 0 if the noise -x / 1e6 is enough.

        It is nearly a straight line, as ε is between one over the noise and one over its square.
        """
        spent = _spent(-x / 1e6, *run) if x < 0 else inf
        return 1 - sqrt(epsilon / spent) if spent > 0 else -inf

    # Many small steps are like one with Gaussian noise (the central limit theorem).
    mu = sqrt(2) * epsilon / (sqrt(epsilon - log(delta)) + sqrt(-log(delta)))
    smallest, largest = SIGMA_RANGE
    guess = sqrt(steps) / max(mu, 1e-9)
    if sample_rate < 1:
        guess = 1 / sqrt(max(log1p((mu / sample_rate) ** 2 / steps), 1e-18))
        # With few elements in a batch, the moment of this order must not be too large.
        guess = max(guess, sqrt((1 - log(delta) / epsilon) / (-2 * log(sample_rate))))
    guess = min(guess, largest)
    # Multiples of 1e-6, of which the largest negative one is the least noise.
    sigma = -largest_passing(excess, -largest * 1e6, 0.0, guess=-guess * 1e6, precision=1.0) / 1e6
    setting = f"{epsilon=:g}, {delta=:g}, {steps=}, {sample_rate=:g}"
    if sigma == largest and _spent(sigma, *run) > epsilon:
        raise ValueError(
            f"epsilon and delta must ask for a noise multiplier in [{smallest:g}, {largest:g}], "
            f"got {setting}, which ask for more"
        )
    if sigma < smallest:
        raise ValueError(
            f"epsilon and delta must ask for a noise multiplier in [{smallest:g}, {largest:g}], "
            f"got {setting}, which ask for {sigma:g}"
        )
    if isnan(_spent(sigma, *run)):
        raise ValueError(
            f"epsilon and delta must ask for a noise multiplier in [{smallest:g}, {largest:g}]; "
            f"the accountant cannot tell for numbers so small, got {setting}"
        )
    return sigma


def certified_epsilon(
    sigma: float, delta: float, steps: int, sample_rate: float, *, accountant: Accountant = "rdp"
) -> float:
    """Return the ε for which an accountant certifies DP-SGD as (ε, δ)-DP, given its noise σ.

    Parameters
    ----------
    sigma, steps, sample_rate
        The training, as in :class:`oralib.DpSgd`; the rate is at least 1e-12.
    delta : float
        The δ of (ε, δ)-DP, in (0, 1), and at least 1e-12 with ``"pld"``.
    accountant : str
        ``"rdp"``, as in the paper; or ``"pld"``, by which ε is smaller.

    Examples
    --------
    >>> round(certified_epsilon(2.422402, 1e-5, 100, 0.1), 3)
    2.0
    >>> round(certified_epsilon(2.422402, 1e-5, 100, 0.1, accountant="pld"), 3)
    1.815
    """
    sigma = arguments.real("sigma", sigma, *SIGMA_RANGE)
    epsilon = _spent(sigma, *_checked(delta, steps, sample_rate, accountant))
    if isnan(epsilon):
        raise ValueError(
            "sigma must show more than the rounding errors of the accountant 'rdp', got "
            f"steps={steps}, sample_rate={sample_rate:g} and sigma={sigma:g}; "
            "accountant='pld' can compute it"
        )
    return epsilon


def composed_epsilon(kinds: Sequence[tuple[float, float, int]], delta: float) -> float:
    """Return the ε of a training whose steps need not be alike, by the accountant ``"pld"``.

    It takes less time than :func:`certified_epsilon`: its cells are wider, and its error is some
    0.001 where that of the other one is far smaller.

    Parameters
    ----------
    kinds
        The noise multiplier, the sample rate and the number of steps of each kind.
    delta
        The δ of (ε, δ)-DP, as in :func:`certified_epsilon`.

    Examples
    --------
    >>> round(composed_epsilon([(2.422402, 0.1, 50), (2.422402, 0.1, 50)], 1e-5), 3)
    1.815
    >>> round(composed_epsilon([(2.422402, 0.1, 50), (1.2, 0.1, 50)], 1e-5), 3)
    3.9
    """
    from dp_accounting import pld

    for sigma, sample_rate, steps in kinds:
        arguments.real("sigma", sigma, *SIGMA_RANGE)
        _checked(delta, steps, sample_rate, "pld")
    interval = WIDER * 1e-4 * max(coarseness(*kind) for kind in kinds)
    with quiet_accountant():
        table = pld.PLDAccountant(value_discretization_interval=interval)
        for sigma, sample_rate, steps in kinds:
            table.compose(event(sigma, steps, sample_rate))
        return float(table.get_epsilon(delta))


def _checked(
    delta: float, steps: int, sample_rate: float, accountant: Accountant
) -> tuple[float, int, float, Accountant]:
    """Return the arguments of both functions that call an accountant, checked."""
    arguments.one_of("accountant", accountant, ACCOUNTANTS)
    if accountant == "pld":
        delta = arguments.real("delta", delta, 1e-12, 1, interval="[)")
    else:
        delta = arguments.real("delta", delta, 0, 1, interval="()")
    steps = arguments.integer("steps", steps, 1)
    sample_rate = arguments.real("sample_rate", sample_rate, 1e-12, 1)  # below, accountants fail
    return delta, steps, sample_rate, accountant


@lru_cache(maxsize=256)
def _spent(
    sigma: float, delta: float, steps: int, sample_rate: float, accountant: Accountant
) -> float:
    """Return the ε of a training; nan if an accountant sees only rounding errors."""
    from dp_accounting import pld, rdp

    with quiet_accountant():
        if accountant == "rdp":
            spent = rdp.RdpAccountant().compose(event(sigma, steps, sample_rate))
            # The accountant takes ε to be 0, whatever δ is, if rounding errors make a divergence
            # negative. With a δ as small as 1e-300, ε is 0 for no other reason.
            return float(spent.get_epsilon(delta)) if spent.get_epsilon(1e-300) > 0 else nan
        if sample_rate == 1:  # the same as one step with less noise
            sigma /= sqrt(steps)
            steps = 1
        interval = 1e-4 * coarseness(sigma, sample_rate, steps)
        table = pld.PLDAccountant(value_discretization_interval=interval)
        return float(table.compose(event(sigma, steps, sample_rate)).get_epsilon(delta))


def coarseness(sigma: float, sample_rate: float, steps: int) -> float:
    """Return the factor, 1 or more, by which a table needs wider cells to hold all losses."""
    spread = sqrt(sample_rate * (1 - sample_rate) * steps) * max(0.0, 0.5 / sigma**2 - 2)
    of_all_steps = max(spread, sample_rate * sqrt(steps) / sigma)
    of_one_step = 1 / sigma**2
    return max(1.0, of_one_step / 16, of_all_steps / 16)


def event(sigma: float, steps: int, sample_rate: float) -> Any:
    """Return the training as an event of dp-accounting."""
    import dp_accounting  # here, because it takes a second to import and few need it

    step = dp_accounting.GaussianDpEvent(sigma)
    batch = dp_accounting.PoissonSampledDpEvent(sample_rate, step)
    return dp_accounting.SelfComposedDpEvent(batch, steps)


@contextmanager
def quiet_accountant() -> Iterator[None]:
    """Silence warnings about orders that are left out: the result is still an upper bound."""
    logger = logging.getLogger("absl")

    def is_error(record: logging.LogRecord) -> bool:  # one per call, since threads run at once
        return record.levelno >= logging.ERROR

    logger.addFilter(is_error)
    try:
        yield
    finally:
        logger.removeFilter(is_error)
