"""The probability that the number of right guesses meets a line, if the guesser is told each coin.

For δ = 0 each guess, whatever came before it, is right with probability at most q = p(ε), and the
number of right guesses is at most a random walk. For δ > 0 it meets a line with probability at
most f + c n δ: f is the probability that the walk meets the line, and c is found backwards, from
what a leak can gain at each guess. The any-order bound and the certified anytime bound both come
from this. The chapter *Making adaptive auditing valid* has the proof.
"""

from math import floor, sqrt

import numpy as np

from oralib.ground.binomial import odds
from oralib.ground.jit import jit
from oralib.ground.types import Array

__all__ = ["LARGEST_WALK", "crossing_constants"]

#: The largest number of guesses for bounds with a leak and full feedback, which takes seconds.
LARGEST_WALK = 200_000
#: The least f and 1 - f to divide by: below it they are too small for a double.
_TINY = 1e-300


@jit
def crossing_constants(line: Array, epsilon: float) -> tuple[float, float]:
    """Return (f, c) for the event that line[t] or more of t guesses are right at some t.

    The line begins above 0. A walk that falls far behind is put back to where meeting the line is
    almost as unlikely. This can only raise the chance to meet it, hardly does, and makes the time
    of order n^1.5.
    """
    q, qc = odds(epsilon)
    n = line.size - 1
    far = 2 * sqrt(n * q * qc) + 50
    # By v: f, 1 - f and c for the time t + 1; beyond the line the walk has met it.
    f = np.ones(n + 3)
    g = np.zeros(n + 3)
    c = np.zeros(n + 3)
    behind = max(0, floor(q * n - far))
    f[behind : line[n]] = 0.0
    g[behind : line[n]] = 1.0
    for t in range(n - 1, -1, -1):
        low = max(0, floor(q * t - far))
        if low < behind:  # below `behind` the walk was put back to it
            f[low:behind] = f[behind]
            g[low:behind] = g[behind]
            c[low:behind] = c[behind]
        behind = low
        for v in range(low, min(t + 1, line[t])):
            f_up = f[v + 1]
            g_up = g[v + 1]
            c_up = c[v + 1]
            f_down = f[v]
            g_down = g[v]
            c_down = c[v]
            gain = g_down - g_up if f_up > 0.5 else f_up - f_down
            largest = max(q * c_up + qc * c_down, qc * gain)
            # Each term is compared before it is computed: a division takes longer than the rest.
            if c_up * (g_up + qc * gain) > largest * (g_up + c_up):
                largest = (g_up + qc * gain) / (g_up / c_up + 1)
            if c_up * (f_up - qc * gain) > largest * f_up and f_up > _TINY:
                largest = c_up * (1 - qc * gain / f_up)
            if c_down * qc * (f_down + q * gain) > largest * (f_down * qc + q * c_down):
                largest = (f_down + q * gain) * qc / (f_down * qc / c_down + q)
            if c_down * (g_down - q * gain) > largest * g_down and g_down > _TINY:
                largest = c_down * (1 - q * gain / g_down)
            f[v] = q * f_up + qc * f_down
            g[v] = q * g_up + qc * g_down
            c[v] = largest
        for v in range(line[t], min(line[t + 1], t + 1)):
            f[v] = 1.0
            g[v] = 0.0
            c[v] = 0.0
    return f[0], c[0]
