"""Pictures of the paper's experiments."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from orabook.figures import draw
from orabook.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Curve,
    Picture,
    in_house_style,
)
from oralib.bounds import p

#: Curves of the adaptive audits: label, colour, dashes and marker by feedback.
FEEDBACK = {
    "none": ("no feedback (ORA)", BLUE, "-", "o"),
    "one-way": ("one-way feedback", GREEN, "--", "D"),
    "full": ("full feedback (AORA)", RED, "-", "s"),
}


def _check_columns(table: pd.DataFrame, *names: str) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be a data frame of oralib.experiments, got a {type(table)}")
    missing = [name for name in names if name not in table.columns]
    if missing:
        have = ", ".join(map(str, table.columns))
        raise ValueError(f"table must have the columns {', '.join(missing)}, got {have}")


def _band(table: pd.DataFrame, column: str, audits: int | None) -> pd.Series:
    """The standard error of a column, or twice what it is with another number of audits."""
    error = table[f"{column}_se"]
    return error if audits is None else 2 * error * np.sqrt(table["trials"] / audits)


def _from_zero(axes: Axes, xlabel: str, ylabel: str, **options: Any) -> Picture:
    """The picture of these axes, whose y begins at 0, with labels and a legend."""
    axes.set_ylim(bottom=0)
    return draw.finish(axes, xlabel, ylabel, **{"log_x": True} | options)


@in_house_style
def tradeoff(
    table: pd.DataFrame,
    xlabel: str,
    *,
    epsilon: float,
    audits: int | None = None,
    quoted: Mapping[float, tuple[float, float]] | None = None,
    curves: Mapping[str, Curve] | None = None,
) -> Picture:
    """Bound and estimate against x, with bands of one standard error (Figures 1 and 2).

    Parameters
    ----------
    epsilon : the certified privacy level, a dashed line.
    audits : draw bands of two standard errors of the mean of this many audits, not of one.
    quoted : values printed in the paper, {x: (mean bound, its error)}.
    curves : further curves, {label: (x, y)}.

    Examples
    --------
    >>> from oralib import experiments
    >>> table = experiments.elements_per_coordinate([1, 4], trials=5)
    >>> picture = tradeoff(table, "elements per coordinate", epsilon=2.0)
    """
    _check_columns(table, "x", "bound", "bound_se", "estimation", "estimation_se")
    _, axes = draw.picture()
    draw.level(axes, f"ε = {epsilon:g}", epsilon)
    shown = (("estimation", "mean estimate", RED), ("bound", "mean bound", BLUE))
    for name, label, colour in shown:
        curve = table["x"], table[name], _band(table, name, audits)
        draw.curve(axes, *curve, color=colour, label=label)
    for place, (label, extra) in enumerate((curves or {}).items(), start=2):
        colour, dashes, _ = draw.look(place)
        draw.curve(axes, *extra, color=colour, linestyle=dashes, label=label)
    if quoted:
        means, errors = zip(*quoted.values(), strict=True)
        edge: Any = {"markeredgecolor": "black", "markeredgewidth": 0.8, "ecolor": "black"}
        star: Any = {"marker": "*", "markersize": 11, "color": ORANGE, "zorder": 5, "capsize": 4}
        star |= edge | {"label": "quoted in the paper"}
        draw.points(axes, list(quoted), means, errors, **star)
    return _from_zero(axes, xlabel, "privacy level ε (nats)")


@in_house_style
def efficacy(
    table: pd.DataFrame, xlabel: str, *, epsilon: float, audits: int | None = None
) -> Picture:
    """Mean accuracy v / r against x (Figures 5 and 6); ``audits`` as in :func:`tradeoff`.

    Examples
    --------
    >>> from oralib import experiments
    >>> table = experiments.elements_per_coordinate([1, 4], trials=5)
    >>> picture = efficacy(table, "elements per coordinate", epsilon=2.0)
    """
    _check_columns(table, "x", "efficacy", "efficacy_se")
    _, axes = draw.picture()
    draw.level(axes, "p(ε), perfect", p(epsilon))
    curve = table["x"], table["efficacy"], _band(table, "efficacy", audits)
    draw.curve(axes, *curve, color=GREEN, label="mean of v / r")
    draw.level(axes, "½, blind guessing", 0.5, color=GREY, linestyle=":")
    axes.set_ylim(0.48, max(0.92, p(epsilon) + 0.02))
    return draw.finish(axes, xlabel, "efficacy E[V/R]", log_x=True, columns=3)


@in_house_style
def by_epsilon(
    table: pd.DataFrame, column: str, xlabel: str, *, exact: str | None = None
) -> Picture:
    """Mean bound against a column, one curve per ε (Figures 7 and 8).

    Parameters
    ----------
    exact : if given, the column ``valid`` is drawn as well, dashed, and this is what it is called.

    Examples
    --------
    >>> from oralib import experiments
    >>> table = experiments.elements_by_epsilon([1, 4], epsilons=[1.0, 4.0], trials=5)
    >>> picture = by_epsilon(table, "x", "elements per coordinate")
    """
    _check_columns(table, "epsilon", column, "bound", "bound_se", *(["valid"] if exact else []))
    _, axes = draw.picture()
    levels = np.unique(table["epsilon"]).tolist()
    for place, epsilon in enumerate(levels):
        colour, _, marker = draw.look(place)
        rows = table[table["epsilon"] == epsilon]
        curve, label = (rows[column], rows["bound"], rows["bound_se"]), f"ε = {epsilon:g}"
        draw.curve(axes, *curve, color=colour, marker=marker, label=label)
        if exact is not None:
            valid: Any = draw.DASHED | {"color": colour, "series": f"{label}, {exact}"}
            draw.curve(axes, rows[column], rows["valid"], **valid)
    if exact is not None:
        axes.plot([], [], label=exact, **draw.DASHED)
    return _from_zero(axes, xlabel, "mean bound on ε (nats)", columns=3)


@in_house_style
def adaptive(
    table: pd.DataFrame,
    xlabel: str,
    *,
    column: str = "bound",
    epsilon: float | None = None,
    exact: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    labels: Mapping[str, str] | None = None,
    log_x: bool = False,
) -> Picture:
    """Mean bound against x, one curve per kind of feedback (Figures 3 and 9).

    Parameters
    ----------
    column : which bound to draw, ``bound`` or ``valid``; feedback without one is left out.
    epsilon : the certified privacy level, if it is finite.
    exact : exact curves, {feedback: (x, mean bound)}; the simulated points are then bare.
    labels : other words for some kinds of feedback.

    Examples
    --------
    >>> from oralib import experiments
    >>> table = experiments.adaptive_count_in_sets([1, 2], trials=5)
    >>> picture = adaptive(table, "size of the sets")
    """
    _check_columns(table, "feedback", "x", column, f"{column}_se")
    _, axes = draw.picture()
    if epsilon is not None:
        draw.level(axes, f"ε = {epsilon:g}", epsilon)
    for feedback, (name, colour, dashes, marker) in FEEDBACK.items():
        rows = table[(table["feedback"] == feedback) & table[column].notna()]
        if rows.empty:
            continue
        label = (labels or {}).get(feedback, name)
        curve = (rows["x"], rows[column], rows[f"{column}_se"])
        if exact and feedback in exact:
            draw.curve(axes, *exact[feedback], color=colour, linestyle=dashes, label=label)
            draw.points(axes, *curve, color=colour, marker=marker, series=f"{label} (simulated)")
        else:
            draw.curve(axes, *curve, color=colour, linestyle=dashes, marker=marker, label=label)
    if exact:
        axes.errorbar([], [], [], fmt="o", color="black", capsize=3, label="simulated, ± one s.e.")
    return _from_zero(axes, xlabel, "mean bound on ε (nats)", log_x=log_x)


#: Curves of the ceiling: label and colour by rule.
RULES = {
    "plain": ("bound for δ = 0, no claim on (ε, δ)", ORANGE),
    "exact": ("exact bound", BLUE),
    "threshold": ("guesses above a threshold", GREEN),
    "steinke": ("usual bound", RED),
}

SEEN = {"steps": "", "sum": ", from sums"}


@in_house_style
def ceiling(table: pd.DataFrame, *, epsilon: float) -> Picture:
    """The best mean bound of isolated elements against n, and the limit of the exact bound.

    Parameters
    ----------
    table : as :func:`orabook.studies.isolated_ceiling` returns it.
    epsilon : with which it was called.

    Examples
    --------
    >>> from oralib import experiments
    >>> table = studies.isolated_ceiling([500, 1000], sees=["sum"], rules=["exact"])
    >>> picture = ceiling(table, epsilon=2.0)
    """
    _check_columns(table, "sees", "rule", "n", "bound", "limit", "certified")
    _, axes = draw.picture()
    levels = {"certified ε": epsilon, "exact ε of the training": table["certified"].iloc[0]}
    limits = table.loc[table["sees"] == table["sees"].iloc[-1], "limit"].dropna()
    if not limits.empty:
        levels["limit of the exact bound"] = limits.iloc[0]
    draw.references(axes, levels)
    for rule, (label, colour) in RULES.items():
        for seen, words in SEEN.items():
            rows = table[(table["rule"] == rule) & (table["sees"] == seen)]
            if not rows.empty:
                dashes = "-" if seen == "steps" else ":"
                curve: Any = {"color": colour, "linestyle": dashes, "label": label + words}
                draw.curve(axes, rows["n"], rows["bound"], **curve)
    return _from_zero(axes, "isolated elements n", "mean bound on ε (nats)")


def _draw_valid(axes: Axes, place: float, bound: float, how: str) -> None:
    """The one point of an audit that is a bound, rounded so that it does not overclaim."""
    dot: Any = {"color": BLUE, "marker": "o", "linestyle": "none", "markersize": 9}
    label = f"valid: ε ≥ {np.floor(bound * 1000) / 1000:.3f}, {how}"
    draw.curve(axes, [place], [bound], label=label, **dot)
