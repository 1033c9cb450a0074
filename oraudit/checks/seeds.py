"""The generator of the noise is not seeded anew while the training runs.

Exact: the seeds that the way in saw. One seed at the start is a matter of secrecy; a seed in
each step lets whoever knows the program take the noise off.
"""

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "seeds"

#: The largest share of steps with a new seed: a loop may be resumed now and then, with a new one.
SHARE_OF_STEPS = 0.02


def check(seen: Seen) -> list[Finding]:
    seeds = {event.number for event in seen.of_kind("seeded")}
    if len(seeds) <= max(1, SHARE_OF_STEPS * seen.steps):
        return []
    text = (
        f"the generator of the noise is seeded anew during the training ({len(seeds)} seeds): who "
        "knows the seeds takes the noise off"
    )
    return [Finding(NAME, text, "less private", number=float(len(seeds)), limit=1.0)]
