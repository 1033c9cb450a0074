"""The expected findings of an audit with canaries, before anything is trained."""

from collections.abc import Mapping
from dataclasses import dataclass

from oralib import Training, TrainingTest
from oralib.ground import arguments
from oraudit.canaries.counted import FORMULA
from oraudit.canaries.guesses import POWER_SHARES, guesses_for_bound, guesses_for_training
from oraudit.canaries.law import GuessSide, Stated, law_of_right, stretches

__all__ = ["Expected", "expect"]

#: The scores for which expectations hold, in words.
SEES = (
    "canaries with gradients of one weight each, left in the sum of each step; scores from all "
    "noisy sums, with the noise that is seen"
)


@dataclass(frozen=True)
class Expected:
    """The expected findings of an audit; ``str()`` of them is a few lines.

    Attributes
    ----------
    training
        The stated training, in stretches.
    canaries
        The number of canaries with a coin.
    beta, delta
        How often each statement may fail, and the δ of the bound.
    side
        ``"both"``, or ``"in"`` if all guesses say "included".
    guesses, need
        The number of guesses that test the stated training, and of right ones that refute it; None
        if even all are too few.
    power
        How often an audit refutes a training with this share of the stated noise, by shares.
    honest
        How often the stated training itself is refuted, at most beta.
    bound
        The mean of the lower bound on ε, if the training is as stated.
    bound_guesses
        The number of guesses of the bound.
    sees
        How the scores are made.
    formula
        The version of the formulas for the numbers of guesses.
    """

    training: tuple[Training, ...]
    canaries: int
    beta: float
    delta: float
    side: GuessSide
    guesses: int
    need: int | None
    power: Mapping[float, float]
    honest: float
    bound: float
    bound_guesses: int
    sees: str = SEES
    formula: int = FORMULA

    def __str__(self) -> str:
        parts = [
            f"σ {part.sigma:.4g}, rate {part.sample_rate:.3g}, {part.steps:,} steps"
            for part in self.training
        ]
        if len(parts) > 3:
            parts = [parts[0], f"... ({len(parts) - 2} more stretches)", parts[-1]]
        if self.need is None:
            test = f"no number of right guesses among {self.guesses} refutes the stated training"
        else:
            powers = ", ".join(
                f"{share:g}: {_percent(power)}" for share, power in self.power.items()
            )
            test = (
                f"{self.need} of {self.guesses} guesses right refute the stated training\n"
                f"power     by share of the stated noise, {powers}; "
                f"the stated one {_percent(self.honest)}"
            )
        return (
            f"stated    {', then '.join(parts)}\n"
            f"canaries  {self.canaries:,}; {self.sees}\n"
            f"test      {test}\n"
            f"bound     ε ≥ {self.bound:.2f} at δ = {self.delta:g} on average, of "
            f"{self.bound_guesses} guesses, if all is as stated; a lower bound, not an estimate\n"
            f"errors    each of the two fails with {_percent(self.beta)} at most, one of them with "
            f"up to {_percent(2 * self.beta)}; formula {self.formula}"
        )


def expect(
    training: Stated,
    canaries: int,
    *,
    beta: float = 0.05,
    delta: float = 1e-5,
    side: GuessSide = "both",
) -> Expected:
    """Compute what an audit of a stated training can show, by exact laws.

    Canaries have a weight each and are left in the sum, with scores that use the noise that is
    seen. Other scores show less.

    Parameters
    ----------
    training : Training, sequence of Training, or (sigma, rate, steps)
        What is stated.
    canaries : int
        The number of canaries with a coin.
    beta, delta
        How often each statement may fail, and the δ of the bound.
    side : str
        ``"in"`` if all guesses say "included".

    Examples
    --------
    >>> plan = expect((2.422402, 0.1, 100), 1000)
    >>> plan.guesses, plan.need, round(plan.power[0.5], 2), round(plan.bound, 2)
    (158, 129, 0.96, 0.52)
    """
    stated = stretches(training)
    n = arguments.integer("canaries", canaries, 1)
    beta, delta = arguments.beta_and_delta(beta, delta)
    arguments.one_of("side", side, ("both", "in"))
    guesses = guesses_for_training(n, stated, beta, side)
    bound_guesses = guesses_for_bound(n)
    need = TrainingTest(stated, n=n, guesses=guesses, beta=beta, side=side).needed
    laws = {
        share: law_of_right(stated, n, guesses, share=share, side=side)
        for share in (*POWER_SHARES, 1.0)
    }
    power = {share: law.at_least(need) for share, law in laws.items()}
    honest = power.pop(1.0)
    law_for_bound = law_of_right(stated, n, bound_guesses, side=side)
    bound = law_for_bound.mean_bound(n, beta=beta, delta=delta, side=side)
    return Expected(
        stated, n, beta, delta, side, guesses, need, power, honest, bound, bound_guesses
    )


def _percent(share: float) -> str:
    """Return a probability in percent, a small one not rounded to nothing."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if share > 0.9995:
        return "100%"
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.1f}%"
