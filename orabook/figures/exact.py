"""Pictures of what is exact: tables of a mechanism, laws of counts, the chain of gaps."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from orabook.figures import draw
from orabook.figures.data import note, note_cells
from orabook.figures.style import GREY, Picture, in_house_style
from oralib.bounds import p
from oralib.channels import Channel

__all__ = ["gap_chain", "mass", "outputs"]

#: The parts of a bar of :func:`gap_chain`: the best guesser's, and the three gaps up to what
#: privacy allows, in light tones of their colours in ``orabook.drawings.three_gaps``.
_PARTS = (
    ("the best guesser", GREY),
    ("(1) few exposed", "#80B8D8"),
    ("(2) rare outputs", "#EAAE80"),
    ("(3) interference", "#80CEB9"),
)


@in_house_style
def gap_chain(channels: Mapping[str, Channel], k: Sequence[int] | None = None) -> Picture:
    """Draw Theorems 5.1 and 5.2: the best guesser's accuracy, and which gap takes the rest.

    A row for each mechanism. The dark part is the optimal efficacy, above the ½ of blind guessing;
    the other parts are the three gaps between it and p(ε). ``k`` is the number of guesses of each
    row, by default all n.
    """
    _, axes = draw.picture(height=1.5 + 0.46 * len(channels))
    guesses = [None] * len(channels) if k is None else k
    for place, ((name, channel), k_of_row) in enumerate(
        zip(channels.items(), guesses, strict=True)
    ):
        efficacy = channel.optimal_efficacy(k_of_row)
        allowed = float(p(channel.epsilon))
        levels = [0.5, efficacy, channel.ac_ddp, float(p(channel.ddp)), allowed]
        for (part, colour), left, end in zip(_PARTS, levels[:-1], levels[1:], strict=True):
            label = part if place == 0 else f"_{part}"  # one entry in the legend
            width = max(end - left, 0.0)
            axes.barh(place, width, 0.62, left, color=colour, label=label, edgecolor="white")
            note(axes, series=part, x=[left + width], y=name)
        axes.plot([allowed] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1.6)
        _write_efficacy(axes, efficacy, place)
    axes.plot([], [], color="black", linewidth=1.6, label="p(ε): what privacy allows")
    axes.set_yticks(range(len(channels)), list(channels))
    axes.invert_yaxis()
    axes.set_xlim(0.5, 1.02)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return draw.finish(axes, "accuracy", "", columns=3)


def _write_efficacy(axes: Axes, efficacy: float, place: int) -> None:
    """Write the number into its bar, or behind a short one."""
    text = f"{efficacy:.3f}".removesuffix("0")
    if efficacy > 0.55:
        axes.text(efficacy - 0.006, place, text, ha="right", va="center", color="white")
    else:
        axes.text(efficacy + 0.006, place, text, ha="left", va="center", color="black")


@in_house_style
def mass(laws: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str) -> Picture:
    """Draw probabilities of whole numbers, {label: (values, probabilities)}, as bars.

    The bars of several laws stand side by side; those of parts of one law, which have no value in
    common, are as wide as if they were one.
    """
    _, axes = draw.picture(height=3.6)
    all_values = np.concatenate([np.ravel(values) for values, _ in laws.values()])
    have_common_values = np.unique(all_values).size < all_values.size
    bars = len(laws) if have_common_values else 1  # side by side
    looks = draw.looks(laws)
    for place, (label, law) in enumerate(laws.items()):
        values, chances = (np.asarray(part, dtype=float) for part in law)
        shift = (place % bars - (bars - 1) / 2) * 0.8 / bars
        axes.bar(values + shift, chances, 0.8 / bars, color=looks[label][0], label=label)
        note(axes, series=label, x=values, y=chances)
    axes.grid(visible=False, axis="x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return draw.finish(axes, xlabel, "probability")


_THIN_SPACE = "\u2009"


def _signs(entries: ArrayLike, between: str = _THIN_SPACE) -> str:
    """Write signs as people do by hand; 0 is nothing published."""
    return between.join({0: "0", 1: "+", -1: "−"}[entry] for entry in np.ravel(entries).tolist())


@in_house_style
def outputs(channel: Channel) -> Picture:
    """Draw the exact table P[output | dataset], for small n only."""
    rows, columns = channel.table.shape
    picture, axes = draw.picture(height=1.6 + 0.33 * rows)
    image = axes.imshow(channel.table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    between = _THIN_SPACE if columns <= 8 else "\n"  # stacked where they do not fit side by side
    noted = _THIN_SPACE if columns <= 8 else ""
    axes.set_xticks(range(columns), [_signs(s, between) for s in channel.signs])
    names = [str(i) for i in range(rows)]
    if channel.outputs is not None:
        lists = [np.ravel(output).tolist() for output in channel.outputs]
        entries = {entry for output in lists for entry in output}
        are_signs = {-1, 0, 1}.issuperset(entries) and -1 in entries
        names = [_signs(output) if are_signs else " ".join(map(str, output)) for output in lists]
    axes.set_yticks(range(rows), names)
    note_cells(axes, [_signs(s, noted) for s in channel.signs], names, channel.table)
    draw.labels(axes, "dataset s", "output o")
    axes.grid(visible=False)
    picture.colorbar(image, ax=axes, label="P[o | s]")
    return picture
