"""What an audit has shown, in words: the rows of its report, which are also those of its page."""

from html import escape
from math import inf, isnan
from typing import TYPE_CHECKING

from oralib.ground.text import confidence, rounded_down, rounded_up, short
from oralib.ground.types import Way
from oralib.scores.seen import SEES, Seen

if TYPE_CHECKING:
    from oralib.scores.result import ScoreAudit

#: What guesses follow from, beside the output of the training.
_SOURCES = {
    "none": " alone",
    "one-way": " and from coins of canaries that the guesser had given up",
    "list": " and from coins of canaries before them on a list made in advance, or on no list",
    "full": " and from coins of canaries that the guesser was done with",
}


def rows(audit: "ScoreAudit") -> list[tuple[str, str]]:
    """What was claimed and what was shown, each with a label."""
    claim = audit.claim
    rows = [("unlike", "; ".join(headline(audit)))] if audit.status == "unlike" else []
    if claim is not None:
        rows.append(("claim", f"({claim:g}, {short(audit.delta)})-DP"))
    if audit.problem:
        rows.append(("invalid", audit.problem))
    if audit.canaries is not None:
        rows.append(("canaries", f"{audit.canaries:,}, of which {audit.included:,} were included"))
    rows.append(("guesses", _guesses(audit)))
    if audit.r:  # 199,999 of 200,000 are not 100%
        share = f"{min(round(10_000 * audit.v / audit.r), 10_000 - (audit.v < audit.r)) / 100:g}%"
        rows.append(("right", f"{audit.v:,} of {audit.r:,}, or {share}"))
    rows.append(("shown", _shown(audit)))
    if claim is not None:
        judged = "none: the claim cannot be judged by this audit, which is not valid"
        rows.append(("verdict", judged if audit.problem else "; ".join(_judged(audit))))
        if not audit.problem and (p := audit.p_value()) is not None:
            often = ": were the claim true, so many right guesses would be at most this likely"
            if p > audit.beta:
                often = f", above β = {audit.beta:g}: too large to refute the claim"
            rows.append(("p-value", rounded_up(p) + often))
    rows.append(("power", _power(audit)))
    if audit.seen is not None:
        rows += [("training", _looks(audit.seen)), ("unseen", unseen(audit.seen.way))]
    if not audit.problem:
        rows += _other_bounds(audit)
    rows.append(("assumed", assumptions(audit)["bound"]))
    rows += [("note", note) for note in audit.notes]
    if not audit.problem:
        rows += [("stronger", hint) for hint in _hints(audit)]
    return rows


def table(rows: list[tuple[str, str]]) -> str:
    """Labels and what they say, as a table of HTML."""
    cells = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f'<table style="text-align: left">{cells}</table>'


def headline(audit: "ScoreAudit") -> tuple[str, str]:
    """The result in one clause, and what it means in another."""
    if audit.problem:
        return "this audit is not valid: nothing has been shown", audit.problem
    if audit.seen is not None and audit.status == "unlike":
        why = "; ".join(audit.seen.reasons)
        next_step = "Find out why before you rely on the claim"
        return "this training run looks unlike the stated one", f"{why}. {next_step}"
    return _judged(audit)


def _judged(audit: "ScoreAudit") -> tuple[str, str]:
    """What the guesses say of the claim."""
    if audit.claim is None:
        wrong = f"such a statement is wrong in at most {100 * audit.beta:g} of 100 audits"
        return _shown(audit), wrong
    verdict, the_claim = audit.verdict(), f"the claim of ε = {audit.claim:g}"
    if verdict == "refuted":
        p = audit.p_value()
        often = f"{audit.beta:g}" if p is None else rounded_up(p)
        why = "if the claim were true, so many right guesses would have a probability of at most"
        return f"{the_claim} is refuted: {_at_least(audit)}", f"{why} {often}"
    if verdict == "cannot test":
        why = "none of its outcomes would have refuted it, whatever the training does"
        return f"this audit cannot test {the_claim}", why
    why = "the audit could have refuted it and did not, but that does not prove it"
    if audit.status == "unlike":
        why = "do not rely on it, though, while the training looks unlike the stated one"
    return f"{the_claim} was not refuted", why


def assumptions(audit: "ScoreAudit") -> dict[str, str]:
    """For each number in the report, what must hold for it to be valid."""
    one = {"add-remove": "adding or removing one example"}
    one["replace"] = "replacing one example by another"
    common = (
        f"ε is meant for {one[audit.adjacency]}; {coins(audit)}, and the guesses follow from the "
        f"output of the training{_SOURCES[audit.counts.feedback]}; "
        f"{number_of_guesses(audit)}{of_canaries(audit)}"
    )
    fdp = f"the training has the trade-off curve of a Gaussian mechanism; {common}"
    if isnan(audit.fdp_bound):
        needs = "a fixed number of guesses, δ > 0, independent coins and no feedback"
        fdp = f"not computed: it needs {needs}"
    return {
        "bound": common,
        "pure_bound": f"a claim of ε-DP with δ = 0; {common}",
        "fdp_bound": fdp,
        "estimate": "none: it is not a bound, and may be too large or too small",
        "accuracy": "none: it is what was counted",
    }


def coins(audit: "ScoreAudit") -> str:
    """What must be true of the coins."""
    if audit.adjacency == "replace":
        return "for each pair a fair coin of its own chose which of the two was included"
    return {
        "independent": "each canary was included by a fair coin of its own",
        "balanced": "exactly half of the canaries, drawn at random, were included",
    }[audit.counts.coins]


def of_canaries(audit: "ScoreAudit") -> str:
    """What must be true of oralib's own canaries."""
    return {
        None: "",
        "sum": "; the canaries got the noise of the training, and no noise of their own",
        "examples": "; the canaries were sampled and clipped like the other examples",
    }[None if audit.seen is None else audit.seen.way]


def number_of_guesses(audit: "ScoreAudit") -> str:
    """What must be true of the number of guesses."""
    return {
        "fixed": "the number of guesses was fixed before scores were seen",
        "grid": f"the {len(audit.grid)} numbers of guesses were fixed before scores were seen",
        "split": "the canaries on which the number of guesses was chosen were drawn at random",
        "output": "the number of guesses may depend on the same, and on nothing else",
    }[audit.choice]


def _guesses(audit: "ScoreAudit") -> str:
    r = audit.r
    which = {
        None: "",
        "both": f": the {(r + 1) // 2:,} with the highest scores as included, "
        f"the {r // 2:,} with the lowest as left out",
        "included": ": those with the highest scores, all as included",
        "farthest": ": those with scores farthest from 0 (positive: included, negative: left out)",
    }[audit.side]
    who = "output" if audit.counts.feedback == "none" else "guesser"
    why = {
        "fixed": "the number was fixed in advance",
        "grid": f"the best of {len(audit.grid)} numbers, each with β = {audit.test_beta:.3g}",
        "split": "the number was chosen on the other canaries, drawn at random",
        "output": f"the {who} determined the number",
    }[audit.choice]
    return f"{r:,} among {audit.n:,} canaries{which}; {why}"


def _at_least(audit: "ScoreAudit") -> str:
    bound, delta = rounded_down(audit.bound), short(audit.delta)
    return f"ε is at least {bound} at δ = {delta}, with {confidence(audit.beta)}"


def _shown(audit: "ScoreAudit") -> str:
    if audit.problem:
        return "nothing, as the audit is not valid"
    if audit.bound > 0:
        return _at_least(audit)
    if 2 * audit.v <= audit.r:
        why = "no more than half the guesses are right"
    elif audit.pure_bound > 0:
        many = f"n δ = {audit.n * audit.delta:.3g} canaries outright, too many for so few guesses"
        why = f"a run may reveal {many} with β = {audit.test_beta:.3g}"
    else:
        why = f"coins alone do as well with a probability above {audit.test_beta:.3g}"
    return f"nothing: no ε is refuted at δ = {short(audit.delta)}, since {why}"


def _power(audit: "ScoreAudit") -> str:
    """What the best outcome would have shown, and what it would take to refute the claim."""
    claim, most = audit.claim, f"{max(audit.grid, default=audit.r):,}"
    best = f"even {most} right of {most} would show {rounded_down(audit.best_bound)}, not more"
    if claim is None:
        return best
    if (enough := audit.right_needed()) is not None:
        return f"{enough:,} right of {audit.r:,} would refute ε = {claim:g}; {best}"
    if (needed := audit.guesses_needed()) is None:
        return f"{best}; no number of guesses could refute ε = {claim:g} in such an audit"
    return f"{best}; to refute ε = {claim:g} takes {needed:,} guesses, all of them right"


def unseen(way: Way) -> str:
    """What neither the bound nor a look at the gradients can see."""
    blind = [part for part, ways in SEES.items() if way not in ways]
    sees = [part for part in SEES if part not in blind]
    where = {
        "sum": "the canaries were added to the sum of clipped gradients, just before the noise",
        "examples": "the canaries were examples among the others",
    }[way]
    rest = f", but not its {' and '.join(blind)}" if blind else ""
    shuffled = "" if blind else "; so may batches that are shuffled instead of sampled"
    return (
        f"{where}, on weights of their own. They test the training's {', '.join(sees[:-1])} and "
        f"{sees[-1]}{rest}. A bug that affects only other weights, or only other examples, stays "
        f"unseen{shuffled}"
    )


_ALARMS = "Such checks accuse an honest training run in at most 1% of audits"


def _looks(seen: Seen) -> str:
    """Whether the training looks like the stated one, as far as the canaries saw it."""
    rate = f" and a sample rate of {seen.sample_rate:g}" if seen.way == "examples" else ""
    observed = f"({seen.steps:,} of {seen.planned:,} planned steps were observed)"
    stated = f"with σ = {seen.sigma:g}{rate} {observed}"
    if not seen.as_stated:
        why = "; ".join(seen.reasons)
        return f"it looks unlike the stated one {stated}: {why}. {_ALARMS}"
    if not seen.checks:
        return f"too few numbers to say whether it looks like the stated one {stated}"
    like = f"it looks like the stated one {stated}: {'; '.join(map(str, seen.checks))}"
    return f"{like}. {_ALARMS}"


def _other_bounds(audit: "ScoreAudit") -> list[tuple[str, str]]:
    """What the same counts say about other claims, and the estimate."""
    rows = []
    if audit.delta > 0:
        pure = rounded_down(audit.pure_bound)
        rows.append(("pure", f"a claim with δ = 0 needs an ε of at least {pure}"))
    if not isnan(audit.fdp_bound):
        fdp = f"ε is at least {rounded_down(audit.fdp_bound)} at this δ"
        gaussian = "the trade-off curve of the training is that of a Gaussian mechanism"
        rows.append(("f-DP", f"{fdp}, if {gaussian}; otherwise this is not guaranteed"))
    if (ranking := audit.ranking) is not None:
        above = f"{ranking.tpr_at_1_percent:.1%} of the included canaries score above all but 1%"
        rows.append(("ranking", f"AUROC {ranking.auroc:.3f}; {above} of the others: not a bound"))
    if audit.r:
        estimate = f"ε = {audit.estimate:.3f}, by the accuracy alone: not a bound"
        if 0 < audit.estimate < inf:
            estimate += ", but at this accuracy no number of guesses would show more"
        rows.append(("estimate", estimate))
    return rows


def _hints(audit: "ScoreAudit") -> list[str]:
    """What would have made the bound larger; computed where it can be."""
    hints = []
    if audit.r and audit.rule in ("pure", "exact", "random r"):  # the others would take too long
        larger = audit.bound_of(4 * audit.v, 4 * audit.r, 4 * audit.n)
        if larger > audit.bound:
            four = "four times as many canaries and guesses, at the same accuracy, would show"
            hints.append(f"{four} {rounded_down(larger)}")
    if audit.delta > 0 and 0 < audit.bound < audit.pure_bound - 0.05:
        cost = f"{audit.pure_bound - audit.bound:.2f}, as n δ = {audit.n * audit.delta:.3g}"
        hints.append(f"δ costs {cost}: fewer canaries would lose less")
    return hints
