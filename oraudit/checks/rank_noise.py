"""Where all ranks have the same weights, one of them adds the noise.

Exact: the ranks that add noise. Several are a finding only where the noise of all ranks together
has not the told size, and then its cause: ranks may also share the noise between them.
"""

import numpy as np
from numpy.typing import NDArray

from oraudit.checks import noise_size
from oraudit.checks.presence import NO_NOISE
from oraudit.findings import Finding
from oraudit.records import Ranks, Seen

__all__ = ["adds_noise", "check"]

NAME = "rank-noise"


def check(seen: Seen) -> list[Finding]:
    ranks = seen.ranks
    if ranks is None or not ranks.shared:
        return []
    adding = adds_noise(ranks).sum(1)
    if adding.max(initial=0) < 2 or not (sizes := noise_size.check(seen)):
        return []
    first = int(np.argmax(adding >= 2)) + 1
    share = sizes[0].number or 0.0
    text = (
        f"{adding.max()} of {ranks.number} ranks add noise, where one should: together it is "
        f"{share:.3g} of what the accountant was told"
    )
    number = float(adding.max())
    return [Finding(NAME, text, sizes[0].side, step=first, number=number, limit=1.0)]


def adds_noise(ranks: Ranks) -> NDArray[np.bool_]:
    """Return which ranks add noise in which steps, T x W."""
    return np.nan_to_num(np.abs(ranks.noise)).max(2, initial=0.0) > NO_NOISE
