"""Drawings: readable, in the house style, and right in what they say."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text

import oralib
from ledger.cases import worst_cases
from orabook import drawings
from orabook.drawings.audits import _gain_from_a_leak, _worst_law
from oralib.bounds import Exact, Pure

NAMES = drawings.__all__


@cache
def drawn(name):
    """The picture, drawn once, so that its parts know where they are."""
    picture = getattr(drawings, name)()
    FigureCanvasAgg(picture).draw()
    return picture


def texts(picture):
    """All words, from top to bottom, then from left to right."""
    found = [text for text in picture.findobj(Text) if text.get_visible() and text.get_text()]
    return sorted(found, key=lambda text: (-round(text.get_position()[1], 2), text.get_position()))


def words(picture):
    return [text.get_text() for text in texts(picture)]


def shapes(picture):
    """What stands on the paper, but for arrows and the paper itself."""
    for axes in picture.axes:
        for patch in axes.patches:
            if not isinstance(patch, FancyArrowPatch):
                yield patch


@cache
def extent(artist):
    return artist.get_window_extent(artist.figure.canvas.get_renderer())


def inside(inner, outer, margin=0.0):
    low, high = outer.min + margin, outer.max - margin
    return (inner.min >= low).all() and (inner.max <= high).all()


def around(text, picture):
    """The shapes that hold a text, the smallest first."""
    box = extent(text)
    holding = [shape for shape in shapes(picture) if inside(box, extent(shape))]
    return sorted(holding, key=lambda shape: extent(shape).width * extent(shape).height)


def luminance(colour):
    levels = np.array(to_rgb(colour))
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    dark, bright = sorted([luminance(one), luminance(other)])
    return (bright + 0.05) / (dark + 0.05)


def paper_below(text, picture):
    filled = [shape for shape in around(text, picture) if shape.get_fill()]
    return filled[0].get_facecolor() if filled else "white"


@pytest.mark.parametrize("name", NAMES)
def test_words_are_large_apart_and_uncut(name):
    picture = drawn(name)
    found = texts(picture)
    assert len(found) >= 10
    for one, other in combinations(found, 2):
        assert not extent(one).overlaps(extent(other)), (one, other)
    for text in found:
        box = extent(text)
        assert text.get_fontsize() >= 11, text
        assert inside(box, picture.bbox, margin=4), text
        assert contrast(text.get_color(), paper_below(text, picture)) >= 3, text
        for shape in shapes(picture):
            frame = extent(shape)
            assert inside(box, frame) or not box.overlaps(frame), (text, shape)
        if around(text, picture):
            continue  # which hides whatever is below
        for axes in picture.axes:
            for line in axes.lines:
                path = line.get_transform().transform_path(line.get_path())
                assert not path.intersects_bbox(box, filled=False), (text, line)
            for arrow in axes.patches:
                assert not box.overlaps(extent(arrow)), (text, arrow)


def test_the_game_counts_what_it_shows():
    said = words(drawn("one_run_game"))
    right, wrong, abstained = (said.count(word) for word in ("✓", "✗", "abstains"))
    assert f"v = {right} right of r = {right + wrong} taken" in said
    tossed, guessed = (said.count("in") + said.count("out") - n for n in (right + wrong, 8))
    assert tossed == 8 == guessed + abstained
    assert min(right, wrong, abstained) >= 1


def test_verdicts_on_feedback_are_those_of_the_library():
    said = [word for word in words(drawn("ways_of_feedback")) if word in ("✓", "✗")]
    bounds = [word for word in words(drawn("ways_of_feedback")) if "bound" in word]
    for feedback, place in (("none", slice(1)), ("one-way", slice(1, 2)), ("full", slice(2, 4))):
        rule = oralib.valid_rule(oralib.Counts(7, 10, n=20, feedback=feedback))
        verdict = dict(zip(bounds[place], said[place], strict=True))
        # If both are the same bound, the second entry counts.
        assert verdict == {Pure.name: "✗", rule.name: "✓"}


def test_worst_law_attains_the_exact_p_value():
    for v, r, level, delta in (2, 3, 0.5, 0.02), (1, 3, 0.0, 0.3):
        worst = oralib.channel(worst_cases.ExtremalResponse(level, delta, v, r), 4)
        law = oralib.games.one_run_law(worst, oralib.TopGuesser(r))[: r + 1, r]
        np.testing.assert_allclose(_worst_law(v, r, level, 4 * delta), law, atol=1e-12)
    tail = _worst_law(17, 20, 1.0, 1.6)[17:].sum()
    assert tail == pytest.approx(Exact().p_value(17, 20, epsilon=1.0, delta=0.016, n=100))


def test_a_leak_is_worth_most_at_the_threshold():
    v, r, level = 17, 20, 1.0
    worth = _gain_from_a_leak(v, r, level)
    assert worth.argmax() + 1 == v
    k = np.arange(r + 1)
    luck = _worst_law(v, r, level, 0.0)[v:].sum()
    down, up = np.append(0, worth), np.append(worth, 0)
    np.testing.assert_allclose(k * down - np.exp(level) * (r - k) * up, (k >= v) - luck, atol=1e-12)
