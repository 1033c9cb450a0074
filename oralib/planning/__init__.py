"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so it costs no validity.
It is found by predicting many audits (:mod:`oralib.dpsgd.prediction`), a heuristic, and then tried
on simulated audits, which say what to expect of an honest training run and of some with bugs.

**What is searched, and why.** Designs have from one canary on every other coordinate to 150 on
each, of which all are left in the end, or one, two or four, by a schedule that did best in the
paper's setting. Whether more canaries help depends on ε, so all are predicted, for 50 to 5,000
guesses, and the largest predicted bound wins. Canaries alone on coordinates of their
own show most. So, unless it is given, there is a coordinate for each, up to 100,000.

To refute a claim takes a number of guesses, all right, that follows from the bound. With more of
them a few may be wrong, but each is less sure: so up to five times as many are tried. Predictions
choose four designs, and simulated audits decide. The noise goes down from half of what is stated to
the first share at which half of the audits refute. The number of coordinates, if it is left open,
begins with five for each guess that is needed, and is doubled until nine of ten audits refute, for
most bugs.
"""

from oralib.planning.blackbox import plan_black_box
from oralib.planning.designs import Claim, Design
from oralib.planning.plan import AuditPlan, Forecast, Outcome
from oralib.planning.price import plans_by_price
from oralib.planning.search import expected_outcomes, plan_audit

__all__ = ["AuditPlan", "Claim", "Design", "Forecast", "Outcome"]
__all__ += ["expected_outcomes", "plan_audit", "plan_black_box", "plans_by_price"]
