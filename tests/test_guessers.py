"""Guessers against their definitions, and their signs, thresholds, ties and exactly k guesses."""

import numpy as np
import pytest
from zoo import GUESSERS, SMALL, ZOO

import oralib
from oralib import ThresholdGuesser, TopGuesser
from oralib.guessers import Guesser, fixed_number

LOSS = np.array([2.0, -1.0, 0.0, -np.inf, 0.5])


def losses_of_tables():
    """All losses of the small tables of the zoo, no sign or all other signs known; rows of n."""
    rows = []
    for name, n in SMALL:
        table = oralib.channel(ZOO[name][0], n)
        rows += [table.privacy_loss, table.full_knowledge_loss.reshape(-1, n)]
    return [losses[~np.isnan(losses).any(axis=1)] for losses in rows]


def random_losses():
    """Losses without ties, with many ties, and with infinite ones."""
    rng = np.random.default_rng(0)
    rows = []
    for n in (1, 2, 3, 5, 8):
        with_ties = rng.integers(-2, 3, size=(50, n)) / 2
        with_infinite = np.where(rng.random((50, n)) < 0.3, np.inf * rng.choice([-1, 1]), with_ties)
        rows += [rng.normal(size=(50, n)), with_ties, with_infinite]
    return rows


@pytest.mark.parametrize("name", GUESSERS)
def test_guesses_are_those_of_the_definition(name):
    guesser, definition, least_n = GUESSERS[name]
    assert isinstance(guesser, Guesser)
    for losses in [*losses_of_tables(), *random_losses()]:
        n = losses.shape[1]
        if n < least_n:
            continue
        guesses = guesser.guess(losses)
        expected = [definition(row) for row in losses.tolist()]
        np.testing.assert_array_equal(guesses, expected)
        blocks = np.stack([losses, losses[::-1]])
        np.testing.assert_array_equal(guesser.guess(blocks), np.stack([guesses, guesses[::-1]]))
        number = fixed_number(guesser, n)
        assert number is None or (np.count_nonzero(guesses, axis=1) == number).all()


def test_threshold():
    assert ThresholdGuesser(1).guess(LOSS).tolist() == [-1, 1, 0, 1, 0]
    assert ThresholdGuesser(0).guess(LOSS).tolist() == [-1, 1, 1, 1, -1]
    assert ThresholdGuesser(np.inf).guess(LOSS).tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 7.7])
def test_a_loss_of_exactly_tau_is_guessed(epsilon):
    """In spite of rounding: all losses of randomized response are ε, and half of Laplace's."""
    table = oralib.channel(oralib.LocalRandomizedResponse(epsilon), 4)
    assert (ThresholdGuesser(epsilon).guess(table.privacy_loss) != 0).all()
    loss = oralib.LocalLaplace(epsilon).privacy_loss(np.array([1.0, 1.1, 17.3, -4.2, 0.9]), 5)
    assert ThresholdGuesser(epsilon).guess(loss).tolist() == [1, 1, 1, -1, 0]


def test_exactly_k_with_ties():
    assert TopGuesser(2).guess(np.zeros(5)).tolist() == [1, 1, 0, 0, 0]
    assert TopGuesser(3).guess(LOSS).tolist() == [-1, 1, 0, 1, 0]
    assert TopGuesser(5).guess(LOSS).tolist() == [-1, 1, 1, 1, -1]
    many = TopGuesser(2).guess(np.random.default_rng(0).integers(-2, 3, size=(50, 7)))
    assert ((many != 0).sum(axis=-1) == 2).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ThresholdGuesser(-1), r"tau must lie in \[0, inf\], got tau=-1"),
        (lambda: TopGuesser(0), "k must be at least 1, got k=0"),
        (lambda: TopGuesser(6).guess(LOSS), r"k must lie in \[1, 5\], got k=6"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
