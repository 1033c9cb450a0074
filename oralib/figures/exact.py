"""Pictures of what is exact: tables of a mechanism, laws of counts, the chain of gaps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from oralib import _check
from oralib.bounds import p
from oralib.channel import Channel
from oralib.figures.style import (
    CYCLE,
    GREY,
    Picture,
    draw_legend,
    in_house_style,
    label_axes,
    new_picture,
    require_some,
)

#: What is reached, and the three gaps up to what privacy allows, in light tones of the colours that
#: ``oralib.drawings.three_gaps`` has for them.
_PARTS = (
    ("the best guesser", GREY),
    ("(1) few exposed", "#80B8D8"),
    ("(2) rare outputs", "#EAAE80"),
    ("(3) interference", "#80CEB9"),
)


def _short(value: float) -> str:
    """0.625, but 0.50 and not 0.500."""
    text = f"{value:.3f}"
    return text.removesuffix("0")


@in_house_style
def gap_chain(channels: Mapping[str, Channel], k: int | Sequence[int] | None = None) -> Picture:
    """Theorems 5.1 and 5.2: how far the best guesser comes, and which gap takes the rest.

    A row for each mechanism. The dark part is the optimal efficacy, above the ½ of blind guessing;
    the other parts are the three gaps between it and p(ε).

    Parameters
    ----------
    k : the number of guesses, by default all n; or one for each row.

    Examples
    --------
    >>> from oralib import Count, Xor, channel
    >>> picture = gap_chain({"Count": channel(Count(), 4), "XOR": channel(Xor(), 4)})
    """
    require_some("channels", channels, "row")
    picture, axes = new_picture(height=1.5 + 0.46 * len(channels))
    if k is not None and not isinstance(k, Sequence | np.ndarray):
        k = _check.integer("k", k, 1)
    guesses = [k] * len(channels) if k is None or isinstance(k, int) else list(k)
    if len(guesses) != len(channels):
        raise ValueError(f"k must be a number, or one for each of {len(channels)} rows, got k={k}")
    for place, (channel, taken) in enumerate(zip(channels.values(), guesses, strict=True)):
        levels = [
            0.5,
            channel.optimal_efficacy(taken),
            channel.ac_ddp,
            float(p(channel.ddp)),
            float(p(channel.epsilon)),
        ]
        for (name, colour), left, right in zip(_PARTS, levels[:-1], levels[1:], strict=True):
            label = name if place == 0 else f"_{name}"  # one entry in the legend
            width = max(right - left, 0.0)
            axes.barh(place, width, 0.62, left, color=colour, label=label, edgecolor="white")
        axes.plot([levels[-1]] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1.6)
        fits = levels[1] > 0.55  # in the bar; a short one has its number after it
        axes.text(
            *(levels[1] + (-0.006 if fits else 0.006), place, _short(levels[1])),
            ha="right" if fits else "left",
            va="center",
            color="white" if fits else "black",
        )
    axes.plot([], [], color="black", linewidth=1.6, label="p(ε): what privacy allows")
    axes.set_yticks(range(len(channels)), list(channels))
    axes.invert_yaxis()
    axes.set_xlim(0.5, 1.02)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"accuracy of the best {_guesses(k)}" if isinstance(k, int) else "accuracy")
    draw_legend(picture, 3)
    return picture


def _guesses(k: int) -> str:
    return "guess" if k == 1 else f"{k} guesses"


@in_house_style
def mass(
    laws: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str, ylabel: str = "probability"
) -> Picture:
    """Probabilities of whole numbers, {label: (values, probabilities)}, as bars.

    The bars of several laws stand side by side; those of parts of one law, which have no value in
    common, are as wide as if they were one.

    Examples
    --------
    >>> picture = mass({"fair coin": ([0, 1], [0.5, 0.5])}, "heads")
    """
    require_some("laws", laws, "law")
    if len(laws) > len(CYCLE):
        raise ValueError(f"laws must have at most {len(CYCLE)} of them, got {len(laws)}")
    picture, axes = new_picture(height=3.6)
    laws = {label: _added_up(label, *law) for label, law in laws.items()}
    every = [value for values, _ in laws.values() for value in np.ravel(values).tolist()]
    beside = len(laws) if len(set(every)) < len(every) else 1
    width = 0.8 / beside
    for j, (colour, (label, (values, chances))) in enumerate(
        zip(CYCLE, laws.items(), strict=False)
    ):
        shift = (j - (beside - 1) / 2) * width if beside > 1 else 0.0
        axes.bar(np.asarray(values) + shift, chances, width, color=colour, label=label)
    label_axes(axes, xlabel, ylabel)
    axes.grid(visible=False, axis="x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    draw_legend(picture)
    return picture


def _added_up(
    label: str, values: ArrayLike, chances: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Each value once, with all of its probability."""
    x, y = np.ravel(values), np.ravel(np.asarray(chances, dtype=float))
    if x.shape != y.shape:
        raise ValueError(
            f"laws must have a probability for each value, got {x.size} values and {y.size} "
            f"probabilities in {label!r}"
        )
    different, places = np.unique(x, return_inverse=True)
    return different, np.bincount(places, weights=y, minlength=different.size)


@in_house_style
def law(laws: Mapping[str, NDArray[np.float64]]) -> Picture:
    """Joint laws of (V, R), one panel each: darker cells are likelier.

    Examples
    --------
    >>> from oralib import Count, ThresholdGuesser, channel, one_run_law
    >>> picture = law({"Count": one_run_law(channel(Count(), 3), ThresholdGuesser(1.0))})
    """
    require_some("laws", laws, "law")
    for table in laws.values():
        if not isinstance(table, np.ndarray) or table.ndim != 2:
            raise TypeError(f"laws must be tables like those of one_run_law, got {table!r}")
    picture, axes = new_picture(len(laws), width=max(5.0, 3.5 * len(laws)), height=3.5)
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
        panel.text(r, v, text, ha="center", va="center", fontsize=9.5, color=colour)


_THIN = "\u2009"


def _signs(entries: ArrayLike, between: str = _THIN) -> str:
    """Signs as they are written by hand; 0 is nothing published."""
    words = {-1: "−", 0: "0", 1: "+"}
    return between.join(words[entry] for entry in np.ravel(entries).tolist())


@in_house_style
def outputs(channel: Channel, names: Sequence[str] | None = None) -> Picture:
    """The exact table P[output | dataset] as a picture, small n only.

    Examples
    --------
    >>> from oralib import Count, channel
    >>> picture = outputs(channel(Count(), 3))
    """
    rows, columns = channel.table.shape
    picture, axes = new_picture(height=1.6 + 0.33 * rows)
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
