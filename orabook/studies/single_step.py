"""The exact law of one full-batch step of DP-SGD, audited without feedback."""

import numpy as np
from scipy import special

from orabook.laws import NEGLIGIBLE_PROBABILITY, Law, law_of
from oralib import DpSgd
from oralib._binomial import log_pmfs
from oralib.dpsgd.single_step import guess_distances


def single_step_law(dpsgd: DpSgd, tau: float) -> Law:
    """One full-batch step of DP-SGD, plain auditing with threshold tau.

    >>> law = single_step_law(DpSgd(n=4000, steps=1, sample_rate=1.0, sigma=1.0), tau=1.0)
    >>> round(float(law.probability @ law.v) / float(law.probability @ law.r), 4)
    0.8011
    """
    s, d = dpsgd.per_coordinate, dpsgd.used_coordinates
    distance = guess_distances(dpsgd, tau, last=True)[-1]
    ones = np.arange(s + 1)
    weight = np.exp(log_pmfs(ones, s, 0.5))
    high = weight * special.ndtr((ones - s / 2 - distance) / dpsgd.sigma)
    low = weight * special.ndtr((s / 2 - distance - ones) / dpsgd.sigma)
    right = high + low[::-1]  # of a guessed coordinate, for 0, ..., s right guesses
    guessed = right.sum()
    counts = np.exp(log_pmfs(np.arange(d + 1), d, guessed))
    law, parts = np.ones(1), []
    for coordinates, probability in enumerate(counts):
        if probability > NEGLIGIBLE_PROBABILITY:
            v = np.arange(len(law))
            parts.append((v, np.full(len(v), s * coordinates), probability * law))
        elif coordinates > d * guessed:
            break
        if guessed > 0:
            law = np.convolve(law, right / guessed)
    v, r, probabilities = (np.concatenate(column) for column in zip(*parts, strict=True))
    return law_of(v, r, probabilities, dpsgd.n)
