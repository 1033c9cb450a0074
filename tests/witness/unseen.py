"""Bugs that neither the witness nor the neighbour test is expected to see, and why.

Written before the seeds were run. What is in this list may pass; whatever else passes breaks the
promise of the table.
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
}
