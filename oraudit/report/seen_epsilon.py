"""A calculation of the ε of the training that was seen, where it is less private than told."""

from collections.abc import Sequence

import numpy as np

from oraudit.checks import batch_rate, claim, clipped_sum, examples_twice, noise_size
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["seen_epsilon"]

#: The findings that change noise, norms or rate only, so that ε can be computed with those seen.
COMPUTABLE = {batch_rate.NAME, clipped_sum.NAME, examples_twice.NAME, noise_size.NAME}


def seen_epsilon(seen: Seen, findings: Sequence[Finding], delta: float) -> float | None:
    """Return the ε with the noise, norms and rate seen.

    None if it cannot be computed, or if nothing is less private than told.
    """
    causes = [finding for finding in findings if finding.side != "safer"]
    if not any(finding.side == "less private" for finding in causes) or seen.rates is None:
        return None
    names = {finding.name for finding in causes}
    if not names <= COMPUTABLE | {claim.NAME} or names == {claim.NAME}:
        return None
    sensitivity = 1.0
    rates = seen.rates
    for finding in causes:
        if finding.side == "side unknown":
            return None
        if finding.name == clipped_sum.NAME:
            norm = clipped_sum.largest_norm(seen)
            if norm is None:
                return None
            sensitivity *= norm
        if finding.name == examples_twice.NAME and finding.number is not None:
            sensitivity *= finding.number
        if finding.name == batch_rate.NAME and finding.number is not None:
            rates = np.minimum(rates * finding.number / rates.mean(), 1.0)
    # Rounded, so that steps with nearly the same noise are of one kind.
    shares = np.array([float(f"{share:.3g}") for share in noise_size.shares_by_step(seen)])
    shares[shares < noise_size.NO_NOISE] = 0.0
    return claim.epsilon_of(seen.sigmas * shares / sensitivity, rates, delta)
