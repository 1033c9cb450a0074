"""Validity: the paper's Appendix A.2, and the counterexample to its condition."""

from functools import cache

import numpy as np
from scipy import stats

from ledger.cases.counts import critical_betas, failure
from ledger.cases.failures import critical_failures
from ledger.cases.games import Law, classic_successes
from ledger.cases.small_channels import private_tables
from ledger.machine.comparisons import at_most
from ledger.machine.entries import correction, mutants, remark, statement
from ledger.machine.findings import Cases, Finding, Function, each
from ledger.machine.mutants import WEAKER, replaced, varied
from orabook.studies import stop_or_oppose_law
from oralib import p

__all__ = ["binomial_law", "classic_is_valid", "condition_for_validity", "one_run_is_valid"]


def binomial_law(sizes: dict[int, float], success: float) -> Law:
    """The law of guesses that are right independently, their number drawn beforehand."""
    n = max(sizes)
    law = np.zeros((n + 1, n + 1))
    for r, share in sizes.items():
        law[: r + 1, r] = share * stats.binom.pmf(np.arange(r + 1), r, success)
    return law


def _laws(success: float) -> dict[str, tuple[float, Law]]:
    """(ε, law of (V, R)) of audits, or of guesses that are right independently.

    Those as good as dominance by Bin(R, success · p(ε)) allows are among them.
    """
    return {
        **_fixed_laws(),
        "guesses as good as allowed": (0.0, binomial_law({60: 1.0}, success * p(0.0))),
    }


@cache
def _fixed_laws() -> dict[str, tuple[float, Law]]:
    return {
        "LRR_4, stop or oppose, n = 1000": (4.0, stop_or_oppose_law(4.0, 1000)),
        "fair guesses": (0.0, binomial_law({10: 0.5, 60: 0.5}, 0.5)),
        "poor guesses": (0.0, binomial_law({5: 0.3, 40: 0.7}, 0.4)),
        "XRR_0.01, all others known": (0.01, _all_or_none(0.01, 20)),
    }


def _all_or_none(epsilon: float, n: int) -> Law:
    """The law of n guesses that are all right, with probability p(ε), or all wrong."""
    law = np.zeros((n + 1, n + 1))
    law[n, n] = p(epsilon)
    law[0, n] = 1 - p(epsilon)
    return law


def _upper_tail(law: Law) -> Law:
    """P[V >= v, R = r]."""
    return law[::-1].cumsum(axis=0)[::-1]


def _same_r(law: Law, success: float) -> Law:
    """The law with the same R and independent guesses."""
    return binomial_law({r: w for r, w in enumerate(law.sum(axis=0)) if w > 0}, success)


#: Conditions on the upper tails of a law and of its limit, by the words of the claim.
_CONDITIONS: dict[str, Function] = {
    "on the whole": lambda one, other: (one.sum(axis=1) <= other.sum(axis=1) + 1e-12).all(),
    "given R": lambda one, other: (one <= other + 1e-12).all(),
    "in the mean": lambda one, other: (one[1:].sum(axis=0) <= other[1:].sum(axis=0) + 1e-12).all(),
}


@statement("lem:condition-for-validity", "Lemma A.7", "counterexample")
@correction(
    "Dominance given each value of R suffices; overall dominance does not.", dominated="given R"
)
@mutants(replaced("dominated", in_the_mean="in the mean"), varied("success", 0.001, down=WEAKER))
@remark(
    "The counterexample is an adaptive audit of randomized response: a private coin decides "
    "whether it guesses what it sees and stops when it is ahead, or guesses the opposite "
    "everywhere."
)
@each(at_most)
def condition_for_validity(dominated: str = "on the whole", success: float = 1.0) -> Cases:
    """If V is stochastically dominated by Bin(R, p(ε)), the bound is valid."""
    for name, (epsilon, law) in _laws(success).items():
        q = min(1.0, success * p(epsilon))
        tails = _upper_tail(law)
        limits = _upper_tail(_same_r(law, q))
        if not _CONDITIONS[dominated](tails, limits):
            continue
        sizes = np.nonzero(law.sum(axis=0))[0].tolist() if len(law) < 100 else []
        # Just above a tail, so that a count is rejected.
        betas = [b for r in sizes for b in critical_betas(r, p(epsilon), spread=-1e-6)]
        for beta in (0.05, *betas):
            yield f"{name}, β = {beta:.3g}", failure(law, epsilon, beta), beta


@cache
def _best_classic() -> dict[str, tuple[float, float]]:
    """(ε, the best success of classic auditing with a threshold) of each private table."""
    return {
        name: (
            table.epsilon,
            max(s for share in (0.0, 0.5, 1.0) for s, _ in classic_successes(table, share)),
        )
        for name, table in private_tables().items()
    }


@statement("prop:classic-auditing-is-valid", "Proposition A.8")
@mutants(varied("failure_probability", 1, down=WEAKER))
@each(at_most)
def classic_is_valid(failure_probability: float = 1.0) -> Cases:
    """Classic auditing is valid: its bound exceeds ε(M) with probability at most β."""
    for name, (epsilon, success) in _best_classic().items():
        for r in (5, 20, 60):
            law = binomial_law({r: 1.0}, success)
            for beta in critical_betas(r, p(epsilon)):
                yield f"{name}, r = {r}", failure(law, epsilon, failure_probability * beta), beta


@statement("prop:one-run-auditing-is-valid", "Proposition A.9")
@mutants(replaced("feedback", full="full"), varied("failure_probability", 1, down=WEAKER))
def one_run_is_valid(feedback: str = "none", failure_probability: float = 1.0) -> Finding:
    """One-run auditing is valid, whatever the guesser."""
    return at_most(critical_failures(feedback, failure_probability))
