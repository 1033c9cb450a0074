"""The ideas of the book as pictures: no data, few words, the same colours as the figures.

Each function returns a picture that a notebook shows by itself. Pictures are six inches wide and
their text is large, so that it can still be read on a phone.
"""

from orabook.drawings.audits import (
    idea_of_the_exact_bound,
    one_run_game,
    three_gaps,
    ways_of_feedback,
)
from orabook.drawings.canaries import (
    canaries_in_a_loop,
    canaries_on_coordinates,
    hopping_canaries,
)

__all__ = [
    "canaries_in_a_loop",
    "canaries_on_coordinates",
    "hopping_canaries",
    "idea_of_the_exact_bound",
    "one_run_game",
    "three_gaps",
    "ways_of_feedback",
]
