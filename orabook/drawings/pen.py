"""Pen and paper: all lengths are in inches, from the lower left corner of the picture."""

from typing import Any

from matplotlib.patches import BoxStyle, Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from numpy.typing import ArrayLike

from orabook.figures.style import GREY, ORANGE, Picture, ink_on

__all__ = ["LARGE", "RIGHT", "SMALL", "WIDTH", "WRONG", "Page"]

WIDTH = 6.0  # inches
TEXT = 13  # points, as the next two
SMALL = 12
LARGE = 15
LINE = 1.3  # between lines of text, in units of their size
RIGHT = "✓"
WRONG = "✗"


class Page:
    """An empty picture with axes over all of it, and functions that draw there."""

    def __init__(self, height: float) -> None:
        self.picture = Picture(figsize=(WIDTH, height))
        self.axes = self.picture.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, WIDTH)
        self.axes.set_ylim(0, height)
        self.axes.set_axis_off()

    def say(self, x: float, y: float, text: str, size: float = TEXT, **style: Any) -> None:
        """Write a text whose middle is at height y, in lines at equal distances."""
        lines = text.split("\n")
        em = size / 72  # inches
        look: Any = {"ha": "center", "va": "baseline", "fontsize": size} | style
        for i, line in enumerate(lines):
            above = LINE * em * ((len(lines) - 1) / 2 - i) - 0.35 * em
            self.axes.text(x, y + above, line, **look)

    def disc(self, x: float, y: float, radius: float, **style: Any) -> None:
        self.axes.add_patch(Circle((x, y), radius, **{"linewidth": 1.6, "zorder": 3} | style))

    def bar(self, left: float, floor: float, width: float, height: float, **style: Any) -> None:
        self.axes.add_patch(Rectangle((left, floor), width, height, **{"linewidth": 0} | style))

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a box with round corners around (x, y)."""
        round_corners = BoxStyle.Round(pad=0, rounding_size=0.09)
        look: Any = {"boxstyle": round_corners, "linewidth": 1.6, "zorder": 2} | style
        self.axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **look))

    def sign(self, place: Any, size: Any, text: str, colour: str, points: int = TEXT) -> None:
        """Draw a coloured box with a text in it."""
        x, y = place
        self.box(x, y, *size, facecolor=colour, linewidth=0)
        self.say(x, y, text, points, color=ink_on(colour), fontweight="bold", zorder=4)

    def arrow(self, start: Any, end: Any, **style: Any) -> None:
        look: Any = {"color": GREY, "linewidth": 1.8, "arrowstyle": "-|>", "mutation_scale": 15}
        look |= {"shrinkA": 0, "shrinkB": 0, "zorder": 2} | style
        self.axes.add_patch(FancyArrowPatch(start, end, **look))

    def line(self, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
        look: Any = {"color": GREY, "linewidth": 1.6, "solid_capstyle": "round"}
        self.axes.plot(x, y, **look | style)

    def coin(self, x: float, y: float, included: bool, colour: str) -> None:
        """Draw a coin, full with the word "in", or hollow with the word "out"."""
        self.disc(x, y, 0.2, facecolor=colour if included else "white", edgecolor=colour)
        ink_on_white = "black" if colour == ORANGE else colour  # orange words are too pale
        ink = ink_on(colour) if included else ink_on_white
        self.say(x, y, "in" if included else "out", 11, color=ink, zorder=4, fontweight="bold")

    def guess(self, x: float, y: float, included: bool | None, below: float) -> None:
        """Draw the coin that is guessed; or, for an abstention, three dashes and the word below."""
        if included is not None:
            self.coin(x, y, included, ORANGE)
            return
        self.line([x - 0.118, x + 0.118], [y, y], linewidth=2.6, dashes=(1.5, 1))
        self.say(x, below, "abstains", 11, color=GREY)
