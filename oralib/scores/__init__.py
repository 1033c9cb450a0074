"""An audit of a training that has been run: scores or guesses of canaries in, bounds on ε out.

Each canary was included by a fair coin of its own, the training was run once, and somebody has
given each canary a score that is high if it seems to have been included. Some of the canaries are
guessed, by their scores alone; their coins say how many of the guesses are right. What that proves
depends on how the number of guesses came about:

=======================  =========================================  ==============================
number of guesses        what it is                                 bound for (ε, δ)-DP
=======================  =========================================  ==============================
``guesses=200``          fixed before scores were seen              the exact p-value at β
``grid=(50, 100, 200)``  each of m, fixed before scores were seen   the exact p-value at β / m
``split=0.2``            chosen on a random fifth of the canaries;  the split p-value at β, with
                         the others are audited                     the number of the others as n
=======================  =========================================  ==============================

The largest bound over many numbers of guesses without a correction is no bound, and not offered.

**Why a split needs another p-value.** That the coins of a few canaries are revealed costs nothing:
given these coins, the training is (ε, δ)-DP in the others. But their scores come from the same
output as all scores, so that the number that is chosen on them is left to the output. For δ = 0
that makes no difference. For δ > 0 the exact p-value needs a number that is fixed.

**What is not covered.** To include exactly half of the canaries is another design: its coins depend
on each other, and no bound here is valid for it. Coins of 40 or more canaries that just balance are
taken for that design, unless ``coins="independent"`` says that it was chance. Nor may anything but
the output of the training enter the scores that depends on the coins, nor may the seed, the number
of guesses or the sign of the scores be chosen by what comes out.

**What an audit could have seen.** Its best outcome is that all guesses are right, and the bound for
that is the most that it could have shown. A claim above it is not tested by the audit.
"""

from oralib.scores.audit import (
    audit_counts,
    audit_guesses,
    audit_scores,
    bounds_by_beta,
    bounds_by_guesses,
)
from oralib.scores.result import UNFAIR, ScoreAudit

__all__ = ["UNFAIR", "ScoreAudit", "audit_counts", "audit_guesses", "audit_scores"]
__all__ += ["bounds_by_beta", "bounds_by_guesses"]
