"""A plan for an audit of DP-SGD in one run: how many canaries, where, how many guesses.

The plan is made before the audit, from what is public about the training, so it costs no validity.
It is found by predicting many audits (:mod:`oralib.dpsgd.prediction`), a heuristic, and then tried
on simulated audits, which say what to expect of an honest training run and of some with bugs.
"""

from oralib.planning.blackbox import plan_black_box
from oralib.planning.designs import Claim, Design
from oralib.planning.plan import AuditPlan, Forecast, Outcome
from oralib.planning.search import AIMS, expected_outcomes, plan_audit

__all__ = ["AIMS", "AuditPlan", "Claim", "Design", "Forecast", "Outcome"]
__all__ += ["expected_outcomes", "plan_audit", "plan_black_box"]
