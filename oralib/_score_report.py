"""What an audit by scores has shown, in words."""

from math import isfinite, isnan
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from oralib._check import LARGEST_COUNT
from oralib.bounds import Counts, valid_lower_bound

if TYPE_CHECKING:
    from oralib.scores import ScoreAudit


def report(audit: "ScoreAudit", claim: float | None) -> str:
    rows = [("claim", f"({claim:g}, {_plain(audit.delta)})-DP")] if claim is not None else []
    if audit.canaries is not None:
        rows.append(("canaries", f"{audit.canaries:,}, of which {audit.included:,} were included"))
    rows += [
        ("guesses", _guesses(audit)),
        (
            "right",
            f"{audit.v:,} of {audit.r:,}, or {_accuracy(audit)}"
            if audit.r
            else "none, as there are no guesses",
        ),
        ("shown", _shown(audit)),
    ]
    if claim is not None:
        rows.append(("verdict", _verdict(audit, claim)))
    if audit.delta > 0 and audit.plausible_coins:
        rows.append(
            ("pure", f"a claim with δ = 0 needs an ε of at least {_down(audit.pure_bound)}")
        )
    if audit.plausible_coins and not isnan(audit.fdp_bound):
        rows.append(
            (
                "f-DP",
                f"ε is at least {_down(audit.fdp_bound)} at this δ, if the trade-off curve of the "
                f"training is one of {audit.curve}; otherwise this is not guaranteed",
            )
        )
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


def _accuracy(audit: "ScoreAudit") -> str:
    """All and none are said of all and none only."""
    rounded = round(audit.accuracy, 4)
    if rounded in (0, 1) and 0 < audit.v < audit.r:
        return "nearly all" if rounded else "hardly any"
    return _percent(rounded)


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _confidence(beta: float) -> str:
    """1 - β, which is never rounded to certainty."""
    return _percent(1 - beta) if beta > 1e-4 else f"1 - {_plain(beta)}"


def _down(bound: float) -> str:
    """Three digits that are not above the bound."""
    return f"{np.floor(bound * 1000) / 1000:.3f}" if isfinite(bound) else str(bound)


def _guesses(audit: "ScoreAudit") -> str:
    r = audit.r
    among = f"among {audit.n:,} canaries"
    if audit.side == "both":
        among += (
            f": the {(r + 1) // 2:,} with the highest scores as included, "
            f"the {r // 2:,} with the lowest as left out"
        )
    elif audit.side == "included":
        among += ": those with the highest scores, all as included"
    why = {
        "fixed": "the number was fixed in advance",
        "grid": f"the best of {len(audit.grid)} numbers, each tested at level {audit.level:.3g}",
        "split": "the number was chosen on the other canaries, drawn at random",
        "output": "the number was left to the "
        + ("output" if audit.feedback == "none" else "guesser"),
    }[audit.number]
    return f"{r:,} {among}; {why}"


def _shown(audit: "ScoreAudit") -> str:
    if not audit.plausible_coins:
        return "nothing, as the coins do not look like fair ones (see the note)"
    if audit.bound == 0:
        return f"nothing: no ε is refuted at δ = {_plain(audit.delta)}, {_reason(audit)}"
    return (
        f"ε is at least {_down(audit.bound)} at δ = {_plain(audit.delta)}, "
        f"with confidence {_confidence(audit.beta)}"
    )


def _reason(audit: "ScoreAudit") -> str:
    """Why the bound is 0."""
    if not audit.r:
        return "since there are no guesses"
    if 2 * audit.v <= audit.r:
        return "since no more than half of the guesses are right"
    if audit.pure_bound > 0 and audit.feedback == "full":
        return (
            f"since with full feedback n δ / 2 = {audit.n * audit.delta / 2:.3g} is taken off "
            f"level {audit.level:.3g}"
        )
    if audit.pure_bound > 0:
        return (
            f"since a training may give n δ = {audit.n * audit.delta:.3g} canaries away, too many "
            f"for level {audit.level:.3g} beside so few guesses"
        )
    return f"since coins alone do as well with a probability above {audit.level:.3g}"


def _verdict(audit: "ScoreAudit", claim: float) -> str:
    if not audit.plausible_coins:
        return "none: the claim cannot be judged with these coins"
    if audit.refutes(claim):
        return (
            f"the claim is refuted with confidence {_confidence(audit.beta)}: were it true, so "
            f"many guesses would be right with a probability of at most {audit.beta:g}"
        )
    return "the claim stands; that it was not refuted does not prove it"


def _hints(audit: "ScoreAudit") -> list[str]:
    """What would have made the bound larger; computed where it can be."""
    hints = []
    if 2 * audit.v < audit.r and audit.side is not None:
        hints.append(
            "most guesses are wrong. Are low scores those of included canaries, as losses are? "
            "Then give minus the scores, in an audit of its own: to try both signs on the same "
            "canaries makes the bound fail twice as often"
        )
    # Not with full feedback, nor beyond what can be counted.
    elif audit.r and audit.rule in ("plain", "exact", "split") and 4 * audit.n <= LARGEST_COUNT:
        more = 4 * np.array([audit.v]), 4 * np.array([audit.r]), 4 * audit.n
        fourfold = Counts(*more, r_fixed=audit.rule != "split")
        later = float(valid_lower_bound(fourfold, beta=audit.level, delta=audit.delta)[0])
        if later > audit.bound:
            hints.append(
                "four times as many canaries and guesses, at the same accuracy, would show "
                f"{_down(later)}"
            )
    if audit.v == audit.r > 0:
        hints.append("all guesses are right: plan more of them")
    if audit.number == "split":
        hints.append(
            "a number of guesses that is fixed in advance, say by a pilot run, leaves all canaries "
            "to the audit"
        )
    if audit.number == "grid" and len(audit.grid) > 1:
        hints.append(f"a single number of guesses would be tested at level {audit.beta:g}")
    if audit.delta > 0 and 0 < audit.bound < audit.pure_bound - 0.05:
        how = "" if audit.feedback == "full" else ", or more guesses among them,"
        hints.append(
            f"δ costs {audit.pure_bound - audit.bound:.2f}, as n δ = {audit.n * audit.delta:.3g}: "
            f"fewer canaries{how} would lose less"
        )
    return hints


def _plain(delta: float) -> str:
    """1e-5, as people type it, and not 1e-05."""
    return f"{delta:g}".replace("e-0", "e-")
