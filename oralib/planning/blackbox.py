"""A plan for a training that shows only its last model: what its audit can show, and refute."""

from dataclasses import dataclass

from oralib import _check
from oralib._text import confidence, paragraphs, short
from oralib.bounds import Counts
from oralib.scores import audit_counts

#: Right guesses of 100 among 501 mislabelled digits, by their losses: means of 20 trainings each.
EXAMPLE = {"honest": 57.4, "without noise": 73.2, "without privacy": 99.5}


@dataclass(frozen=True)
class BlackBoxPlan:
    """A plan by :func:`plan_black_box`; ``str()`` of it says what to do and what to hope for.

    With all k guesses right it shows ``best``, and with all n canaries guessed and right ``most``.
    To refute the claim ``needed`` of the k must be right, or ``least`` guesses, all of them right;
    None where no number will do.

    Examples
    --------
    >>> plan = plan_black_box(8.0, 1e-5, n=500)
    >>> plan.k, round(plan.best, 2), round(plan.most, 2), plan.needed, plan.least
    (100, 3.49, 5.11, None, 8933)
    """

    epsilon: float
    delta: float
    beta: float
    n: int
    k: int
    best: float
    most: float
    needed: int | None
    least: int | None

    def __str__(self) -> str:
        k, n, claim = self.k, self.n, f"({self.epsilon:g}, {short(self.delta)})-DP"
        refute = f"{self.needed} right of {k:,} refute the claim"
        if self.needed is None:
            least = "" if self.least is None else f": that takes {self.least:,}, all right"
            refute = f"{k:,} guesses can never refute the claim{least}"
        seen = ", ".join(f"{right:g} {kind}" for kind, right in EXAMPLE.items())
        rows = [
            ("claim", f"{claim}, to be tested by the last model, with {confidence(self.beta)}"),
            ("canaries", f"{n:,} examples, by oralib.canaries.mislabelled(labels, {n}, seed=...)"),
            ("guess", f"{k - k // 2:,} with the least losses as included, {k // 2:,} as left out"),
            ("at best", f"{self.best:.2f} if all are right; {self.most:.2f} with {n:,} guesses"),
            ("refute", refute),
            ("expect", f"right of 100 among 501 mislabelled digits, mean of 20 trainings: {seen}"),
        ]
        beta = "" if self.beta == 0.05 else f" --beta {short(self.beta)}"
        command = f"oralib audit scores.csv --side both --guesses {k} --delta {short(self.delta)}"
        return f"{paragraphs(rows)}\n\n{command}{beta} \\\n    --claim {self.epsilon:g}"


def plan_black_box(
    epsilon: float, delta: float, n: int = 500, k: int | None = None, *, beta: float = 0.05
) -> BlackBoxPlan:
    """Plan the audit of a claim with n canaries and k guesses, by the last model alone.

    By default k is a fifth of the canaries, or twice the least number that can refute the claim if
    that is more, so that a guess may be wrong; it is at most n. Nothing is simulated.

    Examples
    --------
    >>> plan_black_box(2.0, 1e-5, n=500).needed
    94
    """
    epsilon = _check.real("epsilon", epsilon, 0, 1000, interval="(]")
    beta, delta = _check.level(beta, delta)
    n = _check.integer("n", n, 1, 10**9)
    every = audit_counts(Counts(n, n, n=n, r_fixed=True), delta=delta, beta=beta)
    least = every.guesses_needed(epsilon)
    twice = 2 * least if least is not None and least <= n else 0
    k = min(n, max(1, n // 5, twice)) if k is None else _check.integer("k", k, 1, n)
    audit = audit_counts(Counts(k, k, n=n, r_fixed=True), delta=delta, beta=beta)
    needed = audit.right_needed(epsilon)
    return BlackBoxPlan(epsilon, delta, beta, n, k, audit.bound, every.bound, needed, least)
