"""The rows of an experiment: mean bounds of many audits, with standard errors."""

from collections.abc import Mapping
from contextlib import suppress
from math import nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oralib.bounds import Counts, epsilon_estimate, epsilon_lower_bound, valid_lower_bound
from oralib.ground import arguments

__all__ = ["summarise", "summary"]


def summarise(
    counts: Counts | Mapping[str, Counts], *, beta: float = 0.05, delta: float = 0.0
) -> pd.DataFrame:
    """Summarise many trials: mean bounds, estimation and efficacy, with a row for each audit.

    Parameters
    ----------
    counts : Counts or dict
        The counts of an audit, or of several by name; the names become the index.
    beta, delta : float
        The bounds hold with probability at least 1 - beta, for this δ.

    Returns
    -------
    DataFrame
        ``bound`` is the mean of ε'_β(v, r) as in the paper, 0 for a trial without guesses. For
        δ > 0 it is proved only for a number of guesses fixed in advance. ``valid`` is the mean of
        :func:`oralib.valid_lower_bound`, the bound that is proved for the way the audit was set
        up; nan where the library has none. ``estimation`` is the mean of p_inv(v / r). It is inf
        if some trial has v = r, and nan if some trial has no guesses, or if one has v = r and
        another v = 0; ``all_right`` and ``no_guesses`` count these trials. ``efficacy`` is the mean
        of v / r; nan if some trial has no guesses. Columns that end in ``_se`` are standard errors.
        ``guesses`` is the mean of r, and ``trials`` the number of trials.

    Examples
    --------
    >>> few, many = Counts([7, 8], [10, 10], n=100), Counts([70, 80], [100, 100], n=100)
    >>> summarise({"few": few, "many": many})[["bound", "efficacy"]].round(3)
          bound  efficacy
    few   0.000      0.75
    many  0.715      0.75
    """
    audits = counts if isinstance(counts, Mapping) else {0: counts}
    if not audits:
        raise ValueError("counts must have at least one entry, got counts={}")
    for audit in audits.values():
        arguments.instance("counts", audit, Counts, "Counts(75, 100, n=1000)")
    rows = [summary(audit, beta, delta) for audit in audits.values()]
    return pd.DataFrame(rows, index=list(audits))


def summary(counts: Counts, beta: float, delta: float, *, proved: bool = True) -> dict[str, Any]:
    """Return the row of one audit; the valid bound is computed only if ``proved``, and else nan."""
    bound = epsilon_lower_bound(counts.v, counts.r, beta=beta, delta=delta, n=counts.n)
    valid = np.full(counts.trials, np.nan)
    if proved:
        with suppress(ValueError):  # no bound is known for this kind of audit
            valid = valid_lower_bound(counts, beta=beta, delta=delta)
    return {
        **_mean("bound", bound),
        **_mean("valid", valid),
        **_mean("estimation", epsilon_estimate(counts.v, counts.r)),
        **_mean("efficacy", counts.accuracy),
        "guesses": float(counts.r.mean()),
        "all_right": int(((counts.v == counts.r) & (counts.r > 0)).sum()),
        "no_guesses": int((counts.r == 0).sum()),
        "trials": counts.trials,
    }


def _mean(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    defined = len(values) > 1 and np.isfinite(values).all()
    error = float(values.std(ddof=1)) / sqrt(len(values)) if defined else nan
    with np.errstate(invalid="ignore"):  # the mean of inf and -inf is nan
        return {name: float(values.mean()), f"{name}_se": error}
