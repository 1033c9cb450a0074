"""Bugs that neither the witness nor the neighbour test is expected to see, and why.

The first part was written before the seeds were run, the second after others had planted bugs.
What is in this list may pass; whatever else passes breaks the promise of the table.
"""

__all__ = ["MOST", "UNSEEN"]

#: No more may be listed.
MOST = 12

UNSEEN: dict[str, str] = {
    "ten records of a person": "which records belong to one person is not in the training",
    "a public seed": "who knows a seed is not in the training; the report says so",
    "three trials, one counted": "trials with accountants of their own; the report names them",
    "highest losses dropped": "no other example changed places in the batches that were tried",
    "rate 2% too high": "60 steps tell rates apart from 4% on",
    "noise cut at 4 σ": "it takes 300,000 numbers to miss those beyond",
    # Planted by a reader of README.
    "five copies of each example of a class": "which examples are copies is known to the data only",
    "a few empty batches are skipped": "among 100 batches chance may have left them out as well",
    "weights begin with a private gradient": "what comes before the first step is not watched",
    "the learning rate falls with the private loss": "public schedules look the same",
}
