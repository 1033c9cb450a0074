"""The chance that a guess is right given all other elements (Section C.3 of the paper).

After a guesser that never abstains, a mechanism is a new one, whose outputs are vectors of signs.
The functions below ask how close this new mechanism is to local randomized response.
"""

import numpy as np
from numpy.typing import NDArray

from oralib import Channel
from oralib.ground import arguments
from oralib.ground.rounding import ROUNDING, snap
from oralib.mechanisms import Signs

__all__ = ["after_guesses", "probably_approximately_rr", "success_given_others"]


def after_guesses(channel: Channel, guesses: Signs) -> Channel:
    """The table of A, which is G after M: its outputs are vectors of guesses, none of them 0.

    ``guesses`` are the guesses at each output, outputs x n.
    """
    array = np.asarray(guesses)
    if array.shape != (len(channel.table), channel.n) or not (np.abs(array) == 1).all():
        raise ValueError(
            f"guesses must be -1 or 1 and have shape {(len(channel.table), channel.n)}, "
            f"got shape {array.shape}"
        )
    row = (array > 0) @ (1 << np.arange(channel.n)[::-1])  # the place among all sign vectors
    table = np.zeros((2**channel.n, 2**channel.n))
    np.add.at(table, row, channel.table)
    return Channel(table, channel.signs)


def success_given_others(channel: Channel) -> NDArray[np.float64]:
    """The probability that entry i of the output is element i, given the others, datasets x n.

    It is for tables whose outputs are sign vectors. Element i itself is a fair coin, so datasets
    that differ only in i have the same entry: over all datasets the others are uniform.
    """
    if channel.outputs is None or channel.outputs.shape != (len(channel.table), channel.n):
        raise ValueError("outputs must be sign vectors of the elements, got other outputs")
    is_right = (channel.outputs[:, None, :] == channel.signs[None]).astype(float)
    success = np.einsum("os,osi->si", channel.table, is_right).reshape(*[2] * channel.n, channel.n)
    for i in range(channel.n):
        entry = success[..., i].mean(axis=i, keepdims=True)
        success[..., i] = np.broadcast_to(entry, success.shape[:-1])
    return np.asarray(snap(success.reshape(-1, channel.n)))


def probably_approximately_rr(
    channel: Channel, epsilon: float, p: float, a: float
) -> NDArray[np.bool_]:
    """Tell for each element whether the table is (p, a)-probably approximately RR_ε in it.

    That is: for a share of at least p of the values of the others, the output has the element
    right with probability at least p(ε) - a.
    """
    epsilon = arguments.real("epsilon", epsilon, 0)
    p = arguments.real("p", p, 0, 1)
    a = arguments.real("a", a, 0, 1)
    goal = 1 / (1 + np.exp(-epsilon)) - a
    share = (success_given_others(channel) >= goal - ROUNDING).mean(axis=0)
    return np.asarray(share >= p - ROUNDING)
