"""What a guesser is told as it goes, and which bound is valid for an audit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orabook.drawings.pen import LARGE, RIGHT, SMALL, TEXT, WIDTH, WRONG, Page
from orabook.figures.style import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, Picture, in_house_style


@dataclass(frozen=True)
class Answer:
    """One answer to a question about an audit, and where it leads.

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
    """A question about how an audit was set up.

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


def _yes_or_no(about: str, **ends: Question | str) -> Question:
    """A question with the answers ``yes`` and ``no``, in the order in which they are given."""
    answers = (Answer((word == "yes",), word, then) for word, then in ends.items())
    return Question(about, tuple(answers))


_SUCCESSES_HIDDEN = _yes_or_no(
    "delta > 0", no="plain", yes=_yes_or_no("r_fixed", yes="exact", no="split")
)


def _successes_told(fixed: str) -> Question:
    return _yes_or_no(
        "delta > 0",
        no=_yes_or_no("r_fixed", yes="plain", no="anytime"),
        yes=_yes_or_no("r_fixed", yes=fixed, no="anytime lowered"),
    )


_FEEDBACK = Question(
    "feedback",
    (
        Answer(("none", "one-way"), "none or\none-way", _SUCCESSES_HIDDEN),
        Answer(("list",), "list", _successes_told("exact")),
        Answer(("full",), "full", _successes_told("any order")),
        Answer(("all others",), "all others", NONE_VALID),
    ),
)

#: The chart of :func:`which_bound`. Its ends are those of :func:`oralib.valid_rule`.
BOUND_CHART = Question(
    "coins", (Answer(("independent",), "yes", _FEEDBACK), Answer(("balanced",), "no", NONE_HERE))
)

#: What each rule calls, as the chart writes it.
CALLS = {
    "plain": "epsilon_lower_bound",
    "exact": 'epsilon_lower_bound, method="exact"',
    "any order": 'epsilon_lower_bound, method="any order"',
    "split": "epsilon_lower_bound_random_r",
    "anytime": "epsilon_lower_bound_anytime",
    "lowered": "the same, beta - n * delta / 2",
}
#: Colours of the ends; those without a bound are grey.
ENDS = {"plain": BLUE, "exact": GREEN, "any order": PINK, "split": ORANGE, "anytime": SKY}


@in_house_style
def ways_of_feedback() -> Picture:
    """What the guesser is told as it goes, and which bound is then valid for ε-DP.

    The number of guesses is not fixed in advance.

    Examples
    --------
    >>> picture = ways_of_feedback()
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
        set_up = {"coins": "independent", "feedback": feedback}
        rule = BOUND_CHART.end(set_up | {"delta > 0": False, "r_fixed": False})
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


def _leaves(then: Question | str) -> int:
    """How many ends a chart has from there on."""
    return 1 if isinstance(then, str) else sum(_leaves(answer.then) for answer in then.answers)


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
    """
    rows = _leaves(BOUND_CHART)
    height = 1.39 + 0.29 * len(CALLS) + ROW * rows
    page = Page(height)
    for x, words in (*COLUMNS.values(), (ENDS_AT, "bound")):
        page.say(x, height - 0.35, words, fontweight="bold")
    top = height - 0.95
    _branch(page, BOUND_CHART, top, start=None)
    y = top - ROW * rows - 0.05
    page.say(0.15, y, "valid_lower_bound calls", SMALL, ha="left", family="monospace")
    for i, (rule, call) in enumerate(CALLS.items(), start=1):
        page.say(0.15, y - 0.29 * i, rule, SMALL, ha="left", fontweight="bold")
        page.say(1.17, y - 0.29 * i, call, SMALL, ha="left", family="monospace")
    return page.picture


def _branch(page: Page, question: Question, top: float, start: tuple[float, float] | None) -> None:
    """Draw a question whose first end is at height ``top``, with lines from ``start``."""
    x = COLUMNS[question.about][0]
    for answer in question.answers:
        if start is not None:
            page.line([start[0], start[0], x], [start[1], top, top], zorder=1)
        if isinstance(answer.then, Question):
            _branch(page, answer.then, top, (x, top))
        else:
            page.line([x, ENDS_AT], [top, top], zorder=1)
            size = TEXT if len(answer.then) < 13 else SMALL
            colour = ENDS.get(answer.then.removesuffix(" lowered"), GREY)
            page.sign((ENDS_AT, top), (1.7, 0.38), answer.then, colour, size)
        lines = answer.words.split("\n")
        wide, tall = 0.36 + 0.095 * max(map(len, lines)), 0.34 + 0.14 * (len(lines) - 1)
        page.box(x, top, wide, tall, facecolor="white", edgecolor=GREY)
        page.say(x, top, answer.words, SMALL, zorder=4)
        top -= ROW * _leaves(answer.then)
