"""No example is on two ranks in the same step.

Exact: the fingerprints of the ranks' parts of each batch. Limit: a hundredth of all examples drawn,
as the data may have some equal ones.
"""

from oraudit.checks.poisson_batches import MOST_EQUAL
from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "rank-data"


def check(seen: Seen) -> list[Finding]:
    ranks = seen.ranks
    if ranks is None or (ranks.twice < 0).any():
        return []
    repeated = int(ranks.twice.sum())
    drawn = int(ranks.sizes.sum())
    if repeated <= MOST_EQUAL * drawn:
        return []
    steps = int((ranks.twice > 0).sum())
    text = (
        f"ranks draw from the same data: in {steps} of {seen.steps} steps an example is on two of "
        f"them, {repeated} of {drawn} in all, and it adds up to 2 C there"
    )
    limit = MOST_EQUAL
    return [Finding(NAME, text, "less private", number=repeated / drawn, limit=limit)]
