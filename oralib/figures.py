"""Pictures of the experiments and tables, in one house style.

Each function returns a picture that a notebook shows by itself. Colours are those of Okabe and
Ito, which colour-blind readers can tell apart; the background is opaque, so that axes stay
readable on a dark page.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from io import BytesIO
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from oralib.bounds import p
from oralib.channel import Channel

__all__ = [
    "Picture",
    "adaptive",
    "bars",
    "by_epsilon",
    "efficacy",
    "gap_chain",
    "heatmap",
    "law",
    "lines",
    "outputs",
    "tiles",
    "tradeoff",
]

BLUE, ORANGE, GREEN, RED, SKY, PINK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#555555",
)
CYCLE = (BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY)

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 11,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.facecolor": "white",
    "font.size": 10.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
}

#: Curves of the adaptive audits: label, colour and marker by feedback.
FEEDBACK = {
    "none": ("ORA (no feedback)", BLUE, "o"),
    "one-way": ("one-way AORA (abstained coins only)", GREEN, "D"),
    "full": ("AORA as in the paper (all coins)", RED, "s"),
}


class Picture(Figure):
    """A figure that belongs to nobody but its caller, and that a notebook shows as PNG."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(buffer, format="png", dpi=144)
        return buffer.getvalue()


def _in_house_style(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Draw with the settings of the house, whatever those of the caller are."""

    @wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Picture:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def _picture(columns: int = 1, width: float = 7.0, height: float = 4.0) -> tuple[Picture, Any]:
    picture = Picture(figsize=(width, height), layout="constrained")
    return picture, picture.subplots(1, columns)


def _label(axes: Axes, xlabel: str, ylabel: str, log_x: bool = False) -> None:
    if log_x:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        subs = (1, 2, 5) if high < 2000 * low else (1,)  # as many labels as there is room for
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=subs))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)


def _references(axes: Axes, levels: Mapping[str, float] | None) -> None:
    """Horizontal reference lines, each with dashes of its own."""
    for dashes, (label, level) in zip(("--", ":", "-."), (levels or {}).items(), strict=False):
        axes.axhline(level, color="black", linestyle=dashes, linewidth=1.2, label=label)


def _legend(picture: Picture, columns: int = 2) -> None:
    """Above the axes, where it hides nothing."""
    picture.legend(loc="outside upper center", ncols=columns)


def _curve(
    axes: Axes, x: ArrayLike, y: ArrayLike, error: ArrayLike | None = None, **style: Any
) -> None:
    """A curve with a band of one standard error; points without a finite value are left out."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    finite = np.isfinite(y)
    axes.plot(x[finite], y[finite], **style)
    if error is not None:
        error = np.where(np.isfinite(error), error, 0.0)
        low, high = (y - error)[finite], (y + error)[finite]
        axes.fill_between(x[finite], low, high, color=style.get("color"), alpha=0.2, linewidth=0)


@_in_house_style
def tradeoff(
    table: pd.DataFrame,
    xlabel: str,
    *,
    epsilon: float,
    quoted: Mapping[float, tuple[float, float]] | None = None,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> Picture:
    """Bound and estimation against x, with bands of one standard error (Figures 1 and 2).

    Parameters
    ----------
    epsilon : the certified privacy level, a dashed line.
    quoted : values printed in the paper, {x: (mean bound, its error)}.
    curves : further curves, {label: (x, y)}.
    """
    picture, axes = _picture()
    axes.axhline(epsilon, color="black", linestyle="--", linewidth=1.2, label=f"ε = {epsilon:g}")
    _curve(
        axes,
        *(table["x"], table["estimation"], table["estimation_se"]),
        color=RED,
        marker="s",
        label="estimation",
    )
    _curve(
        axes,
        *(table["x"], table["bound"], table["bound_se"]),
        color=BLUE,
        marker="o",
        label="bound",
    )
    for colour, (label, (x, y)) in zip(CYCLE[2:], (curves or {}).items(), strict=False):
        _curve(axes, x, y, color=colour, linestyle="-.", marker="^", label=label)
    if quoted:
        x = list(quoted)
        means, errors = zip(*quoted.values(), strict=True)
        axes.errorbar(
            x,
            means,
            errors,
            fmt="*",
            markersize=10,
            markeredgecolor="black",
            markeredgewidth=0.8,
            color=ORANGE,
            ecolor="black",
            capsize=4,
            zorder=5,
            label="quoted in the paper",
        )
    _label(axes, xlabel, "privacy level ε (nats)", log_x=True)
    axes.set_ylim(bottom=0)
    _legend(picture)
    return picture


@_in_house_style
def efficacy(table: pd.DataFrame, xlabel: str, *, epsilon: float) -> Picture:
    """Mean accuracy v / r against x (Figures 5 and 6)."""
    picture, axes = _picture()
    axes.axhline(p(epsilon), color="black", linestyle="--", linewidth=1.2, label="p(ε), perfect")
    _curve(
        axes,
        *(table["x"], table["efficacy"], table["efficacy_se"]),
        color=GREEN,
        marker="o",
        label="mean of v / r",
    )
    axes.axhline(0.5, color=GREY, linestyle=":", linewidth=1.2, label="1/2, blind guessing")
    _label(axes, xlabel, "efficacy E[V/R]", log_x=True)
    axes.set_ylim(0.48, max(0.92, p(epsilon) + 0.02))
    _legend(picture)
    return picture


@_in_house_style
def by_epsilon(
    table: pd.DataFrame, column: str, xlabel: str, *, exact: str | None = None
) -> Picture:
    """Mean bound against a column, one curve per ε (Figures 7 and 8).

    Parameters
    ----------
    exact : if given, the column ``exact`` is drawn as well, dashed, and this is what it is called.
    """
    picture, axes = _picture()
    for colour, marker, epsilon in zip(
        CYCLE, "osD^v<>", np.unique(table["epsilon"]).tolist(), strict=False
    ):
        rows = table.query("epsilon == @epsilon")
        _curve(
            axes,
            *(rows[column], rows["bound"], rows["bound_se"]),
            color=colour,
            marker=marker,
            label=f"ε = {epsilon:g}",
        )
        if exact is not None:
            _curve(axes, rows[column], rows["valid"], color=colour, linestyle="--", linewidth=1.2)
    if exact is not None:
        axes.plot([], [], color="black", linestyle="--", linewidth=1.2, label=exact)
    _label(axes, xlabel, "mean bound on ε (nats)", log_x=True)
    axes.set_ylim(bottom=0)
    _legend(picture, 5 if exact is None else 3)
    return picture


@_in_house_style
def adaptive(
    table: pd.DataFrame,
    xlabel: str,
    *,
    epsilon: float | None = None,
    exact: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]] | None = None,
    log_x: bool = False,
) -> Picture:
    """Mean bound against x, one curve per kind of feedback (Figures 3 and 9).

    Parameters
    ----------
    epsilon : the certified privacy level, if it is finite.
    exact : exact curves, {feedback: (x, mean bound)}; the simulated points are then bare.
    curves : further curves, {label: (x, mean bound, its standard error)}.
    """
    picture, axes = _picture()
    if epsilon is not None:
        axes.axhline(
            epsilon, color="black", linestyle="--", linewidth=1.2, label=f"ε = {epsilon:g}"
        )
    exact = exact or {}
    for feedback, (label, colour, marker) in FEEDBACK.items():
        rows = table.query("feedback == @feedback")
        if not len(rows):
            continue
        if feedback in exact:
            _curve(axes, *exact[feedback], color=colour, label=f"{label}, exact")
            axes.errorbar(
                rows["x"],
                rows["bound"],
                rows["bound_se"],
                fmt=marker,
                color=colour,
                capsize=3,
                label="simulated, ± one s.e.",
            )
        else:
            _curve(
                axes,
                *(rows["x"], rows["bound"], rows["bound_se"]),
                color=colour,
                marker=marker,
                label=label,
            )
    for colour, (label, curve) in zip((PINK, ORANGE), (curves or {}).items(), strict=False):
        _curve(axes, *curve, color=colour, linestyle="-.", marker="^", label=label)
    _label(axes, xlabel, "mean bound on ε (nats)", log_x)
    axes.set_ylim(bottom=0)
    _legend(picture)
    return picture


@_in_house_style
def gap_chain(channels: Mapping[str, Channel], k: int | None = None) -> Picture:
    """Theorems 5.1 and 5.2 as bars: from the optimal efficacy up to p(ε) for each mechanism.

    Each step between two bars is one of the three gaps.
    """
    picture, axes = _picture(height=3.6, width=7.5)
    names = "E* (all n)" if k is None else f"E* (k = {k})"
    levels = {
        names: [channel.optimal_efficacy(k) for channel in channels.values()],
        "AC-DDP": [channel.ac_ddp for channel in channels.values()],
        "p(DDP)": [p(channel.ddp) for channel in channels.values()],
        "p(DP)": [p(channel.epsilon) for channel in channels.values()],
    }
    place = np.arange(len(channels))
    for j, (colour, (name, values)) in enumerate(
        zip((BLUE, SKY, ORANGE, RED), levels.items(), strict=True)
    ):
        axes.bar(
            place + 0.2 * (j - 1.5), np.array(values) - 0.5, 0.18, 0.5, color=colour, label=name
        )
    axes.axhline(0.5, color="black", linewidth=1)
    axes.set_xticks(place, list(channels), fontsize=10 if len(channels) < 7 else 9)
    axes.set_ylim(0.49, 1.01)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("accuracy")
    _legend(picture, 4)
    return picture


@_in_house_style
def lines(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]],
    xlabel: str,
    ylabel: str,
    *,
    references: Mapping[str, float] | None = None,
    markers: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    ylim: tuple[float, float] | None = None,
) -> Picture:
    """Curves {label: (x, y)} or {label: (x, y, standard error)} and dashed reference levels."""
    picture, axes = _picture()
    _references(axes, references)
    shapes = "osD^v<>" if markers else [""] * 7
    for colour, marker, (label, curve) in zip(CYCLE, shapes, curves.items(), strict=False):
        _curve(axes, *curve, color=colour, marker=marker, label=label)
    _label(axes, xlabel, ylabel, log_x)
    if log_y:
        axes.set_yscale("log")
    if ylim is not None:
        axes.set_ylim(*ylim)
    _legend(picture)
    return picture


@_in_house_style
def bars(
    values: Mapping[str, float],
    ylabel: str,
    *,
    references: Mapping[str, float] | None = None,
    base: float = 0.0,
) -> Picture:
    """One bar per label, from ``base`` up, with dashed reference levels."""
    picture, axes = _picture(height=3.4)
    heights = np.array(list(values.values()), dtype=float) - base
    axes.bar(list(values), heights, 0.55, base, color=[*CYCLE, *CYCLE][: len(values)])
    _references(axes, references)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(ylabel)
    if references:
        _legend(picture)
    return picture


@_in_house_style
def law(laws: Mapping[str, NDArray[np.float64]]) -> Picture:
    """Joint laws of (V, R), one panel each: darker cells are likelier."""
    picture, axes = _picture(len(laws), width=max(5.0, 3.4 * len(laws)), height=3.4)
    panels = np.atleast_1d(axes)
    most = max(table.max() for table in laws.values())
    for panel, (title, table) in zip(panels, laws.items(), strict=True):
        shown = np.where(table > _EMPTY, table, np.nan)
        image = panel.imshow(shown, origin="lower", cmap="Blues", vmin=0, vmax=most)
        panel.set_title(title)
        panel.set_xlabel("taken guesses r")
        panel.grid(visible=False)
        panel.set_xticks(range(len(table)))
        panel.set_yticks(range(len(table)))
        if len(table) <= 6:
            _number_cells(panel, table, most)
    panels[0].set_ylabel("right guesses v")
    picture.colorbar(image, ax=list(panels), shrink=0.9, label="probability")
    return picture


#: Probabilities below this are rounding errors, and their cells stay empty.
_EMPTY = 1e-15


def _number_cells(panel: Axes, table: NDArray[np.float64], most: float) -> None:
    """Write each probability into its cell."""
    for v, r in np.argwhere(table > _EMPTY):
        colour = "white" if table[v, r] > 0.6 * most else "black"
        text = f"{table[v, r]:.2g}"
        panel.text(r, v, text, ha="center", va="center", fontsize=8, color=colour)


_THIN = "\u2009"


def _signs(entries: ArrayLike, between: str = _THIN) -> str:
    """Signs as they are written by hand; 0 is nothing published."""
    words = {-1: "−", 0: "0", 1: "+"}
    return between.join(words[entry] for entry in np.ravel(entries).tolist())


@_in_house_style
def outputs(channel: Channel, names: Sequence[str] | None = None) -> Picture:
    """The exact table P[output | dataset] as a picture, small n only."""
    rows, columns = channel.table.shape
    picture, axes = _picture(height=1.6 + 0.33 * rows)
    image = axes.imshow(channel.table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    between = _THIN if columns <= 8 else "\n"  # stacked where they do not fit side by side
    axes.set_xticks(range(columns), [_signs(s, between) for s in channel.signs])
    if names is None and channel.outputs is not None:
        rows_of = [np.ravel(o).tolist() for o in channel.outputs]
        entries = {entry for row in rows_of for entry in row}
        are_signs = {-1, 0, 1}.issuperset(entries) and -1 in entries
        names = [_signs(o) if are_signs else " ".join(map(str, o)) for o in rows_of]
    axes.set_yticks(range(rows), names or [str(i) for i in range(rows)])
    axes.set_xlabel("dataset s")
    axes.set_ylabel("output o")
    axes.grid(visible=False)
    picture.colorbar(image, ax=axes, label="P[o | s]")
    return picture


@_in_house_style
def heatmap(
    values: ArrayLike,
    columns: Sequence[float],
    rows: Sequence[float],
    xlabel: str,
    ylabel: str,
    label: str,
) -> Picture:
    """A map of numbers over two parameters, the first row at the bottom; the largest is marked."""
    shown = np.asarray(values, dtype=float)
    picture, axes = _picture(
        width=max(5.0, 1.8 + 0.62 * len(columns)), height=1.4 + 0.42 * len(rows)
    )
    image = axes.imshow(shown, origin="lower", cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(columns)), [f"{x:g}" for x in columns])
    axes.set_yticks(range(len(rows)), [f"{y:g}" for y in rows])
    axes.grid(visible=False)
    middle = (np.nanmin(shown) + np.nanmax(shown)) / 2
    best = np.unravel_index(np.nanargmax(shown), shown.shape)
    for j, i in np.argwhere(np.isfinite(shown)):
        axes.text(
            *(i, j, f"{shown[j, i]:.2f}"),
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold" if (j, i) == best else "normal",
            color="white" if shown[j, i] < middle else "black",
        )
    axes.add_patch(
        Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, edgecolor=RED, linewidth=2)
    )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    picture.colorbar(image, ax=axes, label=label)
    return picture


@_in_house_style
def tiles(groups: Mapping[str, Sequence[tuple[str, str]]], colours: Mapping[str, str]) -> Picture:
    """Rows of small tiles, {row: [(text, kind), ...]}, coloured by kind; ``colours`` is the key."""
    widest = max(len(row) for row in groups.values())
    picture, axes = _picture(width=7.5, height=0.9 + 0.42 * len(groups))
    for place, row in enumerate(groups.values()):
        for x, (text, kind) in enumerate(row):
            axes.add_patch(Rectangle((x, place), 0.92, 0.86, color=colours[kind], linewidth=0))
            axes.text(x + 0.46, place + 0.43, text, ha="center", va="center", color="white")
    axes.set_xlim(-0.1, widest)
    axes.set_ylim(len(groups), -0.1)
    axes.set_yticks(np.arange(len(groups)) + 0.43, list(groups))
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    picture.legend(handles, list(colours), loc="outside upper center", ncols=len(colours))
    return picture
