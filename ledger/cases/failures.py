"""The probability that a bound exceeds ε: the worst case on small tables, and a bad response."""

from functools import cache
from typing import Any

import numpy as np

from ledger.cases.counts import critical_betas, exceeds, failure
from ledger.cases.games import threshold_law
from ledger.cases.small_channels import private_tables
from ledger.cases.worst_cases import best_mean
from orabook.studies import SelfMutingResponse
from oralib import Channel, channel
from oralib.bounds import epsilon_lower_bound, p
from oralib.ground.types import Feedback

__all__ = ["critical_failures", "muting_failure", "worst_failure"]


@cache
def worst_failure(name: str, beta: float, feedback: str) -> float:
    """The largest probability, of all guessers, that the bound exceeds the ε of a private table."""
    table = private_tables()[name]
    return best_mean(table, exceeds(table.n, table.epsilon, beta), feedback=feedback)


def critical_failures(feedback: str, failure_probability: float) -> Any:
    """(name, worst failure over all guessers at failure_probability · β, β) on private tables."""
    for name, table in private_tables().items():
        betas = {b for r in (1, 2, 3) for b in critical_betas(min(r, table.n), p(table.epsilon))}
        for beta in sorted({*betas, 0.1, 0.3, 0.55, 0.65, 0.8}):
            tried_beta = round(failure_probability * beta, 12)
            yield f"{name}, β = {beta:.3g}", worst_failure(name, tried_beta, feedback), beta


@cache
def _muting_response() -> tuple[Channel, float]:
    """The table of a response of nine elements that can switch itself off, and its rate.

    The line is where v of r right guesses refute, by the bound at β = 0.1, an ε of 0.0175: the
    privacy level of the table to four digits.
    """
    n = 9
    rate = 0.004995
    v, r = np.indices((n + 1, n + 1))
    bound = epsilon_lower_bound(np.minimum(v, r), r, beta=0.1)
    refuting = np.where((bound > 0.0175) & (v <= r), v, n + 1).min(axis=0)
    line = tuple(int(c) for c in refuting[1:])
    return channel(SelfMutingResponse(rate, line), n), rate


@cache
def muting_failure(feedback: Feedback) -> tuple[float, float]:
    """(ε of the response that can switch itself off, P[the bound at β = 0.1 exceeds it]).

    The guesser has one threshold and a fixed order.
    """
    table, rate = _muting_response()
    law = threshold_law(table, rate, feedback)
    return table.epsilon, failure(law, table.epsilon, 0.1)
