"""An audit of a finished training run: scores or guesses of canaries in, bounds on ε out.

A separate fair coin decided whether each canary was included, the training was run once, and each
canary has a score that is high if it seems to have been included. Some canaries are guessed
from their scores alone; their coins say how many of the guesses are right. What that proves depends
on how the number of guesses was chosen:

=============================  ======================================  =========================
number of guesses              what it is                              bound for (ε, δ)-DP
=============================  ======================================  =========================
``guesses=200``                fixed before scores were seen           the exact p-value at β
``grid=(50, 100, 200)``        each of m, fixed before scores were     the exact p-value at β / m
                               seen
``split=0.2``                  chosen on a random fifth of the         the p-value for any r at
                               canaries; the others, n, are audited    β and n
=============================  ======================================  =========================

The largest bound over many numbers of guesses, without a correction, is not a bound.

**Why a split needs another p-value.** Given the coins of a few canaries, the training is (ε, δ)-DP
in the others, so revealing these coins costs nothing. But their scores come from the same output as
all scores, so the number of guesses chosen on them depends on the output. For δ = 0 that makes no
difference. For δ > 0 the exact p-value needs a fixed number.

**Coins that balance.** If exactly half of the canaries are included by arrangement, their coins
depend on each other, and the bounds above are not valid. ``coins="balanced"`` gives one that is.
If exactly half of 40 or more canaries are in, the audit asks whether that was arranged.

**What is not checked.** Scores may depend on the coins only through the output of the training,
and nobody may choose the seed, the number of guesses or the sign of the scores by the result.

**What an audit could have shown.** At best all guesses are right. The bound for that outcome is the
most that the audit could have shown, and a claim above it is not tested.
"""

from oralib.scores.audit import audit_counts, audit_guesses, audit_scores
from oralib.scores.result import UNFAIR, ScoreAudit
from oralib.scores.seen import Check, Seen

__all__ = ["UNFAIR", "Check", "ScoreAudit", "Seen", "audit_counts", "audit_guesses"]
__all__ += ["audit_scores"]
