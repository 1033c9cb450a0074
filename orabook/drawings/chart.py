"""What a guesser is told as it goes, and which bound is valid for an audit."""

from itertools import product
from typing import Any

import numpy as np

from orabook.drawings.pen import LARGE, RIGHT, SMALL, TEXT, WIDTH, WRONG, Page
from orabook.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, Picture, in_house_style
from oralib.bounds.valid import FEEDBACKS, Counts, valid_rule

#: What the chart asks about an audit, in this order: {argument of :func:`bound_for`: {its values:
#: how the chart writes them}}.
QUESTIONS: dict[str, dict[Any, str]] = {
    "coins": {"independent": "yes", "balanced": "no"},
    "feedback": dict(zip(FEEDBACKS, FEEDBACKS, strict=True)),
    "delta": {0.0: "no", 1e-5: "yes"},
    "r_fixed": {True: "yes", False: "no"},
}

#: For each question the middle of its column, and the words above it.
COLUMNS = {
    "coins": (0.6, "fair coin\neach?"),
    "feedback": (1.74, "feedback?"),
    "delta": (2.85, "δ > 0?"),
    "r_fixed": (3.77, "r fixed\nbefore?"),
}
ENDS_AT, ROW = 5.06, 0.5

#: What each rule calls, as the chart writes it.
CALLS = {
    "plain": "epsilon_lower_bound",
    "exact": 'epsilon_lower_bound, method="exact"',
    "any order": 'epsilon_lower_bound, method="any order"',
    "split": "epsilon_lower_bound_random_r",
    "anytime": "epsilon_lower_bound_anytime",
    "lowered": "the same, v - L + 1, beta - nδ / 2L",
}
#: Colours of the ends; those without a bound are grey.
ENDS = {"plain": BLUE, "exact": GREEN, "any order": PINK, "split": ORANGE, "anytime": SKY}


def bound_for(
    *, coins: str = "independent", feedback: str = "none", delta: float = 0.0, r_fixed: bool = False
) -> str:
    """The rule of :func:`oralib.valid_rule` for an audit, or in two words why there is none."""
    v, r = np.array([75]), np.array([100])  # any counts: the rule depends on the rest
    audit = Counts(v, r, n=1000, coins=coins, feedback=feedback, r_fixed=r_fixed)
    try:
        return valid_rule(audit, delta)
    except ValueError as refusal:
        return "none valid" if str(refusal).startswith("no bound is valid") else "none here"


def bound_chart(**answers: Any) -> list[tuple[str, ...]]:
    """The rows of the chart: what is answered to each question, and last which bound is valid.

    Questions that make no difference are left out, and answers that lead to the same bounds share
    a row. The rows are those after the ``answers`` to the first questions.

    >>> bound_chart(coins="independent", feedback="none")
    [('no', 'plain'), ('yes', 'yes', 'exact'), ('yes', 'no', 'split')]
    """
    ends = _ends(answers)
    if len(set(ends)) == 1:
        return [ends[:1]]
    question = list(QUESTIONS)[len(answers)]
    alike: dict[tuple[str, ...], list[Any]] = {}
    for value in QUESTIONS[question]:
        alike.setdefault(_ends(answers | {question: value}), []).append(value)
    rows = []
    for values in alike.values():
        words = " or\n".join(QUESTIONS[question][value] for value in values)
        rows += [(words, *rest) for rest in bound_chart(**answers | {question: values[0]})]
    return rows


def _ends(answers: dict[str, Any]) -> tuple[str, ...]:
    """The bounds for all answers to the questions that are still open."""
    settled = {question: [value] for question, value in answers.items()}
    audits = product(*(QUESTIONS | settled).values())
    return tuple(bound_for(**dict(zip(QUESTIONS, audit, strict=True))) for audit in audits)


@in_house_style
def ways_of_feedback() -> Picture:
    """What the guesser is told as it goes, and which bound is then valid for ε-DP.

    The number of guesses is not fixed in advance.
    """
    page = Page(4.5)
    coins = (True, False, False, True, True)
    guesses = (None, False, None, True, False)
    columns = 1.48 + 0.58 * np.arange(len(coins))
    said, time, *heights = 4.15, 3.53, 2.9, 2.1, 1.3

    page.say(0.12, said, "guesses", ha="left")
    page.say(0.12, time, "is told", ha="left")
    page.arrow((columns[0] - 0.3, time), (columns[-1] + 0.38, time), linewidth=1.2)
    page.say(columns[-1] + 0.45, time, "time", SMALL, ha="left", color=GREY)
    for x, guess in zip(columns, guesses, strict=True):
        page.guess(x, said, guess, said - 0.27)

    for feedback, y in zip(("none", "one-way", "full"), heights, strict=True):
        name = "plain" if feedback == "none" else feedback
        page.say(0.12, y, name, LARGE, ha="left", fontweight="bold")
        for x, coin, guess in zip(columns, coins, guesses, strict=True):
            if feedback == "full" or (feedback == "one-way" and guess is None):
                page.coin(x, y, coin, BLUE)
            else:
                page.hidden_coin(x, y)
        rule = bound_for(feedback=feedback)
        usual = [(RIGHT, "usual bound", GREEN)]
        other = [(WRONG, "usual bound", RED), (RIGHT, f"{rule} bound", GREEN)]
        verdicts = usual if rule == "plain" else other
        for i, (mark, words, colour) in enumerate(verdicts):
            at = y + 0.17 * (len(verdicts) - 1) - 0.34 * i
            page.say(4.27, at, mark, 17, color=colour, fontweight="bold")
            page.say(4.46, at, words, ha="left")
    words = f"{RIGHT} valid   {WRONG} not valid   (δ = 0, r left open)"
    page.say(WIDTH / 2, 0.42, words, color=GREY)
    return page.picture


@in_house_style
def which_bound() -> Picture:
    """Which bound is valid for an audit: from how it was set up to the rule of the library."""
    rows = bound_chart()
    height = 1.39 + 0.29 * len(CALLS) + ROW * len(rows)
    page = Page(height)
    for x, words in (*COLUMNS.values(), (ENDS_AT, "bound")):
        page.say(x, height - 0.35, words, fontweight="bold")
    middles = [x for x, _ in COLUMNS.values()]
    heights: dict[tuple[str, ...], float] = {}  # of the box at the end of each path
    y = height - 0.95
    for *answers, end in rows:
        for depth, x in enumerate(middles[: len(answers)]):
            path = tuple(answers[: depth + 1])
            if path in heights:
                continue  # a row above has drawn it
            heights[path] = y
            if depth:
                corner = middles[depth - 1]
                page.line([corner, corner, x], [heights[path[:-1]], y, y], zorder=1)
            _answer(page, x, y, path[-1])
        page.line([middles[len(answers) - 1], ENDS_AT], [y, y], zorder=1)
        colour = ENDS.get(end.removesuffix(" lowered"), GREY)
        page.sign((ENDS_AT, y), (1.7, 0.38), end, colour, TEXT if len(end) < 13 else SMALL)
        y -= ROW
    y -= 0.05
    page.say(0.15, y, "valid_lower_bound calls", SMALL, ha="left", family="monospace")
    for i, (rule, call) in enumerate(CALLS.items(), start=1):
        page.say(0.15, y - 0.29 * i, rule, SMALL, ha="left", fontweight="bold")
        page.say(1.17, y - 0.29 * i, call, SMALL, ha="left", family="monospace")
    return page.picture


def _answer(page: Page, x: float, y: float, words: str) -> None:
    lines = words.split("\n")
    wide, tall = 0.36 + 0.095 * max(map(len, lines)), 0.34 + 0.14 * (len(lines) - 1)
    page.box(x, y, wide, tall, facecolor="white", edgecolor=GREY)
    page.say(x, y, words, SMALL, zorder=4)
