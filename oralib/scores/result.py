"""What an audit has shown, on which assumptions, and in words."""

from dataclasses import asdict, dataclass
from math import isfinite, isnan
from textwrap import fill
from typing import Any

import numpy as np

from oralib import _check
from oralib.bounds import Counts, valid_lower_bound

#: Coins that fair ones surpass in oddity less often than this are not taken for fair.
UNFAIR = 1e-3


@dataclass(frozen=True)
class ScoreAudit:
    """What an audit has shown, and on which assumptions; ``str()`` of it is a report.

    Attributes
    ----------
    bound : with probability 1 - β it does not exceed the ε of an (ε, δ)-DP training.
    pure_bound : the same for δ = 0.
    fdp_bound : the same for a training whose trade-off curve is one of ``curve``, and for no other;
        nan where the number of guesses was not fixed, where δ = 0, or with feedback.
    estimate : the ε that the accuracy alone suggests; no bound.
    accuracy : v / r.
    v, r, n : right guesses, all guesses, and audited canaries, guessed or not.
    delta, beta : the δ of the claim, and how often a bound may fail.
    level : the level of each test: β, or β / m with m numbers of guesses; for the rule "anytime
        lowered" n δ / 2 is still taken off.
    rule : by which p-value the bound was found, as :func:`oralib.valid_rule` names it.
    number : how the number of guesses came about: ``"fixed"``, ``"grid"``, ``"split"``, or
        ``"output"`` if it was left to the output.
    grid : all numbers of guesses that were tried.
    side : ``"both"``: half of the guesses, the highest scores, say "included", and the others, the
        lowest, "excluded"; ``"included"``: all say so. None if the guesses were given.
    canaries, included, coins_p_value : the number of all canaries, audited or not, of those that
        were included, and how often fair coins are so odd; None if only counts were given.
    lots, seed : guesses that were drawn by lot among equal scores, and the seed of that and of the
        split.
    curve : the family of trade-off curves of ``fdp_bound``.
    feedback : what the guesser was told on its way, as :class:`oralib.Counts` names it.
    notes : what one should know before one believes these numbers.

    Examples
    --------
    >>> from oralib import audit_counts
    >>> audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    >>> round(audit.bound, 3), audit.rule, audit.refutes(2.0)
    (0.702, 'exact', False)
    """

    bound: float
    pure_bound: float
    fdp_bound: float
    estimate: float
    accuracy: float
    v: int
    r: int
    n: int
    delta: float
    beta: float
    level: float
    rule: str
    number: str
    grid: tuple[int, ...] = ()
    side: str | None = None
    canaries: int | None = None
    included: int | None = None
    coins_p_value: float | None = None
    lots: int = 0
    seed: int | None = None
    curve: str = "GaussianCurve()"
    feedback: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def plausible_coins(self) -> bool:
        """Whether the coins may have been fair; if not, nothing has been shown."""
        return self.coins_p_value is None or self.coins_p_value >= UNFAIR

    @property
    def assumptions(self) -> dict[str, str]:
        """For each number what must be true for it to be what it is called."""
        told = {
            "none": " alone",
            "one-way": " and from coins of canaries that the guesser had given up",
            "list": " and from coins of canaries before them on a list that was settled before, or "
            "on no list",
            "full": " and from coins of canaries that the guesser was done with",
        }[self.feedback]
        common = (
            "each canary was included by a fair coin of its own, and the guesses follow from the "
            f"output of the training{told}"
        )
        number = {
            "fixed": "the number of guesses was fixed before scores were seen",
            "grid": f"the {len(self.grid)} numbers of guesses were fixed before scores were seen",
            "split": "the canaries on which the number of guesses was chosen were drawn at random",
            "output": "the number of guesses may depend on the same, and on nothing else",
        }[self.number]
        fdp = f"the trade-off curve of the training is one of {self.curve}; {common}; {number}"
        if isnan(self.fdp_bound):
            fdp = "not computed: it needs a fixed number of guesses, δ > 0, and no feedback"
        return {
            "bound": f"{common}; {number}",
            "pure_bound": f"a claim of ε-DP with δ = 0; {common}; {number}",
            "fdp_bound": fdp,
            "estimate": "none: it is no bound, and may be too large or too small",
            "accuracy": "none: it is what was counted",
        }

    def refutes(self, claim: float) -> bool:
        """Whether a claim of (ε, δ)-DP is refuted with confidence 1 - β; never by unfair coins."""
        return self.bound > _check.real("claim", claim, 0) and self.plausible_coins

    def as_dict(self) -> dict[str, Any]:
        """All fields and assumptions as plain values; what is not a number is None, or 'inf'."""
        fields: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if isinstance(value, float) and not isfinite(value):
                value = None if isnan(value) else str(value)
            fields[name] = list(value) if isinstance(value, tuple) else value
        fields["plausible_coins"] = self.plausible_coins
        return {**fields, "assumptions": self.assumptions}

    def report(self, claim: float | None = None) -> str:
        """What was claimed and what was shown, in words."""
        return _report(self, None if claim is None else _check.real("claim", claim, 0))

    def __str__(self) -> str:
        return self.report()


# ----------------------------------------------------------------------------------------- in words


def _report(audit: ScoreAudit, claim: float | None) -> str:
    rows = [("claim", f"({claim:g}, {_plain(audit.delta)})-DP")] if claim is not None else []
    if audit.canaries is not None:
        rows.append(("canaries", f"{audit.canaries:,}, of which {audit.included:,} were included"))
    rows.append(("guesses", _guesses(audit)))
    if audit.r:  # 199,999 of 200,000 are not 100%
        share = f"{10_000 * audit.v // audit.r / 100:g}%"
        rows.append(("right", f"{audit.v:,} of {audit.r:,}, or {share}"))
    rows.append(("shown", _shown(audit)))
    if claim is not None:
        rows.append(("verdict", _verdict(audit, claim)))
    if audit.delta > 0 and audit.plausible_coins:
        pure = f"a claim with δ = 0 needs an ε of at least {_down(audit.pure_bound)}"
        rows.append(("pure", pure))
    if audit.plausible_coins and not isnan(audit.fdp_bound):
        fdp = (
            f"ε is at least {_down(audit.fdp_bound)} at this δ, if the trade-off curve of the "
            f"training is one of {audit.curve}; otherwise this is not guaranteed"
        )
        rows.append(("f-DP", fdp))
    if audit.r:
        rows.append(("estimate", f"ε = {audit.estimate:.3f}, by the accuracy alone: no bound"))
    rows.append(("assumed", audit.assumptions["bound"]))
    rows += [("note", note) for note in audit.notes]
    if audit.plausible_coins:
        rows += [("stronger", hint) for hint in _hints(audit)]
    return "\n".join(
        fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        for label, text in rows
    )


def _confidence(beta: float) -> str:
    """1 - β, which is never rounded to certainty."""
    return f"{100 * (1 - beta):.6g}%" if beta > 1e-4 else f"1 - {_plain(beta)}"


def _down(bound: float) -> str:
    """Three digits that are not above the bound."""
    return f"{np.floor(bound * 1000) / 1000:.3f}" if isfinite(bound) else str(bound)


def _guesses(audit: ScoreAudit) -> str:
    r = audit.r
    among = f"among {audit.n:,} canaries"
    if audit.side == "both":
        among += (
            f": the {(r + 1) // 2:,} with the highest scores as included, "
            f"the {r // 2:,} with the lowest as left out"
        )
    elif audit.side == "included":
        among += ": those with the highest scores, all as included"
    who = "output" if audit.feedback == "none" else "guesser"
    why = {
        "fixed": "the number was fixed in advance",
        "grid": f"the best of {len(audit.grid)} numbers, each tested at level {audit.level:.3g}",
        "split": "the number was chosen on the other canaries, drawn at random",
        "output": f"the number was left to the {who}",
    }[audit.number]
    return f"{r:,} {among}; {why}"


def _shown(audit: ScoreAudit) -> str:
    if not audit.plausible_coins:
        return "nothing, as the coins do not look like fair ones (see the note)"
    if audit.bound == 0:
        return f"nothing: no ε is refuted at δ = {_plain(audit.delta)}, {_reason(audit)}"
    return (
        f"ε is at least {_down(audit.bound)} at δ = {_plain(audit.delta)}, "
        f"with confidence {_confidence(audit.beta)}"
    )


def _reason(audit: ScoreAudit) -> str:
    """Why the bound is 0."""
    if 2 * audit.v <= audit.r:
        return "since no more than half of the guesses are right"
    if audit.pure_bound > 0:
        return (
            f"since a training may give n δ = {audit.n * audit.delta:.3g} canaries away, too many "
            f"for level {audit.level:.3g} beside so few guesses"
        )
    return f"since coins alone do as well with a probability above {audit.level:.3g}"


def _verdict(audit: ScoreAudit, claim: float) -> str:
    if not audit.plausible_coins:
        return "none: the claim cannot be judged with these coins"
    if audit.refutes(claim):
        return (
            f"the claim is refuted with confidence {_confidence(audit.beta)}: were it true, so "
            f"many guesses would be right with a probability of at most {audit.beta:g}"
        )
    return "the claim stands; that it was not refuted does not prove it"


def _hints(audit: ScoreAudit) -> list[str]:
    """What would have made the bound larger; computed where it can be."""
    hints = []
    if 2 * audit.v < audit.r and audit.side is not None:
        hints.append(
            "most guesses are wrong. Are low scores those of included canaries, as losses are? "
            "Then give minus the scores, in an audit of its own: to try both signs on the same "
            "canaries makes the bound fail twice as often"
        )
    elif audit.r and audit.rule in ("plain", "exact", "split"):  # not with full feedback
        more = 4 * np.array([audit.v]), 4 * np.array([audit.r]), 4 * audit.n
        fourfold = Counts(*more, r_fixed=audit.rule != "split")
        later = float(valid_lower_bound(fourfold, beta=audit.level, delta=audit.delta)[0])
        if later > audit.bound:
            hints.append(
                "four times as many canaries and guesses, at the same accuracy, would show "
                f"{_down(later)}"
            )
    if audit.delta > 0 and 0 < audit.bound < audit.pure_bound - 0.05:
        hints.append(
            f"δ costs {audit.pure_bound - audit.bound:.2f}, as n δ = {audit.n * audit.delta:.3g}: "
            "fewer canaries would lose less"
        )
    return hints


def _plain(delta: float) -> str:
    """1e-5, as people type it, and not 1e-05."""
    return f"{delta:g}".replace("e-0", "e-")
