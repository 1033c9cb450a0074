"""Canaries of DP-SGD on the coordinates of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from matplotlib.colors import to_rgb

from orabook.drawings.pen import SMALL, WIDTH, Sheet
from orabook.figures.style import BLUE, GREY, ORANGE, RED, Picture, in_house_style, ink_on

__all__ = ["canaries_in_a_loop", "canaries_on_coordinates", "hopping_canaries"]


@in_house_style
def canaries_on_coordinates() -> Picture:
    """DP-SGD with one canary on each coordinate, and with four."""
    height = 4.75
    floor = 1.6
    unit = 0.4
    sheet = Sheet(height)
    panels = {
        "one canary on\neach coordinate": "1 0 1 1 0",
        "four canaries on\neach coordinate": "1001 1111 0100 0000 1011",
    }
    texts = ("each stands alone,\nbut they are few", "more of them, but most\nhide each other")
    for left, (title, coordinates), below in zip((0.33, 3.3), panels.items(), texts, strict=True):
        middle = left + 1.21
        sheet.say(middle, height - 0.4, title, 14, fontweight="bold")
        sheet.line([left, left + 2.42], [floor, floor], color="black", linewidth=1.4, zorder=4)
        for x, coins in zip(left + 0.25 + 0.48 * np.arange(5), coordinates.split(), strict=True):
            _coordinate(sheet, x, floor, unit, [int(coin) for coin in coins])
        sheet.say(middle, 0.5, below)
    sheet.say(1.3, floor + 1.72, "noise blurs\nthe sums", color=GREY)
    sheet.arrow((0.98, floor + 1.42), (0.78, floor + 0.55), linewidth=1.4)
    sheet.axes.set_xlim(0, WIDTH)  # images have changed it
    sheet.axes.set_ylim(0, height)
    return sheet.picture


@in_house_style
def hopping_canaries() -> Picture:
    """Nine canaries on three coordinates for four steps, which stay, or hop."""
    height = 3.95
    top = 2.95
    cell = 0.86
    row = 0.52
    sheet = Sheet(height)
    panels = {
        "they stay": ("ABC DEF GHI",) * 4,
        "they hop": ("ABC DEF GHI", "DHB AGF EIC", "FIB CEG HAD", "EAI BHG CDF"),
    }
    texts = ("A meets B and C\nin every step", "A meets others\nin each step")
    for left, (title, steps), below in zip((0.47, 3.34), panels.items(), texts, strict=True):
        middle = left + 1.5 * cell
        sheet.say(middle, height - 0.3, title, 14, fontweight="bold")
        for t, places in enumerate(steps):
            y = top - row * t
            for j, names in enumerate(places.split()):
                _canaries_of_cell(sheet, left + cell * (j + 0.5), y, cell, row, names)
        sheet.say(middle, 0.55, below)
    for t in range(4):
        sheet.say(0.24, top - row * t, str(t + 1), SMALL, color=GREY)
    sheet.say(0.3, top + 0.42, "step", SMALL, color=GREY)
    return sheet.picture


def _canaries_of_cell(
    sheet: Sheet, x: float, y: float, width: float, height: float, names: str
) -> None:
    """Draw a coordinate in a step, with its canaries; the one with A stands out."""
    has_a = "A" in names
    edge = ORANGE if has_a else GREY
    line = 2.4 if has_a else 0.8
    look: Any = {"facecolor": "white", "edgecolor": edge, "linewidth": line}
    sheet.box(x, y, width - 0.06, height - 0.08, **look)
    neighbour = BLUE if has_a else GREY
    for i, name in enumerate(names):
        colour = RED if name == "A" else neighbour
        place = x + 0.255 * (i - 1)
        sheet.disc(place, y, 0.12, color=colour, linewidth=0)
        sheet.say(place, y, name, 11, color=ink_on(colour), zorder=4)


@in_house_style
def canaries_in_a_loop() -> Picture:
    """A step of DP-SGD: checks look at all of it, canaries join the sum and are guessed."""
    sheet = Sheet(3.3)
    parts = ("data", "sample", "clip", "sum", "noise", "step")
    at = dict(zip(parts, 0.52 + 0.99 * np.arange(6), strict=True))
    for part, x in at.items():
        sheet.label((x, 1.75), (0.84, 0.5), part, GREY if part != "noise" else BLUE)
    for part in parts[1:]:
        sheet.arrow((at[part] - 0.56, 1.75), (at[part] - 0.43, 1.75), mutation_scale=9)
    for part in parts[1:]:
        sheet.arrow((at[part], 2.02), (at[part], 2.6), color=ORANGE)
    middle = (at["sample"] + at["step"]) / 2
    sheet.label((middle, 2.88), (4.8, 0.5), "as the accountant was told?", ORANGE)
    sheet.arrow((at["sum"], 0.72), (at["sum"], 1.48), color=RED)
    sheet.say(at["sum"] - 0.75, 1.1, "stay in the sum", SMALL, color=RED)
    sheet.label((1.95, 0.45), (3.7, 0.5), "canaries, each with a coin", RED)
    middle = (at["noise"] + at["step"]) / 2
    sheet.arrow((middle, 1.7), (middle, 0.75), color=BLUE)
    sheet.label((5.02, 0.45), (1.75, 0.5), "guessed coins", BLUE)
    return sheet.picture


def _coordinate(sheet: Sheet, x: float, floor: float, unit: float, coins: Sequence[int]) -> None:
    """Draw the noisy sum of a coordinate, its canaries below and a guesser's verdict above."""
    count = sum(coins)
    canaries = len(coins)
    is_extreme = count in (0, canaries)
    colour = BLUE if is_extreme else GREY
    heights = np.linspace(0, count + 1.0, 200)  # a column that fades as noise blurs its height
    ink = (1.0 if is_extreme else 0.6) * scipy.special.ndtr((count - heights) / 0.33)
    image = np.array([[(*to_rgb(colour), alpha)] for alpha in ink])
    place = x - 0.15, x + 0.15, floor, floor + (count + 1.0) * unit
    look: Any = {"origin": "lower", "aspect": "auto", "interpolation": "bilinear", "zorder": 2}
    sheet.axes.imshow(image, extent=place, **look)
    for i, coin in enumerate(coins):
        across = 0.0 if canaries == 1 else 0.1 * (2 * (i % 2) - 1)
        down = 0.0 if canaries == 1 else 0.21 * (i // 2)
        fill = colour if coin else "white"
        sheet.disc(x + across, floor - 0.22 - down, 0.085, facecolor=fill, edgecolor=colour)
    y = floor + unit * (count + 1)
    verdict = "?"
    if is_extreme:
        verdict = "in" if count else "out"
        if canaries > 1:
            verdict = f"all\n{verdict}"
            y += 0.12
    sheet.say(x, y, verdict, color=colour, fontweight="bold")
