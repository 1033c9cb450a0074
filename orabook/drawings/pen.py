"""A sheet to draw on: all lengths are in inches, from the lower left corner of the picture."""

from typing import Any

from matplotlib.patches import BoxStyle, Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from numpy.typing import ArrayLike

from orabook.figures.style import GREY, ORANGE, Picture, ink_on

__all__ = ["CROSS", "LARGE", "SMALL", "TICK", "WIDTH", "Sheet"]

#: The width of all pictures in inches.
WIDTH = 6.0
#: The sizes of text in points.
TEXT = 13
SMALL = 12
LARGE = 15
#: The distance of lines of text, in units of the text's size.
LINE = 1.3
#: Half the height of capital letters, in units of the text's size.
HALF_A_CAPITAL = 0.35
#: The marks of what is right or valid, and of what is not.
TICK = "✓"
CROSS = "✗"


class Sheet:
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
            # A text is placed by its base line, so half a capital letter goes below y.
            above = LINE * em * ((len(lines) - 1) / 2 - i) - HALF_A_CAPITAL * em
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

    def label(
        self,
        place: tuple[float, float],
        size: tuple[float, float],
        text: str,
        colour: str,
        points: int = TEXT,
    ) -> None:
        """Draw a coloured box with a text in it."""
        x, y = place
        self.box(x, y, *size, facecolor=colour, linewidth=0)
        self.say(x, y, text, points, color=ink_on(colour), fontweight="bold", zorder=4)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
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

    def guess(self, x: float, y: float, included: bool | None, word_y: float) -> None:
        """Draw the guessed coin; or, for an abstention, three dashes, and a word at ``word_y``."""
        if included is not None:
            self.coin(x, y, included, ORANGE)
            return
        self.line([x - 0.118, x + 0.118], [y, y], linewidth=2.6, dashes=(1.5, 1))
        self.say(x, word_y, "abstains", 11, color=GREY)
