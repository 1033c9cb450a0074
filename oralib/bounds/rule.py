"""The base of all rules: counts or plain numbers come in, and a bound or a p-value goes out.

Each rule is a class in a file of its own. It says for which audits it is proved, and computes with
columns of numbers that have been checked here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from oralib.bounds.columns import flat_counts, float_if_single
from oralib.bounds.counts import Counts, leaks
from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["Audits", "Rule", "exact_is_proved", "pure_is_proved"]


@dataclass(frozen=True)
class Audits:
    """The audits that a rule computes with: checked columns of one length, a row for each.

    Attributes
    ----------
    v, r, n : array
        Right guesses, all guesses, and elements.
    d_in, d_out : array
        The δ of (ε, δ)-DP in either direction. They differ for general hypotheses only.
    leak : array
        What all elements together may leak to right guesses, n δ if guesses are of both sides.
    beta : array
        How often the bound may fail.
    planned : array
        The leak that the audit was planned for; only the random-r and the certified anytime bound
        use it.
    r_in : int or None
        The number of guesses that say "included", if the counts are of balanced coins.
    """

    v: Array
    r: Array
    n: Array
    d_in: Array
    d_out: Array
    leak: Array
    beta: Array
    planned: Array
    r_in: int | None = None


class Rule(ABC):
    """A rule of bounds: its name, and a bound and a p-value with the same arguments everywhere.

    A rule is proved for audits of some set-ups. Given :class:`oralib.Counts`, which say how the
    audit was set up, it refuses those for which it is not proved. Given plain numbers, it computes
    what is asked. :func:`oralib.valid_rule` finds the rule for an audit.

    Attributes
    ----------
    name : str
        The name of the bound, in tables, figures and reports.
    needs_n : bool
        Whether the bound depends on the number of elements even for δ = 0.
    """

    name: ClassVar[str]
    needs_n: ClassVar[bool] = False

    def lower_bound(
        self,
        v: ArrayLike | Counts,
        r: ArrayLike | None = None,
        *,
        n: ArrayLike | None = None,
        delta: ArrayLike = 0.0,
        beta: ArrayLike = 0.05,
    ) -> Any:
        """Return a lower bound on ε, which exceeds the true ε with probability at most β.

        Parameters
        ----------
        v : Counts, int or array
            The counts of an audit, or the number of right guesses, at most r.
        r : int or array
            The number of guesses; not given with Counts.
        n : int or array
            The number of elements, guessed or not, at least r; needed if δ > 0, and not given with
            Counts.
        delta : float or array
            The δ of (ε, δ)-DP, in [0, 1].
        beta : float or array
            The probability with which the bound may fail, in (0, 1).
        """
        shape, audits, _ = self._admit(v, r, n, delta, beta)
        return float_if_single(self.bounds(audits).reshape(shape))

    def p_value(
        self,
        v: ArrayLike | Counts,
        r: ArrayLike | None = None,
        *,
        epsilon: ArrayLike,
        n: ArrayLike | None = None,
        delta: ArrayLike = 0.0,
        beta: ArrayLike = 0.05,
    ) -> Any:
        """Return a p-value of (ε, δ)-DP: for such a mechanism it is ≤ α with probability ≤ α.

        Parameters
        ----------
        v, r, n, delta
            As for the bound.
        epsilon : float or array
            The ε of the hypothesis, at least 0.
        beta : float or array
            The β that the audit was planned for, in (0, 1). It matters only to rules for a number
            of guesses that is not fixed, and for δ > 0.
        """
        hypothesis = arguments.reals("epsilon", epsilon, 0)
        shape, audits, (column,) = self._admit(v, r, n, delta, beta, epsilon=hypothesis)
        return float_if_single(self.p_values(audits, column).reshape(shape))

    @abstractmethod
    def proved_for(self, counts: Counts, delta: float) -> bool:
        """Return whether the bound is proved for audits of this set-up, and for this δ."""

    @abstractmethod
    def bounds(self, audits: Audits) -> Array:
        """Return the bound of each row."""

    @abstractmethod
    def p_values(self, audits: Audits, epsilon: Array) -> Array:
        """Return the p-value of each row, capped at 1."""

    def check(self, audits: Audits) -> None:  # noqa: B027, most rules take all numbers
        """Raise an error for numbers that this rule cannot compute with."""

    def _admit(
        self,
        v: Any,
        r: ArrayLike | None,
        n: ArrayLike | None,
        delta: ArrayLike,
        beta: ArrayLike,
        **others: Any,
    ) -> tuple[tuple[int, ...], Audits, list[Array]]:
        """Check arguments; return their common shape, the audits, and the other columns."""
        betas, deltas = arguments.betas_and_deltas(beta, delta)
        counts = v if isinstance(v, Counts) else None
        if counts is not None:
            if r is not None or n is not None:
                raise TypeError(
                    f"r and n must not be given with Counts, which have them, got {r=} and {n=}"
                )
            self.refuse_others(counts, float(deltas.max(initial=0)))
            v = counts.v
            r = counts.r
            n = counts.n
        elif r is None:
            raise TypeError(f"r must be given if v is not Counts, got {v=} and r=None")
        sizes = self._number_of_elements(n, r, deltas)
        shape, columns = flat_counts(v, r, n=sizes, delta=deltas, beta=betas, **others)
        flat_v, flat_r, flat_n, flat_delta, flat_beta, *rest = columns
        if counts is None:
            leak = flat_n * flat_delta
            r_in = None
        else:
            leak = leaks(counts, flat_delta, flat_delta)
            r_in = counts.r_in
        audits = Audits(
            v=flat_v,
            r=flat_r,
            n=flat_n,
            d_in=flat_delta,
            d_out=flat_delta,
            leak=leak,
            beta=flat_beta,
            planned=leak,
            r_in=r_in,
        )
        self.check(audits)
        return shape, audits, rest

    def refuse_others(self, counts: Counts, delta: float) -> None:
        """Raise an error for counts of an audit for which this rule is not proved."""
        if self.proved_for(counts, delta):
            return
        raise ValueError(
            f"the {self.name} is not proved for this audit; oralib.valid_rule(counts, delta) finds "
            f"the rule that is, got r_fixed={counts.r_fixed}, feedback={counts.feedback!r}, "
            f"coins={counts.coins!r} and delta={delta:g}"
        )

    def _number_of_elements(self, n: ArrayLike | None, r: ArrayLike, delta: Array) -> Array:
        """Return n, checked; if it is not given and does not matter, the number of guesses."""
        if n is not None:
            return arguments.integers("n", n)
        if self.needs_n:
            raise ValueError(f"n must be given for the {self.name}, got n=None")
        if (delta > 0).any():
            raise ValueError(
                f"n must be given when delta > 0, got delta={delta.max():g} and n=None: "
                "the bound depends on the number of elements"
            )
        return arguments.integers("r", r)


def pure_is_proved(counts: Counts) -> bool:
    """Return whether ε'(v, r) is a bound for δ = 0; almost every rule equals it for δ = 0."""
    if counts.coins != "independent" or counts.feedback == "all others":
        return False
    return counts.r_fixed or counts.feedback in ("none", "one-way")


def exact_is_proved(counts: Counts, delta: float) -> bool:
    """Return whether the exact bound is proved: with δ > 0 the number of guesses must be fixed."""
    if not pure_is_proved(counts):
        return False
    return delta == 0 or (counts.r_fixed and counts.feedback != "full")
