"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so the audit stays valid.
A heuristic (:mod:`oralib.dpsgd.prediction`) predicts what many designs would show, to choose from.
Simulated audits then say what to expect of an honest training run, and of some with bugs.

**What is searched, and why.** Designs range from one canary on some of the coordinates to 150 on
each. Canaries all stay to the end, or are dropped until one, two or four per coordinate are left,
by the schedule that did best in the paper's setting. Whether more canaries help depends on ε, so
the bounds of all these designs, with 50 to 5,000 guesses, are predicted, and the largest wins.
Canaries that are alone on their coordinates show most, so by default there are as many coordinates
as canaries, up to 100,000. If the number of canaries is not given either, there are 800,000 on
100,000 coordinates.

To refute a claim, the audit needs at least a certain number of guesses, all of them right. With
more guesses a few may be wrong, but each is less sure, so up to five times that number is tried.
Predictions choose four designs, and simulated audits choose among these. Both assume half of the
stated noise or, if too few audits then refute the claim, the largest share of the noise at which
half do. If the number of coordinates is left open, it starts at five for each guess needed, and is
doubled until nine of ten audits refute the claim for most bugs.
"""

from oralib.planning.blackbox import plan_black_box
from oralib.planning.designs import Claim, Design
from oralib.planning.plan import AuditPlan, Forecast, Outcome
from oralib.planning.price import plans_by_price
from oralib.planning.search import expected_outcomes, plan_audit

__all__ = ["AuditPlan", "Claim", "Design", "Forecast", "Outcome"]
__all__ += ["expected_outcomes", "plan_audit", "plan_black_box", "plans_by_price"]
