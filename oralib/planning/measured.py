"""How much longer a training takes with canaries, as measured: there is no formula for it."""

from typing import NamedTuple

from oralib.ground.types import Way


class Measured(NamedTuple):
    """How many times as long a step takes with canaries, in two trainings with Opacus."""

    way: Way
    canaries: int
    smaller: float  # with a network of 0.3 million weights
    larger: float  # with one of 4.6 million


#: On an NVIDIA H200, with 50,000 examples, by ``python -m benchmarks.price``.
MEASURED = (
    Measured("examples", 64_000, 1.76, 2.05),
    Measured("sum", 64_000, 1.24, 1.11),
    Measured("sum", 800_000, 1.65, 1.46),
)


def times_as_long(way: Way) -> str:
    """All that was measured for a way in, in words.

    >>> times_as_long("sum")
    'with 64,000 canaries 1.24 and 1.11 times, with 800,000 canaries 1.65 and 1.46 times as long'
    """
    found = (each for each in MEASURED if each.way == way)
    times = (f"with {x.canaries:,} canaries {x.smaller} and {x.larger} times" for x in found)
    return f"{', '.join(times)} as long"
