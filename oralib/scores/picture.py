"""The picture of a report: the bound that was shown, beside bounds that are only to look at."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from oralib.scores.result import ScoreAudit

BLUE, GREY, SKY = "#0072B2", "#555555", "#56B4E9"


def score_picture(
    audit: ScoreAudit, guesses: ArrayLike, bounds: ArrayLike, claim: float | None
) -> bytes:
    """The bound beside those for other numbers of guesses, of ``bounds_by_guesses``."""
    tried = audit.grid if len(audit.grid) > 1 else ()
    shown = audit.r, audit.bound, f"{audit.r} guesses"
    curve = guesses, bounds, {"color": GREY, "linestyle": ":"}, "only exploration: not valid"
    return _drawn("number of guesses", curve, shown, claim, tried=tried)


def guess_picture(
    audit: ScoreAudit, betas: ArrayLike, bounds: ArrayLike, claim: float | None
) -> bytes:
    """The bound beside those at other β, of ``bounds_by_beta``."""
    shown = audit.beta, audit.bound, f"{audit.v} of {audit.r} right"
    curve = betas, bounds, {"color": SKY}, "had another β been fixed in advance"
    return _drawn("how often the bound may fail, β", curve, shown, claim, estimate=audit.estimate)


def _drawn(
    xlabel: str,
    curve: tuple[ArrayLike, ArrayLike, dict[str, Any], str],
    shown: tuple[float, float, str],
    claim: float | None,
    *,
    tried: Sequence[int] = (),
    estimate: float = np.nan,
) -> bytes:
    figure = Figure(figsize=(7, 4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.grid(color="#e6e6e6")
    axes.spines[["top", "right"]].set_visible(False)
    if claim is not None:
        axes.axhline(claim, color="black", linestyle="--", label=f"claimed ε = {claim:g}")
    if np.isfinite(estimate):
        words = "by the accuracy alone: no bound"
        axes.axhline(estimate, color=GREY, linestyle=":", label=words)
    x, y, style, label = curve
    axes.plot(x, y, label=label, **style)
    if tried:
        axes.plot(
            tried,
            np.zeros(len(tried)),
            "|",
            color=BLUE,
            markersize=12,
            label="tried, with a correction",
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )
    place, bound, words = shown
    axes.plot([place], [bound], "o", color=BLUE, markersize=9, label=f"valid: {bound:.2f}, {words}")
    axes.set(xlabel=xlabel, ylabel="lower bound on ε (nats)")
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.05)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()
