"""The idea of an audit, and its limits: the game, its gaps, feedback, and the exact bound."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from orabook.drawings.pen import CROSS, LARGE, SMALL, TICK, WIDTH, Sheet
from orabook.figures.style import BLUE, GREEN, GREY, ORANGE, RED, Picture, in_house_style
from orabook.which_bound import valid_bound
from oralib.bounds import Pure, p
from oralib.ground.types import PLAYED

__all__ = ["idea_of_the_exact_bound", "one_run_game", "three_gaps", "ways_of_feedback"]


@in_house_style
def one_run_game() -> Picture:
    """The one-run game, from the coins at the top to the bound at the bottom."""
    coins = (True, False, False, True, True, False, True, False)
    # The evidence in the output about each element: misleading for the fifth, weak for two.
    evidence = np.array([0.85, 0.04, -0.75, 0.9, -0.7, -0.04, 0.75, -0.85])
    guesses = [None if abs(x) < 0.1 else bool(x > 0) for x in evidence]
    v = sum(guess == coin for guess, coin in zip(guesses, coins, strict=True))
    r = sum(guess is not None for guess in guesses)

    sheet = Sheet(5.98)
    columns = 1.76 + 0.53 * np.arange(len(coins))
    middle = columns.mean()
    span = columns[-1] - columns[0] + 0.56
    rows = {"n fair coins": 5.66, "dataset": 5.04, "output": 3.36, "guesses": 2.48, "right?": 1.92}
    tossed, dataset, output, guessed, compared = rows.values()
    for word, y in rows.items():
        sheet.say(0.12, y, word, ha="left")
    for x, coin in zip(columns, coins, strict=True):
        sheet.coin(x, tossed, coin, BLUE)
        full: Any = {"color": BLUE}
        hollow: Any = {"fill": False, "edgecolor": GREY, "linestyle": ":", "linewidth": 1.3}
        sheet.bar(x - 0.13, dataset - 0.13, 0.26, 0.26, **full if coin else hollow)
    sheet.arrow((middle, dataset - 0.2), (middle, dataset - 0.45))
    sheet.label((middle, 4.28), (span, 0.54), "mechanism, run once", GREY)
    sheet.arrow((middle, 3.98), (middle, 3.73))

    sheet.box(middle, output, span, 0.68, facecolor="white", edgecolor=GREY, linewidth=1)
    x = np.linspace(middle - span / 2 + 0.1, middle + span / 2 - 0.1, 220)
    bumps = np.exp(-(((x[:, None] - columns) / 0.17) ** 2)) @ evidence
    noise = np.random.default_rng(5).normal(0, 0.11, x.size)
    sheet.line(x, output + 0.25 * (bumps + noise), linewidth=1.3, color="black")
    sheet.arrow((middle, 2.99), (middle, 2.73))

    for x, coin, guess in zip(columns, coins, guesses, strict=True):
        sheet.guess(x, guessed, guess, compared)
        if guess is None:
            continue
        mark, colour = (TICK, GREEN) if guess == coin else (CROSS, RED)
        sheet.say(x, compared, mark, 18, color=colour, fontweight="bold")

    sheet.line([middle - span / 2, middle + span / 2], [1.64, 1.64], linewidth=1)
    sheet.say(middle, 1.34, f"v = {v} right of r = {r} taken", 14)
    sheet.arrow((middle, 1.12), (middle, 0.86))
    sheet.label((middle, 0.48), (span, 0.62), "lower bound on ε", GREEN, LARGE)
    return sheet.picture


@in_house_style
def three_gaps() -> Picture:
    """Three reasons why even the best guesser stays below what privacy allows."""
    sheet = Sheet(4.7)
    gaps = {
        "few exposed": "one element\nof many\nis revealed",
        "rare outputs": "one output\nof many tells\neverything",
        "interference": "elements hide\neach other\nin sums",
    }
    colours = (BLUE, RED, GREEN)
    centres = (1.03, 3.0, 4.95)
    y = 3.28
    for x, colour, (name, text) in zip(centres, colours, gaps.items(), strict=True):
        sheet.say(x, 4.42, name, 14, color=colour, fontweight="bold")
        sheet.say(x, 1.83, text)

    for i, j in np.ndindex(5, 5):  # many elements, one of them revealed
        place = centres[0] + 0.33 * (i - 2), y + 0.33 * (j - 2)
        if (i, j) == (3, 3):
            sheet.disc(*place, 0.12, color=BLUE, linewidth=0)
            sheet.disc(*place, 0.2, fill=False, edgecolor=BLUE, linewidth=2)
        else:
            sheet.disc(*place, 0.1, color=GREY, alpha=0.3, linewidth=0)

    for i, j in np.ndindex(3, 3):  # many outputs, one of them full
        place = centres[1] + 0.56 * (i - 1), y + 0.56 * (j - 1)
        if (i, j) == (1, 0):
            sheet.box(*place, 0.54, 0.54, facecolor="white", edgecolor=RED, linewidth=2.2)
            for a, b in np.ndindex(3, 3):
                dot = place[0] + 0.15 * (a - 1), place[1] + 0.15 * (b - 1)
                sheet.disc(*dot, 0.055, color=RED, linewidth=0)
        else:
            sheet.box(*place, 0.46, 0.46, facecolor=GREY, linewidth=0, alpha=0.25)

    total = centres[2], y - 0.5
    for x in centres[2] + 0.37 * np.arange(-2, 3):  # many elements, only their sum is seen
        sheet.line([x, total[0]], [y + 0.5, total[1]], alpha=0.5, zorder=1)
        sheet.disc(x, y + 0.5, 0.155, facecolor="white", edgecolor=GREY)
        sheet.say(x, y + 0.5, "?", SMALL, color=GREY, zorder=4, fontweight="bold")
    sheet.disc(*total, 0.31, facecolor=GREEN, edgecolor="white", linewidth=3)
    sheet.say(*total, "3", 18, color="white", fontweight="bold", zorder=4)

    # A bar of the accuracies, and of the three gaps between them.
    floor = 0.68
    height = 0.36
    edges = (0.3, 2.1, 3.3, 4.5, 5.7)
    shades = ((GREY, 1.0), (BLUE, 0.5), (RED, 0.5), (GREEN, 0.5))
    for start, end, (colour, alpha) in zip(edges[:-1], edges[1:], shades, strict=True):
        sheet.bar(start, floor, end - start, height, color=colour, alpha=alpha)
    sheet.say((edges[0] + edges[1]) / 2, floor + height / 2, "accuracy", color="white")
    for x in (edges[1], edges[-1]):
        sheet.line([x, x], [floor - 0.1, floor + height + 0.1], color="black", linewidth=2)
    sheet.say(edges[1], 0.33, "best guesser")
    sheet.say(edges[-1], 0.33, "what privacy allows", ha="right")
    return sheet.picture


def _worst_law(v: int, r: int, level: float, leaks: float) -> NDArray[np.float64]:
    """The law of the right guesses that most often reaches v, if n δ = ``leaks``."""
    k = np.arange(r + 1)
    law = scipy.stats.binom.pmf(k, r, p(level))  # for δ = 0
    tail = law[v:].sum()
    share = min(1.0, leaks * tail / (v * law[v]))
    return (1 - share) * law + share * np.where(k >= v, law / tail, 0.0)


def _gain_from_a_leak(v: int, r: int, level: float) -> NDArray[np.float64]:
    """The gain in the chance of v right guesses by a leak from j - 1 to j, for j = 1, ..., r."""
    j = np.arange(1, r + 1)
    law = scipy.stats.binom.pmf(np.arange(r + 1), r, p(level))
    at_most = np.cumsum(law)
    at_least = np.cumsum(law[::-1])[::-1]
    gain = at_least[np.maximum(v, j)] * at_most[np.minimum(v, j) - 1]
    return gain / (j * law[j])


@in_house_style
def ways_of_feedback() -> Picture:
    """Kinds of feedback to a guesser, and which bound is valid for ε-DP if r is not fixed."""
    sheet = Sheet(4.5)
    coins = (True, False, False, True, True)
    guesses = (None, False, None, True, False)
    columns = 1.48 + 0.58 * np.arange(len(coins))
    height_of_guesses = 4.15
    height_of_time = 3.53
    heights = (2.9, 2.1, 1.3)

    sheet.say(0.12, height_of_guesses, "guesses", ha="left")
    sheet.say(0.12, height_of_time, "guesser\nis told", ha="left")
    start = (columns[0] - 0.3, height_of_time)
    end = (columns[-1] + 0.38, height_of_time)
    sheet.arrow(start, end, linewidth=1.2)
    sheet.say(columns[-1] + 0.45, height_of_time, "time", SMALL, ha="left", color=GREY)
    for x, guess in zip(columns, guesses, strict=True):
        sheet.guess(x, height_of_guesses, guess, height_of_guesses - 0.27)

    for feedback, y in zip(PLAYED, heights, strict=True):
        name = f"{'without' if feedback == 'none' else feedback}\nfeedback"
        sheet.say(0.12, y, name, ha="left", fontweight="bold")
        for x, coin, guess in zip(columns, coins, guesses, strict=True):
            if feedback == "full" or (feedback == "one-way" and guess is None):
                sheet.coin(x, y, coin, BLUE)
            else:
                sheet.disc(x, y, 0.2, fill=False, edgecolor=GREY, linestyle=":", linewidth=1.3)
        valid = valid_bound(feedback, False, 0.0)
        verdicts = [(TICK, valid, GREEN)]
        if valid != Pure.name:
            verdicts.insert(0, (CROSS, Pure.name, RED))
        for i, (mark, bound, colour) in enumerate(verdicts):
            height = y + 0.17 * (len(verdicts) - 1) - 0.34 * i
            sheet.say(4.27, height, mark, 17, color=colour, fontweight="bold")
            sheet.say(4.46, height, bound, ha="left")
    legend = f"{TICK} valid   {CROSS} not valid   (for δ = 0, r not fixed)"
    sheet.say(WIDTH / 2, 0.42, legend, color=GREY)
    return sheet.picture


@in_house_style
def idea_of_the_exact_bound() -> Picture:
    """The worst (ε, δ)-DP mechanism, which uses all of its δ for the step to the threshold."""
    v = 17
    r = 20
    level = 1.0
    first = 9
    left = 0.5
    pitch = 0.455
    floor = 1.95
    without = _worst_law(v, r, level, 0.0)
    worst = _worst_law(v, r, level, 1.6)
    gains = _gain_from_a_leak(v, r, level)
    sheet = Sheet(5.3)

    def place(count: float) -> float:
        return left + pitch * (count - first)

    scale = 2.1 / without.max()
    for k in range(first, r + 1):
        colour = ORANGE if k >= v else BLUE
        dotted: Any = {"fill": False, "linestyle": ":", "linewidth": 1.4}
        sheet.bar(place(k) - 0.18, floor, 0.36, scale * worst[k], color=colour)
        sheet.bar(place(k) - 0.18, floor, 0.36, scale * without[k], **dotted)
    edges = place(first - 0.5), place(r + 0.5)
    sheet.line(edges, [floor, floor], color="black", linewidth=1.4)
    step = place(v - 0.5)
    sheet.line([step, step], [1.2, 4.4], color="black", linewidth=1.2, dashes=(4, 2))
    sheet.say(place(v), floor - 0.22, "v", LARGE, fontweight="bold")
    sheet.say(edges[0], floor - 0.22, "right guesses →", ha="left")

    sheet.say(1.55, 4.87, "below v: all rarer\nby the same factor", color=BLUE, fontweight="bold")
    sheet.say(5.1, 4.0, "v or more:\nlikelier", fontweight="bold")
    sheet.say(1.0, 3.45, "dotted: δ = 0", color=GREY)
    bent: Any = {"connectionstyle": "arc3,rad=-0.6", "color": RED, "linewidth": 2.4}
    sheet.arrow((place(v - 1), 4.0), (place(v), 4.0), **bent)
    sheet.say(step, 4.87, "all of δ goes\ninto this step", color=RED, fontweight="bold")

    low = 0.3
    for j in range(first + 1, r + 1):
        height = 0.8 * gains[j - 1] / gains.max()
        sheet.bar(place(j - 0.5) - 0.1, low, 0.2, height, color=RED if j == v else GREY)
    sheet.line(edges, [low, low], color="black", linewidth=1.4)
    sheet.say(edges[0], low + 0.78, "gain from one leak", ha="left")
    return sheet.picture
