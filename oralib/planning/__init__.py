"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so it costs no validity.
It is found by predicting many audits (:mod:`oralib.dpsgd.prediction`), a heuristic, and then tried
on simulated audits, which say what to expect of an honest training run and of some with bugs.

**What is searched, and why.** Designs differ in how many canaries share a coordinate, from one on
some of the coordinates to 150 on each, and in how many of them are left in the end: all, or one,
two or four per coordinate, by a schedule that did best in the paper's setting. Whether more
canaries help depends on ε, so all of these are predicted, for numbers of guesses from 50 to 5,000,
and the largest predicted bound wins. Canaries alone on coordinates of their own show most. So,
unless it is given, there is a coordinate for each, up to 100,000, which a training hardly notices.

A plan to refute needs most guesses right at less noise than stated. The least number of guesses
that can refute the claim, all of them right, follows from the bound. With more guesses a few may be
wrong, but each further one is less sure: so numbers from the least one to five times as many are
tried, densely near the least one, where plans for large claims end up. Predictions choose four
designs, since each takes seconds to simulate, and simulated audits decide. The noise goes down
from half of what is stated; the first share at which half of the audits refute is the plan's. The
number of coordinates, if it is left open, begins with five for each guess that is needed: surer
scores are rare, and fewer never refuted a run without clipping. It is doubled until nine of ten
audits refute, for most bugs.
"""

from oralib.planning.blackbox import plan_black_box
from oralib.planning.designs import Claim, Design
from oralib.planning.plan import AuditPlan, Forecast, Outcome
from oralib.planning.price import plans_by_price
from oralib.planning.search import expected_outcomes, plan_audit

__all__ = ["AuditPlan", "Claim", "Design", "Forecast", "Outcome"]
__all__ += ["expected_outcomes", "plan_audit", "plan_black_box", "plans_by_price"]
