"""The ideas of the book as pictures: no data, few words, the same colours as the figures.

Each function returns a picture that a notebook shows by itself. Pictures are six inches wide and
their text is large, so that it can still be read on a phone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import BoxStyle, Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from numpy.typing import ArrayLike, NDArray

from oralib import _special
from oralib.bounds import p
from oralib.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    Picture,
    in_house_style,
    ink_on,
)

__all__ = [
    "BOUND_CHART",
    "Answer",
    "Question",
    "canaries_on_coordinates",
    "hopping_canaries",
    "idea_of_the_exact_bound",
    "one_run_game",
    "three_gaps",
    "ways_of_feedback",
    "which_bound",
]

WIDTH = 6.0  # inches
TEXT, SMALL, LARGE = 13, 12, 15  # points
LINE = 1.3  # between lines of text, in units of their size
RIGHT, WRONG = "✓", "✗"


# Pen and paper. All lengths are in inches, from the lower left corner of the picture.


def _sheet(height: float) -> tuple[Picture, Axes]:
    """An empty picture, and axes on all of it."""
    picture = Picture(figsize=(WIDTH, height))
    axes = picture.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, height)
    axes.set_axis_off()
    return picture, axes


def _say(axes: Axes, x: float, y: float, words: str, size: float = TEXT, **style: Any) -> None:
    """Words whose middle is at height y.

    Line by line, since Matplotlib would set lines with and without tails at different distances.
    """
    lines = words.split("\n")
    em = size / 72
    for i, line in enumerate(lines):
        above = LINE * em * ((len(lines) - 1) / 2 - i) - 0.35 * em
        axes.text(x, y + above, line, fontsize=size, **{"ha": "center", "va": "baseline"} | style)


def _disc(axes: Axes, x: float, y: float, radius: float, **style: Any) -> None:
    axes.add_patch(Circle((x, y), radius, **{"linewidth": 1.6, "zorder": 3} | style))


def _bar(axes: Axes, left: float, floor: float, width: float, height: float, **style: Any) -> None:
    axes.add_patch(Rectangle((left, floor), width, height, **{"linewidth": 0} | style))


def _box(axes: Axes, x: float, y: float, width: float, height: float, **style: Any) -> None:
    """A box with round corners around (x, y)."""
    shape = BoxStyle.Round(pad=0, rounding_size=0.09)
    corner = x - width / 2, y - height / 2
    look = {"linewidth": 1.6, "zorder": 2} | style
    axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=shape, **look))


def _sign(
    axes: Axes,
    middle: tuple[float, float],
    width: float,
    height: float,
    words: str,
    colour: str,
    size: float = TEXT,
) -> None:
    """A coloured box with words in it."""
    _box(axes, *middle, width, height, facecolor=colour, linewidth=0)
    _say(axes, *middle, words, size, color=_ink_on(colour), fontweight="bold", zorder=4)


def _ink_on(colour: str) -> str:
    """The colour of words that can be read on a colour."""
    return "black" if colour in (ORANGE, SKY) else "white"


def _arrow(axes: Axes, start: Sequence[float], end: Sequence[float], **style: Any) -> None:
    look: dict[str, Any] = {
        "color": GREY,
        "linewidth": 1.8,
        "arrowstyle": "-|>",
        "mutation_scale": 15,
    }
    look |= {"shrinkA": 0, "shrinkB": 0, "zorder": 2}
    axes.add_patch(FancyArrowPatch((start[0], start[1]), (end[0], end[1]), **look | style))


def _line(axes: Axes, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
    look: dict[str, Any] = {"color": GREY, "linewidth": 1.6, "solid_capstyle": "round"}
    axes.plot(x, y, **look | style)


def _coin(axes: Axes, x: float, y: float, included: bool, colour: str) -> None:
    """A coin, full with the word "in", or hollow with the word "out"."""
    _disc(axes, x, y, 0.2, facecolor=colour if included else "white", edgecolor=colour)
    hollow = "black" if colour == ORANGE else colour  # orange words on white are too pale
    ink = _ink_on(colour) if included else hollow
    _say(axes, x, y, "in" if included else "out", 11, color=ink, zorder=4, fontweight="bold")


def _hidden_coin(axes: Axes, x: float, y: float) -> None:
    _disc(axes, x, y, 0.2, fill=False, edgecolor=GREY, linestyle=":", linewidth=1.3)


def _abstention(axes: Axes, x: float, y: float) -> None:
    """Three dashes."""
    _line(axes, [x - 0.118, x + 0.118], [y, y], linewidth=2.6, dashes=(1.5, 1))


# The one-run game.


@in_house_style
def one_run_game() -> Picture:
    """The one-run game, from the coins at the top to the bound at the bottom.

    Examples
    --------
    >>> picture = one_run_game()
    >>> picture.get_size_inches().tolist()
    [6.0, 5.98]
    """
    coins = (True, False, False, True, True, False, True, False)
    # What the output seems to say of each element; the fifth is a lie, two say nothing.
    seen = np.array([0.85, 0.04, -0.75, 0.9, -0.7, -0.04, 0.75, -0.85])
    guesses = [None if abs(x) < 0.1 else bool(x > 0) for x in seen]
    right = sum(guess == coin for guess, coin in zip(guesses, coins, strict=True))
    taken = sum(guess is not None for guess in guesses)

    picture, axes = _sheet(5.98)
    columns = 1.76 + 0.53 * np.arange(len(coins))
    middle, span = columns.mean(), columns[-1] - columns[0] + 0.56
    rows = {"n fair coins": 5.66, "dataset": 5.04, "output": 3.36, "guesses": 2.48, "right?": 1.92}
    tossed, dataset, output, guessed, compared = rows.values()
    for word, y in rows.items():
        _say(axes, 0.12, y, word, ha="left")
    for x, coin in zip(columns, coins, strict=True):
        _coin(axes, x, tossed, coin, BLUE)
        square = x - 0.13, dataset - 0.13, 0.26, 0.26
        if coin:
            _bar(axes, *square, color=BLUE)
        else:
            _bar(axes, *square, fill=False, edgecolor=GREY, linestyle=":", linewidth=1.3)
    _arrow(axes, (middle, dataset - 0.2), (middle, dataset - 0.45))
    _sign(axes, (middle, 4.28), span, 0.54, "mechanism, run once", GREY)
    _arrow(axes, (middle, 3.98), (middle, 3.73))

    _box(axes, middle, output, span, 0.68, facecolor="white", edgecolor=GREY, linewidth=1)
    x = np.linspace(middle - span / 2 + 0.1, middle + span / 2 - 0.1, 220)
    bumps = np.exp(-(((x[:, None] - columns) / 0.17) ** 2)) @ seen
    noise = np.random.default_rng(5).normal(0, 0.11, x.size)
    _line(axes, x, output + 0.25 * (bumps + noise), linewidth=1.3, color="black")
    _arrow(axes, (middle, 2.99), (middle, 2.73))

    for x, coin, guess in zip(columns, coins, guesses, strict=True):
        if guess is None:
            _abstention(axes, x, guessed)
            _say(axes, x, compared, "abstains", 11, color=GREY)
            continue
        _coin(axes, x, guessed, guess, ORANGE)
        mark, colour = (RIGHT, GREEN) if guess == coin else (WRONG, RED)
        _say(axes, x, compared, mark, 18, color=colour, fontweight="bold")

    _line(axes, [middle - span / 2, middle + span / 2], [1.64, 1.64], linewidth=1)
    _say(axes, middle, 1.34, f"v = {right} right of r = {taken} taken", 14)
    _arrow(axes, (middle, 1.12), (middle, 0.86))
    _sign(axes, (middle, 0.48), span, 0.62, "lower bound on ε", GREEN, LARGE)
    return picture


# The three gaps.


@in_house_style
def three_gaps() -> Picture:
    """Three reasons why even the best guesser stays below what privacy allows.

    Examples
    --------
    >>> picture = three_gaps()
    >>> picture.get_size_inches().tolist()
    [6.0, 4.7]
    """
    picture, axes = _sheet(4.7)
    gaps = {
        "few exposed": "one element\nof many\nis revealed",
        "rare outputs": "one output\nof many tells\neverything",
        "interference": "elements hide\neach other\nin sums",
    }
    colours, centres, y = (BLUE, RED, GREEN), (1.03, 3.0, 4.95), 3.28
    for x, colour, (name, words) in zip(centres, colours, gaps.items(), strict=True):
        _say(axes, x, 4.42, name, 14, color=colour, fontweight="bold")
        _say(axes, x, 1.83, words)

    for i, j in np.ndindex(5, 5):  # many elements, one of them seen
        place = centres[0] + 0.33 * (i - 2), y + 0.33 * (j - 2)
        if (i, j) == (3, 3):
            _disc(axes, *place, 0.12, color=BLUE, linewidth=0)
            _disc(axes, *place, 0.2, fill=False, edgecolor=BLUE, linewidth=2)
        else:
            _disc(axes, *place, 0.1, color=GREY, alpha=0.3, linewidth=0)

    for i, j in np.ndindex(3, 3):  # many outputs, one of them full
        place = centres[1] + 0.56 * (i - 1), y + 0.56 * (j - 1)
        if (i, j) == (1, 0):
            _box(axes, *place, 0.54, 0.54, facecolor="white", edgecolor=RED, linewidth=2.2)
            for a, b in np.ndindex(3, 3):
                dot = place[0] + 0.15 * (a - 1), place[1] + 0.15 * (b - 1)
                _disc(axes, *dot, 0.055, color=RED, linewidth=0)
        else:
            _box(axes, *place, 0.46, 0.46, facecolor=GREY, linewidth=0, alpha=0.25)

    total = centres[2], y - 0.5
    for x in centres[2] + 0.37 * np.arange(-2, 3):  # many elements, only their sum is seen
        _line(axes, [x, total[0]], [y + 0.5, total[1]], alpha=0.5, zorder=1)
        _disc(axes, x, y + 0.5, 0.155, facecolor="white", edgecolor=GREY)
        _say(axes, x, y + 0.5, "?", SMALL, color=GREY, zorder=4, fontweight="bold")
    _disc(axes, *total, 0.31, facecolor=GREEN, edgecolor="white", linewidth=3)
    _say(axes, *total, "3", 18, color="white", fontweight="bold", zorder=4)

    floor, height = 0.68, 0.36  # the accuracies, and the three gaps between them
    edges = (0.3, 2.1, 3.3, 4.5, 5.7)
    _bar(axes, edges[0], floor, edges[1] - edges[0], height, color=GREY)
    _say(axes, (edges[0] + edges[1]) / 2, floor + height / 2, "accuracy", color="white")
    for left, right, colour in zip(edges[1:], edges[2:], colours, strict=False):
        _bar(axes, left, floor, right - left, height, color=colour, alpha=0.5)
    for x in (edges[1], edges[-1]):
        _line(axes, [x, x], [floor - 0.1, floor + height + 0.1], color="black", linewidth=2)
    _say(axes, edges[1], 0.33, "best guesser")
    _say(axes, edges[-1], 0.33, "what privacy allows", ha="right")
    return picture


# Canaries of DP-SGD.


def _noisy_column(
    axes: Axes, x: float, y: float, level: float, unit: float, colour: str, strength: float
) -> None:
    """A column that fades as normal noise blurs its height, which is ``level`` units."""
    spread, most = 0.33, level + 1.0
    heights = np.linspace(0, most, 200)
    image = np.empty((200, 1, 4))
    image[..., :3] = to_rgb(colour)
    image[:, 0, 3] = strength * _special.normal_cdf((level - heights) / spread)
    axes.imshow(
        image,
        extent=(x - 0.15, x + 0.15, y, y + most * unit),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
        zorder=2,
    )


@in_house_style
def canaries_on_coordinates() -> Picture:
    """DP-SGD with one canary on each coordinate, and with four.

    Examples
    --------
    >>> picture = canaries_on_coordinates()
    >>> picture.get_size_inches().tolist()
    [6.0, 4.75]
    """
    height, floor, unit = 4.75, 1.6, 0.4
    picture, axes = _sheet(height)
    panels = {
        "one canary on\neach coordinate": ((1,), (0,), (1,), (1,), (0,)),
        "four canaries on\neach coordinate": (
            *((1, 0, 0, 1), (1, 1, 1, 1), (0, 1, 0, 0)),
            *((0, 0, 0, 0), (1, 0, 1, 1)),
        ),
    }
    words = ("each stands alone,\nbut they are few", "more of them, but most\nhide each other")
    for left, (title, coordinates), below in zip((0.33, 3.3), panels.items(), words, strict=True):
        middle = left + 1.21
        _say(axes, middle, height - 0.4, title, 14, fontweight="bold")
        _line(axes, [left, left + 2.42], [floor, floor], color="black", linewidth=1.4, zorder=4)
        for x, coins in zip(left + 0.25 + 0.48 * np.arange(5), coordinates, strict=True):
            _coordinate(axes, x, floor, unit, coins)
        _say(axes, middle, 0.5, below)
    _say(axes, 1.3, floor + 1.72, "noise blurs\nthe sums", color=GREY)
    _arrow(axes, (0.98, floor + 1.42), (0.78, floor + 0.55), linewidth=1.4)
    axes.set_xlim(0, WIDTH)  # which images have changed
    axes.set_ylim(0, height)
    return picture


@in_house_style
def hopping_canaries() -> Picture:
    """Nine canaries on three coordinates for four steps, which stay, or hop.

    Examples
    --------
    >>> picture = hopping_canaries()
    >>> picture.get_size_inches().tolist()
    [6.0, 3.95]
    """
    height, top, cell, row = 3.95, 2.95, 0.86, 0.52
    picture, axes = _sheet(height)
    panels = {
        "they stay": ("ABC DEF GHI",) * 4,
        "they hop": ("ABC DEF GHI", "DHB AGF EIC", "FIB CEG HAD", "EAI BHG CDF"),
    }
    words = ("A meets B and C\nin every step", "A meets others\nin each step")
    for left, (title, steps), below in zip((0.47, 3.34), panels.items(), words, strict=True):
        middle = left + 1.5 * cell
        _say(axes, middle, height - 0.3, title, 14, fontweight="bold")
        for t, places in enumerate(steps):
            y = top - row * t
            for j, names in enumerate(places.split()):
                x = left + cell * (j + 0.5)
                near = "A" in names
                look: dict[str, Any] = {"facecolor": "white", "edgecolor": ORANGE if near else GREY}
                look["linewidth"] = 2.4 if near else 0.8
                _box(axes, x, y, cell - 0.06, row - 0.08, **look)
                for i, name in enumerate(names):
                    colour = RED if name == "A" else BLUE if near else GREY
                    place = x + 0.255 * (i - 1)
                    _disc(axes, place, y, 0.12, facecolor=colour, edgecolor=colour, linewidth=0)
                    _say(axes, place, y, name, 11, color=ink_on(colour), zorder=4)
        _say(axes, middle, 0.55, below)
    for t in range(4):
        _say(axes, 0.24, top - row * t, str(t + 1), SMALL, color=GREY)
    _say(axes, 0.3, top + 0.42, "step", SMALL, color=GREY)
    return picture


def _coordinate(axes: Axes, x: float, floor: float, unit: float, coins: Sequence[int]) -> None:
    """The noisy sum of a coordinate, its canaries below, and what a guesser makes of it above."""
    count, most = sum(coins), len(coins)
    extreme = count in (0, most)
    colour = BLUE if extreme else GREY
    _noisy_column(axes, x, floor, count, unit, colour, strength=1 if extreme else 0.6)
    for i, coin in enumerate(coins):
        across, down = (0.0, 0.0) if most == 1 else (0.1 * (2 * (i % 2) - 1), 0.21 * (i // 2))
        look = {"facecolor": colour if coin else "white", "edgecolor": colour}
        _disc(axes, x + across, floor - 0.22 - down, 0.085, **look)
    word = ("in" if count else "out") if extreme else "?"
    verdict = word if most == 1 or not extreme else f"all\n{word}"
    y = floor + unit * (count + 1) + (0.12 if most > 1 and extreme else 0)
    _say(axes, x, y, verdict, color=colour, fontweight="bold")


# Feedback, and which bound is valid.


@dataclass(frozen=True)
class Answer:
    """One answer to a question on an audit, and where it leads.

    Attributes
    ----------
    values : the values that it stands for.
    words : how the chart writes it.
    then : the next question; or, at an end of the chart, the rule of the library or a refusal.

    Examples
    --------
    >>> BOUND_CHART.about, [answer.words for answer in BOUND_CHART.answers]
    ('coins', ['yes', 'no'])
    """

    values: tuple[object, ...]
    words: str
    then: "Question | str"


@dataclass(frozen=True)
class Question:
    """A question on how an audit was set up.

    Attributes
    ----------
    about : an attribute of ``Counts``, or "delta > 0".
    answers : all answers there are, from top to bottom.

    Examples
    --------
    >>> audit = {"coins": "independent", "feedback": "none", "delta > 0": True, "r_fixed": True}
    >>> BOUND_CHART.end(audit)
    'exact'
    """

    about: str
    answers: tuple[Answer, ...]

    def end(self, audit: Mapping[str, object]) -> str:
        """Where the chart ends for an audit {about: value}."""
        value = audit[self.about]
        then = next(answer.then for answer in self.answers if value in answer.values)
        return then.end(audit) if isinstance(then, Question) else then


#: Where the library refuses to give a bound: none of ours is valid, none can be.
NONE_HERE, NONE_VALID = "none here", "none valid"


def _yes(then: Question | str) -> Answer:
    return Answer((True,), "yes", then)


def _no(then: Question | str) -> Answer:
    return Answer((False,), "no", then)


_SUCCESSES_HIDDEN = Question(
    "delta > 0",
    (_no("plain"), _yes(Question("r_fixed", (_yes("exact"), _no("split"))))),
)
_SUCCESSES_TOLD = Question(
    "delta > 0",
    (
        _no(Question("r_fixed", (_yes("plain"), _no("anytime")))),
        _yes(Question("r_fixed", (_yes("plain lowered"), _no("anytime lowered")))),
    ),
)
_FEEDBACK = Question(
    "feedback",
    (
        Answer(("none", "one-way", "list"), "none, list\nor one-way", _SUCCESSES_HIDDEN),
        Answer(("full",), "full", _SUCCESSES_TOLD),
        Answer(("all others",), "all others", NONE_VALID),
    ),
)

#: The chart of :func:`which_bound`. Its ends are those of :func:`oralib.valid_rule`.
BOUND_CHART = Question(
    "coins",
    (Answer(("independent",), "yes", _FEEDBACK), Answer(("balanced",), "no", NONE_HERE)),
)

#: What each rule calls, as the chart writes it.
CALLS = {
    "plain": "epsilon_lower_bound",
    "exact": 'epsilon_lower_bound, method="exact"',
    "split": "epsilon_lower_bound_random_r",
    "anytime": "epsilon_lower_bound_anytime",
    "lowered": "the same, beta - n * delta / 2",
}
#: Colours of the ends.
ENDS = {
    "plain": BLUE,
    "exact": GREEN,
    "split": ORANGE,
    "anytime": SKY,
    "plain lowered": BLUE,
    "anytime lowered": SKY,
    NONE_HERE: GREY,
    NONE_VALID: GREY,
}


@in_house_style
def ways_of_feedback() -> Picture:
    """What the guesser is told on its way, and which bound is then valid for ε-DP.

    The number of guesses is not fixed in advance.

    Examples
    --------
    >>> picture = ways_of_feedback()
    >>> picture.get_size_inches().tolist()
    [6.0, 4.5]
    """
    picture, axes = _sheet(4.5)
    coins = (True, False, False, True, True)
    guesses = (None, False, None, True, False)
    columns = 1.48 + 0.58 * np.arange(len(coins))
    said, time, *heights = 4.15, 3.53, 2.9, 2.1, 1.3

    _say(axes, 0.12, said, "guesses", ha="left")
    _say(axes, 0.12, time, "is told", ha="left")
    _arrow(axes, (columns[0] - 0.3, time), (columns[-1] + 0.38, time), linewidth=1.2)
    _say(axes, columns[-1] + 0.45, time, "time", SMALL, ha="left", color=GREY)
    for x, guess in zip(columns, guesses, strict=True):
        if guess is None:
            _abstention(axes, x, said)
            _say(axes, x, said - 0.27, "abstains", 11, color=GREY)
        else:
            _coin(axes, x, said, guess, ORANGE)

    for feedback, y in zip(("none", "one-way", "full"), heights, strict=True):
        name = "plain" if feedback == "none" else feedback
        _say(axes, 0.12, y, name, LARGE, ha="left", fontweight="bold")
        for x, coin, guess in zip(columns, coins, guesses, strict=True):
            if feedback == "full" or (feedback == "one-way" and guess is None):
                _coin(axes, x, y, coin, BLUE)
            else:
                _hidden_coin(axes, x, y)
        set_up = {"coins": "independent", "feedback": feedback}
        rule = BOUND_CHART.end(set_up | {"delta > 0": False, "r_fixed": False})
        verdicts = [(RIGHT, "usual bound", GREEN)]
        if rule != "plain":
            verdicts = [(WRONG, "usual bound", RED), (RIGHT, f"{rule} bound", GREEN)]
        for i, (mark, words, colour) in enumerate(verdicts):
            at = y + 0.17 * (len(verdicts) - 1) - 0.34 * i
            _say(axes, 4.27, at, mark, 17, color=colour, fontweight="bold")
            _say(axes, 4.46, at, words, ha="left")
    words = f"{RIGHT} valid   {WRONG} not valid   (δ = 0, r left open)"
    _say(axes, WIDTH / 2, 0.42, words, color=GREY)
    return picture


def _leaves(question: Question) -> int:
    """How many ends a chart has."""
    nexts = (answer.then for answer in question.answers)
    return sum(_leaves(then) if isinstance(then, Question) else 1 for then in nexts)


#: Columns of the chart: about, (its middle, the words above it).
COLUMNS = {
    "coins": (0.6, "fair coin\neach?"),
    "feedback": (1.74, "feedback?"),
    "delta > 0": (2.85, "δ > 0?"),
    "r_fixed": (3.77, "r fixed\nbefore?"),
}
ENDS_AT, ROW = 5.06, 0.5


@in_house_style
def which_bound() -> Picture:
    """Which bound is valid for an audit: from how it was set up to the rule of the library.

    Examples
    --------
    >>> picture = which_bound()
    >>> picture.get_size_inches().tolist()
    [6.0, 7.34]
    """
    rows = _leaves(BOUND_CHART)
    height = 1.39 + 0.29 * len(CALLS) + ROW * rows
    picture, axes = _sheet(height)
    for x, words in (*COLUMNS.values(), (ENDS_AT, "bound")):
        _say(axes, x, height - 0.35, words, fontweight="bold")
    top = height - 0.95
    _branch(axes, BOUND_CHART, top, start=None)
    y = top - ROW * rows - 0.05
    _say(axes, 0.15, y, "valid_lower_bound calls", SMALL, ha="left", family="monospace")
    for i, (rule, call) in enumerate(CALLS.items(), start=1):
        _say(axes, 0.15, y - 0.29 * i, rule, SMALL, ha="left", fontweight="bold")
        _say(axes, 1.17, y - 0.29 * i, call, SMALL, ha="left", family="monospace")
    return picture


def _branch(axes: Axes, question: Question, top: float, start: tuple[float, float] | None) -> None:
    """Draw a question whose first end is at height ``top``, with lines from ``start``."""
    x = COLUMNS[question.about][0]
    for answer in question.answers:
        if start is not None:
            _line(axes, [start[0], start[0], x], [start[1], top, top], zorder=1)
        if isinstance(answer.then, Question):
            _branch(axes, answer.then, top, (x, top))
        else:
            _line(axes, [x, ENDS_AT], [top, top], zorder=1)
            size = TEXT if len(answer.then) < 13 else SMALL
            _sign(axes, (ENDS_AT, top), 1.7, 0.38, answer.then, ENDS[answer.then], size)
        lines = answer.words.split("\n")
        wide, tall = 0.36 + 0.095 * max(map(len, lines)), 0.34 + 0.14 * (len(lines) - 1)
        _box(axes, x, top, wide, tall, facecolor="white", edgecolor=GREY)
        _say(axes, x, top, answer.words, SMALL, zorder=4)
        top -= ROW * (_leaves(answer.then) if isinstance(answer.then, Question) else 1)


# The exact bound.


def _worst_law(v: int, r: int, level: float, leaks: float) -> NDArray[np.float64]:
    """The law of the right guesses that most often reaches v, if n δ = ``leaks``."""
    k = np.arange(r + 1)
    plain = _special.binomial_pmf(k, r, p(level))
    tail = plain[v:].sum()
    bought = min(1.0, leaks * tail / (v * plain[v]))
    return (1 - bought) * plain + bought * np.where(k >= v, plain / tail, 0.0)


def _worth_of_a_leak(v: int, r: int, level: float) -> NDArray[np.float64]:
    """How much the chance of v right guesses gains by a leak from j - 1 to j, j = 1, ..., r."""
    j = np.arange(1, r + 1)
    law = _special.binomial_pmf(np.arange(r + 1), r, p(level))
    below, from_here = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    gain = from_here[np.maximum(v, j)] * below[np.minimum(v, j) - 1]
    return gain / (j * law[j])


@in_house_style
def idea_of_the_exact_bound() -> Picture:
    """How the worst (ε, δ)-DP mechanism spends its δ: all of it on the step to the threshold.

    Examples
    --------
    >>> picture = idea_of_the_exact_bound()
    >>> picture.get_size_inches().tolist()
    [6.0, 5.3]
    """
    v, r, level, leaks = 17, 20, 1.0, 1.6
    first, left, pitch, floor = 9, 0.5, 0.455, 1.95
    plain, worst = (_worst_law(v, r, level, x) for x in (0.0, leaks))
    worth = _worth_of_a_leak(v, r, level)
    picture, axes = _sheet(5.3)

    def place(count: float) -> float:
        return left + pitch * (count - first)

    scale = 2.1 / plain.max()
    for k in range(first, r + 1):
        bar = place(k) - 0.18, floor, 0.36
        _bar(axes, *bar, scale * worst[k], color=ORANGE if k >= v else BLUE)
        _bar(axes, *bar, scale * plain[k], fill=False, linestyle=":", linewidth=1.4)
    edges = place(first - 0.5), place(r + 0.5)
    _line(axes, edges, [floor, floor], color="black", linewidth=1.4)
    step = place(v - 0.5)
    _line(axes, [step, step], [1.2, 4.4], color="black", linewidth=1.2, dashes=(4, 2))
    _say(axes, place(v), floor - 0.22, "v", LARGE, fontweight="bold")
    _say(axes, edges[0], floor - 0.22, "right guesses →", ha="left")

    _say(axes, 1.55, 4.87, "below v: all rarer\nby the same factor", color=BLUE, fontweight="bold")
    _say(axes, 5.1, 4.0, "v or more:\nlikelier", fontweight="bold")
    _say(axes, 1.0, 3.45, "dotted: δ = 0", color=GREY)
    start, end = (place(v - 1), 4.0), (place(v), 4.0)
    _arrow(axes, start, end, connectionstyle="arc3,rad=-0.6", color=RED, linewidth=2.4)
    _say(axes, step, 4.87, "all of δ\nbuys this step", color=RED, fontweight="bold")

    low = 0.3
    for j in range(first + 1, r + 1):
        height = 0.8 * worth[j - 1] / worth.max()
        _bar(axes, place(j - 0.5) - 0.1, low, 0.2, height, color=RED if j == v else GREY)
    _line(axes, edges, [low, low], color="black", linewidth=1.4)
    _say(axes, edges[0], low + 0.78, "worth of one leak", ha="left")
    return picture
