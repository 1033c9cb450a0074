"""Streams depend on seed and key alone; interrupted play stops."""

import numpy as np
import pytest

from oralib import ThresholdGuesser, Xor, one_run
from oralib.ground.streams import BLOCK, play, stream


def test_streams_are_keyed():
    first = stream(1, "a", 2.0).random(4)
    np.testing.assert_array_equal(first, stream(1, "a", 2.0).random(4))
    for other in (stream(2, "a", 2.0), stream(1, "b", 2.0), stream(1, "a", 2.5), stream(1, "a")):
        assert (first != other.random(4)).all()


def test_streams_are_the_same_everywhere():
    """These numbers must never change: committed outputs depend on them."""
    numbers = stream(0, "one-run", 10).integers(1_000_000, size=3).tolist()
    assert numbers == [670448, 664163, 896114]


@pytest.mark.parametrize("trials", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_blocks_are_joined_in_order(trials):
    sizes = []

    def block(size, rng):
        sizes.append(size)
        return np.full(size, rng.random()), np.arange(size)

    values, places = play(block, trials, 1, "key")
    assert len(values) == trials
    assert sum(sizes) == trials
    assert places.tolist() == [i % BLOCK for i in range(trials)]
    expected = [stream(1, "key", i // BLOCK).random() for i in range(trials)]
    np.testing.assert_array_equal(values, expected)


def test_an_error_in_a_block_is_not_hidden():
    def block(size, rng):
        raise RuntimeError("in a block")

    with pytest.raises(RuntimeError, match="in a block"):
        play(block, 10 * BLOCK, 1)


def test_an_interrupt_cancels_what_has_not_begun():
    started = []

    def block(size, rng):
        started.append(size)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(block, 10_000 * BLOCK, 1)
    assert len(started) < 10_000


def test_zero_has_no_sign():
    counts = [one_run(Xor(), ThresholdGuesser(x), 8, trials=20, seed=1) for x in (0.0, -0.0)]
    assert counts[0].v.tolist() == counts[1].v.tolist()
