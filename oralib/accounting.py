"""Accountants: how much noise a training run with DP-SGD needs, and which ε its noise gives.

Both come from dp-accounting, for Poisson-sampled batches and neighbours that add or remove one
element: ``"rdp"``, which follows Rényi divergences, and ``"pld"``, which follows the law of the
privacy loss itself.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil, sqrt
from typing import Any

from oralib import _check
from oralib.dpsgd.setting import SIGMA_RANGE, DpSgd

__all__ = ["ACCOUNTANTS", "certified_epsilon", "noise_multiplier"]

#: The accountants of :func:`certified_epsilon`.
ACCOUNTANTS = ("pld", "rdp")

#: How far a noise multiplier may be from the smallest one, before it is rounded up.
_TOLERANCE = 1e-9


def noise_multiplier(epsilon: float, delta: float, steps: int, sample_rate: float) -> float:
    """The smallest noise multiplier that makes DP-SGD (ε, δ)-DP, by an RDP accountant.

    It is rounded up to six decimals, so that it is the same number on every machine.

    Parameters
    ----------
    epsilon, delta : float
        The ε of (ε, δ)-DP, in (0, 1000], and its δ, in (0, 1).
    steps, sample_rate
        Of the training, as in :class:`oralib.DpSgd`; the rate is at least 1e-12.

    Examples
    --------
    >>> round(noise_multiplier(2.0, 1e-5, 100, 0.1), 4)
    2.4224
    """
    return _noise_multiplier(
        _check.real("epsilon", epsilon, 0, 1000, interval="(]"),
        _check.real("delta", delta, 0, 1, interval="()"),
        _check.integer("steps", steps, 1),
        _check.real("sample_rate", sample_rate, 1e-12, 1),  # below this the accountant fails
    )


@lru_cache(maxsize=1024)
def _noise_multiplier(epsilon: float, delta: float, steps: int, sample_rate: float) -> float:
    from dp_accounting import calibrate_dp_mechanism, rdp

    def spent(sigma: float) -> Any:
        return rdp.RdpAccountant().compose(_event(sigma, steps, sample_rate))

    given = f"got epsilon={epsilon:g}, delta={delta:g}, steps={steps}, sample_rate={sample_rate:g}"
    least, most = SIGMA_RANGE
    limits = f"epsilon and delta must ask for a noise multiplier in [{least:g}, {most:g}]"
    with _quiet_accountant():
        if spent(most).get_epsilon(delta) > epsilon:  # the search would have no end
            raise ValueError(f"{limits}, {given}, which ask for more")
        event = partial(_event, steps=steps, sample_rate=sample_rate)
        found = calibrate_dp_mechanism(rdp.RdpAccountant, event, epsilon, delta, tol=_TOLERANCE)
        sigma = float(found)
        if sigma < least:
            raise ValueError(f"{limits}, {given}, which ask for {sigma:g}")
        if _is_lost(spent(sigma)):
            raise ValueError(f"{limits}; the accountant cannot tell for numbers so small, {given}")
    return ceil(sigma * 1e6) / 1e6


def certified_epsilon(dpsgd: DpSgd, delta: float, *, accountant: str = "pld") -> float:
    """The ε for which an accountant certifies a training run as (ε, δ)-DP.

    Parameters
    ----------
    dpsgd : DpSgd
        The training; its n and d do not matter.
    delta : float
        The δ of (ε, δ)-DP, in [1e-12, 1).
    accountant : str
        ``"pld"``, which is exact except for a discretization error on the safe side, of less than
        0.001 (more at an ε of a hundred and above); or ``"rdp"``, which is larger, and which
        :func:`noise_multiplier` uses, as the paper does.

    Examples
    --------
    >>> from oralib import DpSgd
    >>> training = DpSgd(n=1000, sigma=noise_multiplier(2.0, 1e-5, 100, 0.1))
    >>> round(certified_epsilon(training, 1e-5), 3)
    1.815
    >>> round(certified_epsilon(training, 1e-5, accountant="rdp"), 3)
    2.0
    """
    _check.instance("dpsgd", dpsgd, DpSgd, "DpSgd(n=1000)")
    delta = _check.real("delta", delta, 1e-12, 1, interval="[)")
    _check.one_of("accountant", accountant, ACCOUNTANTS)
    _check.real("the sample_rate of dpsgd", dpsgd.sample_rate, 1e-12, 1)
    return _certified_epsilon(dpsgd.steps, dpsgd.sample_rate, dpsgd.sigma, delta, accountant)


@lru_cache(maxsize=256)
def _certified_epsilon(
    steps: int, sample_rate: float, sigma: float, delta: float, accountant: str
) -> float:
    from dp_accounting import pld, rdp

    with _quiet_accountant():
        if accountant == "rdp":
            spent = rdp.RdpAccountant().compose(_event(sigma, steps, sample_rate))
            if _is_lost(spent):
                raise ValueError(
                    "dpsgd must show more than the rounding errors of the accountant 'rdp', got "
                    f"steps={steps}, sample_rate={sample_rate:g} and sigma={sigma:g}; "
                    "accountant='pld' can compute it"
                )
            return float(spent.get_epsilon(delta))
        if sample_rate == 1:  # the same as one step with less noise
            steps, sigma = 1, sigma / sqrt(steps)
        # The losses of a step, and of all of them, have to fit into tables.
        spread = sqrt(sample_rate * (1 - sample_rate) * steps) * max(0.0, 0.5 / sigma**2 - 2)
        together = max(spread, sample_rate * sqrt(steps) / sigma)
        interval = 1e-4 * max(1.0, 1 / sigma**2 / 16, together / 16)
        table = pld.PLDAccountant(value_discretization_interval=interval)
        return float(table.compose(_event(sigma, steps, sample_rate)).get_epsilon(delta))


def _is_lost(accountant: Any) -> bool:
    """Whether an RDP accountant sees only rounding errors.

    Where they make a divergence negative, it takes ε to be 0, whatever δ is. With a δ as small as
    this, it never does so for another reason.
    """
    return bool(accountant.get_epsilon(1e-300) == 0)


def _event(sigma: float, steps: int, sample_rate: float) -> Any:
    """The training as a dp-accounting event."""
    import dp_accounting  # here, because it takes a second to import and few need it

    step = dp_accounting.GaussianDpEvent(sigma)
    batch = dp_accounting.PoissonSampledDpEvent(sample_rate, step)
    return dp_accounting.SelfComposedDpEvent(batch, steps)


@contextmanager
def _quiet_accountant() -> Iterator[None]:
    """Silence warnings about orders that are left out: the result is still an upper bound."""
    logger = logging.getLogger("absl")

    def is_error(record: logging.LogRecord) -> bool:  # one per call, since threads run at once
        return record.levelno >= logging.ERROR

    logger.addFilter(is_error)
    try:
        yield
    finally:
        logger.removeFilter(is_error)
