"""An example is in its batch once.

Exact: how often the fingerprint of an input comes in its batch; if each comes k times, or a
multiple of k times, in all batches, its gradient is clipped k times and added k times.
"""

from oraudit.findings import Finding
from oraudit.records import Seen

NAME = "copies"

#: Batches of fewer examples may consist of equal ones by chance.
FEWEST_EXAMPLES = 20


def check(seen: Seen) -> list[Finding]:
    copies = seen.batches.copies
    examples = sum(size or 0 for size in seen.batches.sizes)
    if copies < 2 or examples < FEWEST_EXAMPLES * copies:
        return []
    text = f"each example is {copies} times in its batch: it adds up to {copies} C"
    return [Finding(NAME, text, "less private", number=float(copies), limit=1.0)]
