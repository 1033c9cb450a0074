"""What an audit has shown, what it could have shown, under which assumptions, and in words."""

from bisect import bisect_left
from dataclasses import asdict, dataclass
from math import inf, isfinite, isnan
from textwrap import fill
from typing import Any

import numpy as np

from oralib import _check
from oralib.bounds import Counts, valid_lower_bound

#: Coins with a smaller p-value than this are not accepted as fair, nor guesses as having the right
#: sign.
UNFAIR = 1e-3

#: The search for a number of guesses stops here.
_MOST = 10**12


def best_bound(
    r: int, n: int, *, delta: float, level: float, fixed: bool, feedback: str = "none"
) -> float:
    """What r guesses among n canaries show if all are right: no outcome shows more."""
    counts = Counts(np.array([r]), np.array([r]), n, r_fixed=fixed, feedback=feedback)
    return float(valid_lower_bound(counts, beta=level, delta=delta)[0])


@dataclass(frozen=True)
class ScoreAudit:
    """What an audit has shown, and under which assumptions; ``str()`` of it is a report.

    Attributes
    ----------
    bound : with probability 1 - β it does not exceed the ε of an (ε, δ)-DP training.
    pure_bound : the same for δ = 0.
    fdp_bound : the same, only for a training whose trade-off curve is Gaussian;
        nan where the number of guesses was not fixed, where δ = 0, or with feedback.
    best_bound : what the audit would have shown if all its guesses had been right.
    estimate : the ε that the accuracy alone suggests; not a bound, and at the same accuracy no
        number of guesses would show more.
    accuracy : v / r.
    v, r, n : right guesses, all guesses, and audited canaries, guessed or not.
    delta, beta : the δ of the claim, and how often a bound may fail.
    level : the level of each test: β, or β / m with m numbers of guesses; for the rule "anytime
        lowered" n δ / 2 is still to be subtracted.
    rule : the p-value behind the bound, as :func:`oralib.valid_rule` names it.
    number : how the number of guesses was chosen: ``"fixed"``, ``"grid"``, ``"split"``, or
        ``"output"`` if it was left to the output.
    grid : all numbers of guesses that were tried.
    side : ``"both"``: half of the guesses, the highest scores, say "included", and the others, the
        lowest, "excluded"; ``"included"``: all say so; ``"farthest"``: those farthest from 0 say so
        where the score is positive. None if the guesses were given.
    canaries, included, coins_p_value : the number of all canaries, audited or not, of those that
        were included, and how often fair coins are this uneven; None if only counts were given.
    ties_drawn, seed : guesses that were drawn by lot among equal scores, and the seed of that and
        of the split.
    feedback : what the guesser was told as it went, as :class:`oralib.Counts` names it.
    problem : why nothing has been shown, whatever the numbers say: coins that are not fair, or
        exactly balanced, or scores of the wrong sign. Otherwise empty.
    notes : what to know before you believe these numbers.

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
    best_bound: float
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
    ties_drawn: int = 0
    seed: int | None = None
    feedback: str = "none"
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def plausible_coins(self) -> bool:
        """Whether the coins may have been fair; if not, nothing has been shown."""
        return self.coins_p_value is None or self.coins_p_value >= UNFAIR

    @property
    def assumptions(self) -> dict[str, str]:
        """For each number, what must be true for it to be what its name says."""
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
        fdp = f"the training has the trade-off curve of a Gaussian mechanism; {common}; {number}"
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
        """Whether a claim of (ε, δ)-DP is refuted with confidence 1 - β."""
        return self.verdict(claim) == "refuted"

    def verdict(self, claim: float) -> str:
        """``"refuted"``, ``"not refuted"``, ``"cannot test"`` or ``"invalid"``.

        The audit cannot test a claim if no outcome of it could have refuted the claim. It is
        invalid if there is a ``problem``.

        Examples
        --------
        >>> from oralib import audit_counts
        >>> audit = audit_counts(Counts(190, 200, n=1000, r_fixed=True), delta=1e-5)
        >>> audit.verdict(1.0), audit.verdict(4.0), audit.verdict(8.0), audit.guesses_needed(8.0)
        ('refuted', 'not refuted', 'cannot test', 8933)
        """
        claim = _check.real("claim", claim, 0)
        if self.problem:
            return "invalid"
        if self.bound > claim:
            return "refuted"
        return "not refuted" if self.best_bound > claim else "cannot test"

    def guesses_needed(self, claim: float) -> int | None:
        """How many guesses, all right, refute a claim in an audit like this; None if none do."""
        claim = _check.real("claim", claim, 0)
        fixed = self.number in ("fixed", "grid")
        # With full feedback more canaries cost too much.
        most = self.n if self.feedback == "full" else _MOST

        def enough(r: int) -> bool:
            how = {"delta": self.delta, "level": self.level, "feedback": self.feedback}
            return best_bound(r, max(r, self.n), fixed=fixed, **how) > claim  # type: ignore[arg-type]

        if not most or not enough(most):
            return None
        return bisect_left(range(1, most + 1), True, key=enough) + 1

    def as_dict(self, claim: float | None = None) -> dict[str, Any]:
        """All fields and assumptions as plain values; what is not a number is None, or 'inf'."""
        fields: dict[str, Any] = {}
        if claim is not None:
            verdict = self.verdict(claim)
            refuted = None if verdict == "invalid" else verdict == "refuted"
            fields = {"claim": claim, "verdict": verdict, "refuted": refuted}
            fields["guesses_needed"] = self.guesses_needed(claim)
        for name, value in asdict(self).items():
            if isinstance(value, float) and not isfinite(value):
                value = None if isnan(value) else str(value)
            fields[name] = list(value) if isinstance(value, tuple) else value
        fields["plausible_coins"] = self.plausible_coins
        return {**fields, "assumptions": self.assumptions}

    def rows(self, claim: float | None = None) -> list[tuple[str, str]]:
        """What was claimed and what was shown, in words, each with a label."""
        return _rows(self, None if claim is None else _check.real("claim", claim, 0))

    def report(self, claim: float | None = None) -> str:
        """What was claimed and what was shown, as a text."""
        return "\n".join(
            fill(text, 80, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
            for label, text in self.rows(claim)
        )

    def __str__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        from oralib.scores.page import table

        return table(self.rows())


# ----------------------------------------------------------------------------------------- in words


def _rows(audit: ScoreAudit, claim: float | None) -> list[tuple[str, str]]:
    rows = [("claim", f"({claim:g}, {plain(audit.delta)})-DP")] if claim is not None else []
    if audit.problem:
        rows.append(("invalid", audit.problem))
    if audit.canaries is not None:
        rows.append(("canaries", f"{audit.canaries:,}, of which {audit.included:,} were included"))
    rows.append(("guesses", _guesses(audit)))
    if audit.r:  # 199,999 of 200,000 are not 100%
        share = f"{10_000 * audit.v // audit.r / 100:g}%"
        rows.append(("right", f"{audit.v:,} of {audit.r:,}, or {share}"))
    rows.append(("shown", _shown(audit)))
    if claim is not None:
        rows.append(("verdict", _verdict(audit, claim)))
    rows.append(("power", _power(audit, claim)))
    if audit.delta > 0 and not audit.problem:
        pure = f"a claim with δ = 0 needs an ε of at least {down(audit.pure_bound)}"
        rows.append(("pure", pure))
    if not audit.problem and not isnan(audit.fdp_bound):
        fdp = (
            f"ε is at least {down(audit.fdp_bound)} at this δ, if the trade-off curve of the "
            f"training is that of a Gaussian mechanism; otherwise this is not guaranteed"
        )
        rows.append(("f-DP", fdp))
    if audit.r and not audit.problem:
        estimate = f"ε = {audit.estimate:.3f}, by the accuracy alone: no bound"
        if 0 < audit.estimate < inf:
            estimate += ", but at this accuracy no number of guesses would show more"
        rows.append(("estimate", estimate))
    rows.append(("assumed", audit.assumptions["bound"]))
    rows += [("note", note) for note in audit.notes]
    if not audit.problem:
        rows += [("stronger", hint) for hint in _hints(audit)]
    return rows


def _confidence(beta: float) -> str:
    """1 - β, which is never rounded to certainty."""
    return f"{100 * (1 - beta):.6g}%" if beta > 1e-4 else f"1 - {plain(beta)}"


def down(bound: float) -> str:
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
    elif audit.side == "farthest":
        among += ": those with scores farthest from 0, as included where they are positive"
    who = "output" if audit.feedback == "none" else "guesser"
    why = {
        "fixed": "the number was fixed in advance",
        "grid": f"the best of {len(audit.grid)} numbers, each tested at level {audit.level:.3g}",
        "split": "the number was chosen on the other canaries, drawn at random",
        "output": f"the number was left to the {who}",
    }[audit.number]
    return f"{r:,} {among}; {why}"


def _shown(audit: ScoreAudit) -> str:
    if audit.problem:
        return "nothing, as the audit is not valid"
    if audit.bound == 0:
        return f"nothing: no ε is refuted at δ = {plain(audit.delta)}, {_reason(audit)}"
    return (
        f"ε is at least {down(audit.bound)} at δ = {plain(audit.delta)}, "
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
    return {
        "invalid": "none: the claim cannot be judged by this audit, which is not valid",
        "refuted": f"the claim is refuted with confidence {_confidence(audit.beta)}: were it true, "
        f"this many guesses would be right with a probability of at most {audit.beta:g}",
        "cannot test": "this audit cannot test the claim: none of its outcomes would have refuted "
        "it, whatever the training does",
        "not refuted": "the claim was not refuted; that does not prove it",
    }[audit.verdict(claim)]


def _power(audit: ScoreAudit, claim: float | None) -> str:
    """What the best outcome would have shown, and what it would take to refute the claim."""
    said = f"even {audit.r:,} right of {audit.r:,} would show {down(audit.best_bound)}, not more"
    if audit.number == "grid" and len(audit.grid) > 1:
        most = f"{audit.grid[-1]:,}"
        said = f"even {most} right of {most} would show {down(audit.best_bound)}, not more"
    if claim is None:
        return said
    needed = audit.guesses_needed(claim)
    if needed is None:
        return f"{said}; no number of guesses could refute ε = {claim:g} in such an audit"
    return f"{said}; to refute ε = {claim:g} takes {needed:,} guesses, all of them right"


def _hints(audit: ScoreAudit) -> list[str]:
    """What would have made the bound larger; computed where it can be."""
    hints = []
    if audit.r and audit.rule in ("plain", "exact", "split"):  # not with full feedback
        more = 4 * np.array([audit.v]), 4 * np.array([audit.r]), 4 * audit.n
        fourfold = Counts(*more, r_fixed=audit.rule != "split")
        later = float(valid_lower_bound(fourfold, beta=audit.level, delta=audit.delta)[0])
        if later > audit.bound:
            hints.append(
                "four times as many canaries and guesses, at the same accuracy, would show "
                f"{down(later)}"
            )
    if audit.delta > 0 and 0 < audit.bound < audit.pure_bound - 0.05:
        hints.append(
            f"δ costs {audit.pure_bound - audit.bound:.2f}, as n δ = {audit.n * audit.delta:.3g}: "
            "fewer canaries would lose less"
        )
    return hints


def plain(delta: float) -> str:
    """1e-5, as people type it, and not 1e-05."""
    return f"{delta:g}".replace("e-0", "e-")
