"""The style of the house: colours, the kind of figure that a notebook shows, axes and legends.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, and two darker ones;
the background is opaque, so that axes stay readable on a dark page.
"""

from collections.abc import Callable
from functools import wraps
from io import BytesIO
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from PIL import Image

from orabook.figures.data import Note, table_of, with_data

__all__ = [
    "BLUE",
    "CYCLE",
    "DASHES",
    "GREEN",
    "GREY",
    "LOOKS",
    "ORANGE",
    "PINK",
    "RED",
    "REFERENCES",
    "SKY",
    "STYLE",
    "Curve",
    "Picture",
    "in_house_style",
    "ink_on",
]

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
RED = "#D55E00"
SKY = "#56B4E9"
PINK = "#CC79A7"
GREY = "#555555"
VIOLET = "#6A3D9A"
BROWN = "#8C5A00"
#: The colours of series, in the order in which they are given out.
CYCLE = (BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY, VIOLET, BROWN)

#: The dashes of series, in the order of the colours.
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def _in_turn(*names: str) -> dict[str, tuple[str, Any]]:
    return dict(zip(names, zip(CYCLE, DASHES, strict=False), strict=False))


#: Colour and dashes of series of many pictures: {kind: {beginning of the label: look}}.
LOOKS: dict[str, dict[str, tuple[str, Any]]] = {
    "bound": {
        "exact bound": (BLUE, "-"),
        "Steinke et al.'s bound": (RED, "--"),
        "random-r bound": (GREEN, "-."),
        "anytime bound": (PINK, ":"),
    },
    "feedback": {
        "without feedback": (GREY, "-"),
        "one-way feedback": (VIOLET, "--"),
        "full feedback": (BROWN, "-."),
    },
    "mechanism": _in_turn(
        "randomized response", "Local Laplace", "All or Nothing", "Name and Shame", "Count"
    ),
    "privacy level": _in_turn("ε = 1", "ε = 2", "ε = 4", "ε = 8", "ε = 16"),
}
#: Dashes of reference levels, which are black, by the beginning of the label.
REFERENCES = {"certified ε": "--", "exact ε": ":", "½, blind guessing": ":"}

#: A curve: x and y, or x, y and the standard error of y.
Curve = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 12,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 12,
    "figure.facecolor": "white",
    "font.size": 11.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.9,
    "lines.markersize": 5,
    "savefig.facecolor": "white",
    "text.usetex": False,
}

#: Dots per inch in the file of a picture.
_FILE_DOTS = 200
#: Dots per inch on the page: fewer, as today's screens show more than one dot per pixel.
_PAGE_DOTS = 100


class Picture(Figure):
    """A Matplotlib figure outside pyplot's registry, which a notebook shows as PNG."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notes: list[Note] = []

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = BytesIO()
        with matplotlib.rc_context(STYLE):
            self.savefig(buffer, format="png", dpi=_FILE_DOTS)
        image = Image.open(buffer).convert("RGB")
        # A drawing has few colours; a palette of them takes a third of the room.
        small = with_data(image.quantize(128, dither=Image.Dither.NONE), self.table())
        width, height = (pixels * _PAGE_DOTS // _FILE_DOTS for pixels in image.size)
        return small, {"width": width, "height": height}

    def table(self) -> pd.DataFrame:
        """The numbers that it shows, a row for each; the PNG in a notebook carries them too."""
        return table_of(self.notes)


def in_house_style(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Draw with the settings of the house, whatever those of the caller are."""

    @wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Picture:
        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def ink_on(colour: str) -> str:
    """Choose black or white, whichever is easier to read on a colour."""
    parts = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    contrast_of_black = (luminance + 0.05) / 0.05
    contrast_of_white = 1.05 / (luminance + 0.05)
    return "black" if contrast_of_black > contrast_of_white else "white"
