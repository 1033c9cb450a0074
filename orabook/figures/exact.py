"""Pictures of what is exact: tables of a mechanism, laws of counts, the chain of gaps."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from orabook.figures import draw
from orabook.figures.data import note, note_cells
from orabook.figures.style import GREY, Picture, in_house_style
from oralib.bounds import p
from oralib.channels import Channel

#: What is reached, and the three gaps up to what privacy allows, in light tones of the colours that
#: ``orabook.drawings.three_gaps`` has for them.
_PARTS = (
    ("the best guesser", GREY),
    ("(1) few exposed", "#80B8D8"),
    ("(2) rare outputs", "#EAAE80"),
    ("(3) interference", "#80CEB9"),
)


@in_house_style
def gap_chain(channels: Mapping[str, Channel], k: Sequence[int] | None = None) -> Picture:
    """Theorems 5.1 and 5.2: how far the best guesser comes, and which gap takes the rest.

    A row for each mechanism. The dark part is the optimal efficacy, above the ½ of blind guessing;
    the other parts are the three gaps between it and p(ε). ``k`` is the number of guesses of each
    row, by default all n.
    """
    _, axes = draw.picture(height=1.5 + 0.46 * len(channels))
    guesses = [None] * len(channels) if k is None else k
    for place, (row, taken) in enumerate(zip(channels, guesses, strict=True)):
        channel = channels[row]
        allowed = (float(p(level)) for level in (channel.ddp, channel.epsilon))
        levels = [0.5, channel.optimal_efficacy(taken), channel.ac_ddp, *allowed]
        for (name, colour), left, right in zip(_PARTS, levels[:-1], levels[1:], strict=True):
            label = name if place == 0 else f"_{name}"  # one entry in the legend
            width = max(right - left, 0.0)
            axes.barh(place, width, 0.62, left, color=colour, label=label, edgecolor="white")
            note(axes, series=name, x=[left + width], y=row)
        axes.plot([levels[-1]] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1.6)
        best = levels[1]
        # The number stands in the bar; a short one has it behind.
        away, ha, ink = (-0.006, "right", "white") if best > 0.55 else (0.006, "left", "black")
        words = f"{best:.3f}".removesuffix("0")
        axes.text(best + away, place, words, ha=ha, va="center", color=ink)
    axes.plot([], [], color="black", linewidth=1.6, label="p(ε): what privacy allows")
    axes.set_yticks(range(len(channels)), list(channels))
    axes.invert_yaxis()
    axes.set_xlim(0.5, 1.02)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return draw.finish(axes, "accuracy", "", columns=3)


@in_house_style
def mass(laws: Mapping[str, tuple[ArrayLike, ArrayLike]], xlabel: str) -> Picture:
    """Probabilities of whole numbers, {label: (values, probabilities)}, as bars.

    The bars of several laws stand side by side; those of parts of one law, which have no value in
    common, are as wide as if they were one.
    """
    _, axes = draw.picture(height=3.6)
    every = np.concatenate([np.ravel(values) for values, _ in laws.values()])
    beside = len(laws) if np.unique(every).size < every.size else 1
    looks = draw.looks(laws)
    for j, (label, law) in enumerate(laws.items()):
        values, chances = (np.asarray(part, dtype=float) for part in law)
        shift = (j % beside - (beside - 1) / 2) * 0.8 / beside
        axes.bar(values + shift, chances, 0.8 / beside, color=looks[label][0], label=label)
        note(axes, series=label, x=values, y=chances)
    axes.grid(visible=False, axis="x")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return draw.finish(axes, xlabel, "probability")


_THIN = "\u2009"


def _signs(entries: ArrayLike, between: str = _THIN) -> str:
    """Signs as they are written by hand; 0 is nothing published."""
    return between.join("0+−"[entry] for entry in np.ravel(entries).tolist())


@in_house_style
def outputs(channel: Channel) -> Picture:
    """The exact table P[output | dataset] as a picture, small n only."""
    rows, columns = channel.table.shape
    picture, axes = draw.picture(height=1.6 + 0.33 * rows)
    image = axes.imshow(channel.table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    between = _THIN if columns <= 8 else "\n"  # stacked where they do not fit side by side
    axes.set_xticks(range(columns), [_signs(s, between) for s in channel.signs])
    names = [str(i) for i in range(rows)]
    if channel.outputs is not None:
        rows_of = [np.ravel(o).tolist() for o in channel.outputs]
        entries = {entry for row in rows_of for entry in row}
        are_signs = {-1, 0, 1}.issuperset(entries) and -1 in entries
        names = [_signs(o) if are_signs else " ".join(map(str, o)) for o in rows_of]
    axes.set_yticks(range(rows), names)
    note_cells(axes, [_signs(s, between.strip("\n")) for s in channel.signs], names, channel.table)
    draw.labels(axes, "dataset s", "output o")
    axes.grid(visible=False)
    picture.colorbar(image, ax=axes, label="P[o | s]")
    return picture
