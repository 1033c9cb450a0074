"""Maximum-likelihood guessers: from privacy losses to guesses of -1, 1, or 0 for an abstention.

The loss is ln P[o | -1] - ln P[o | 1], so the likelier value is minus its sign.
"""

from oralib.guessers.protocol import Guesser, fixed_number
from oralib.guessers.threshold import ThresholdGuesser
from oralib.guessers.top import TopGuesser

__all__ = ["Guesser", "ThresholdGuesser", "TopGuesser", "fixed_number"]
