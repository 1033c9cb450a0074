"""A plan for a training run that shows only its last model: what its audit can show, and refute."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oralib.bounds import Counts, p, valid_lower_bound
from oralib.bounds.refuting import guesses_needed, right_needed
from oralib.ground import arguments
from oralib.ground.text import confidence, paragraphs, short
from oralib.planning.designs import Claim
from oralib.planning.file import AFTERWARDS, Saved
from oralib.scores import ScoreAudit, Seen

#: Mean right guesses of 100, by the losses of digits, in the trainings of the row example.
EXAMPLE = {"honest": 57.4, "without noise": 73.2, "without privacy": 99.5}

#: What a plan says.
_ROWS = {
    "claim": "({plan.claim.epsilon:g}, {delta})-DP, tested on the last model, {sure}",
    "canaries": "{plan.canaries:,} examples, by oralib.canaries.mislabelled(labels, "
    "{plan.canaries}, seed=...)",
    "guess": "the {high:,} with the smallest losses as included, the {low:,} largest as left out",
    "at best": "{plan.best:.2f} if all are right; {plan.most:.2f} with {plan.canaries:,} guesses",
    "refute": "{refute}",
    "expect": "at most {plan.right:.1f} right of {plan.guesses:,} on average if the claim is true, "
    "for a bound of {shown:.2f}, and often far fewer",
    "example": "a network for handwritten digits, claim 2, 501 mislabelled digits: on average over "
    "20 runs, this many of 100 guesses are right: {seen}",
}


@dataclass(frozen=True)
class BlackBoxPlan(Saved):
    """A plan by :func:`plan_black_box`; ``str()`` of it says what to do and what to expect.

    With all guesses right it shows ``best``, and with all canaries guessed and right ``most``. To
    refute the claim ``needed`` of the guesses must be right, or ``least`` guesses, all of them
    right; None where no number will do.
    """

    claim: Claim
    canaries: int
    guesses: int
    best: float
    most: float
    needed: int | None
    least: int | None

    def audit(self, scores: ArrayLike, included: ArrayLike, seen: Seen | None = None) -> ScoreAudit:
        """The audit by this plan, from scores that are high for what seems to be included."""
        if np.size(scores) != self.canaries or seen is not None:
            kind = "" if seen is None else ", of canaries that saw gradients"
            raise ValueError(
                f"scores must be those of {self.canaries:,} examples by the last model, as "
                f"planned, got {np.size(scores):,} scores{kind}"
            )
        return self._audit(scores, included, side="both")

    @property
    def right(self) -> float:
        """The most right guesses, on average, of a training run for which the claim is true."""
        # P(guessed right) is at most e^ε P(guessed wrong) + δ; add this up over all canaries.
        right, leaks = float(p(self.claim.epsilon)), self.claim.delta * self.canaries
        return min(right * self.guesses + (1 - right) * leaks, self.guesses)

    def __str__(self) -> str:
        k, usual = self.guesses, Counts(int(self.right), self.guesses, self.canaries, r_fixed=True)
        refute = f"{self.needed} right of {k:,} refute the claim"
        if self.needed is None:
            least = "" if self.least is None else f": that takes {self.least:,}, all right"
            refute = f"{k:,} guesses can never refute the claim{least}"
        shown, claim = valid_lower_bound(usual, **self.claim.test), self.claim
        words = {"delta": short(claim.delta), "sure": confidence(claim.beta), "refute": refute}
        words["seen"] = ", ".join(f"{right:g} {kind}" for kind, right in EXAMPLE.items())
        numbers = {"plan": self, "low": k // 2, "high": k - k // 2, "shown": shown}
        rows = ((label, text.format(**numbers, **words)) for label, text in _ROWS.items())
        return f"{paragraphs(rows)}\n\n{AFTERWARDS}"


def plan_black_box(
    epsilon: float,
    delta: float,
    canaries: int = 500,
    guesses: int | None = None,
    *,
    beta: float = 0.05,
) -> BlackBoxPlan:
    """Plan an audit that sees only the last model. Nothing is simulated.

    By default a fifth of the canaries are guessed. If guessing all of them could refute the
    claim, at least twice as many as needed are guessed, or all, so that some guesses may be wrong.

    Examples
    --------
    >>> plan = plan_black_box(8.0, 1e-5, canaries=500)
    >>> plan.guesses, round(plan.best, 2), round(plan.most, 2), plan.needed, plan.least
    (100, 3.49, 5.11, None, 8933)
    """
    epsilon = arguments.real("epsilon", epsilon, 0, 1000)
    n = arguments.integer("canaries", canaries, 1, 10**9)
    beta, delta = arguments.beta_and_delta(beta, delta)
    claim, every = Claim(epsilon, delta, beta), Counts(n, n, n, r_fixed=True)
    least = guesses_needed(every, epsilon, **claim.test)
    twice = 2 * least if least is not None and least <= n else 0
    k = min(n, max(1, n // 5, twice))
    k = k if guesses is None else arguments.integer("guesses", guesses, 1, n)
    some = Counts(k, k, n, r_fixed=True)
    best, most = (valid_lower_bound(counts, **claim.test) for counts in (some, every))
    needed = right_needed(some, epsilon, **claim.test)
    return BlackBoxPlan(claim, n, k, best, most, needed, least)
