"""The picture of a report: the bound that was shown, beside bounds that are only to look at."""

from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oralib.bounds import valid_lower_bound
from oralib.ground.text import rounded_down
from oralib.scores.columns import Bits, Reals
from oralib.scores.guessing import POINTS, exact_bounds, right_guesses, spread_numbers
from oralib.scores.result import ScoreAudit

BLUE, GREY, SKY = "#0072B2", "#555555", "#56B4E9"


def score_picture(audit: ScoreAudit, scores: Reals, coins: Bits) -> bytes:
    """The bound beside those that other numbers of guesses, each fixed in advance, would have had.

    As these use all coins, no number of guesses may be chosen from them for the same audit.
    """
    right = right_guesses(scores, coins, audit.side or "both", audit.seed or 0)
    guesses = spread_numbers(scores.size)
    bounds = exact_bounds(right, guesses, audit.beta, audit.delta)
    figure, axes = _axes("number of guesses", audit.claim)
    axes.plot(guesses, bounds, ":", color=GREY, label="only exploration: not valid")
    if len(audit.grid) > 1:
        ticks = axes.plot(
            audit.grid, np.zeros(len(audit.grid)), "|", color=BLUE, markersize=12, clip_on=False
        )
        ticks[0].set(label="tried, with a correction", transform=axes.get_xaxis_transform())
    return _png(figure, axes, audit.r, audit.bound, f"{audit.r:,} guesses")


def guess_picture(audit: ScoreAudit) -> bytes:
    """The bound beside those that other β, each fixed in advance, would have had."""
    betas = np.geomspace(1e-3, 0.5, POINTS)
    bounds = [valid_lower_bound(audit.counts, beta=b, delta=audit.delta) for b in betas]
    figure, axes = _axes("how often the bound may fail, β", audit.claim)
    if np.isfinite(audit.estimate):
        words = "by the accuracy alone: not a bound"
        axes.axhline(audit.estimate, color=GREY, linestyle=":", label=words)
    axes.plot(betas, bounds, color=SKY, label="had another β been fixed in advance")
    return _png(figure, axes, audit.beta, audit.bound, f"{audit.v:,} of {audit.r:,} right")


def _axes(xlabel: str, claim: float | None) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.grid(color="#e6e6e6")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=xlabel, ylabel="lower bound on ε (nats)")
    if claim is not None:
        axes.axhline(claim, color="black", linestyle="--", label=f"claimed ε = {claim:g}")
    return figure, axes


def _png(figure: Figure, axes: Axes, x: float, bound: float, words: str) -> bytes:
    """The picture with its one valid point and a legend above it."""
    label = f"valid: {rounded_down(bound)}, {words}"
    axes.plot([x], [bound], "o", color=BLUE, markersize=9, label=label)
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.05)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()
