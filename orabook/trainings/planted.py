"""What audits with canaries say of real trainings, honest ones and some with a planted bug."""

from itertools import product
from typing import Any, Literal
from zlib import crc32

import pandas as pd
from tqdm import tqdm

from orabook.trainings import own_loop
from oralib import noise_multiplier
from oralib.ground.extras import needed
from oraudit import Result

Way = Literal["Opacus", "loop"]

#: The canaries of each training, and the noise of all of them.
CANARIES = 1000
SIGMA = noise_multiplier(2.0, 1e-5, own_loop.STEPS, own_loop.SAMPLE_RATE)

#: How often each bug is planted; half of the noise more often, as its share is a headline.
RUNS = 5
MANY = {"0.5 of the noise": 20}
#: How often each kind of honest training is run.
HONEST = 8


def planted_bugs(runs: int | None = None, honest: int = HONEST) -> pd.DataFrame:
    """Train with each bug and with none: a row for each training; ten minutes."""
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus
    played: list[tuple[Way, str, str, int]] = []
    for bug in own_loop.BUGS:
        number = MANY.get(bug, RUNS) if runs is None else runs
        played += product(["Opacus"], [bug], ["SGD"], range(number))
        played += product(["loop"], [bug], ["SGD"], range(RUNS if runs is None else runs))
    played += product(["Opacus"], ["none"], _opacus.KINDS, range(honest))
    played += product(["loop"], ["none"], ["SGD"], range(RUNS if runs is None else runs))
    return pd.DataFrame([audited(*each) for each in tqdm(played, disable=None, leave=False)])


def audited(way: Way, bug: str, kind: str, run: int) -> dict[str, Any]:
    """Train and audit once: a row of the table."""
    seed = crc32(f"{way} {bug} {kind} {run}".encode())
    if way == "loop":
        result = own_loop.train(bug, SIGMA, CANARIES, seed)
    else:
        from orabook.trainings import _opacus

        result = _opacus.train(bug, kind, SIGMA, CANARIES, seed)
    return {"way": way, "bug": bug, "training": kind, "run": run} | said(result)


def said(result: Result) -> dict[str, Any]:
    """The verdict, what the first finding names, and the counts."""
    counts = result.counts
    assert counts is not None  # as there are canaries
    assert counts.test is not None  # as the training is stated
    named = [each for each in result.findings if each.side != "safer"]
    return {
        "status": result.status,
        "named": named[0].name if named else "",
        "side": named[0].side if named else "",
        "right": counts.test.right,
        "guesses": counts.test.guesses,
        "need": counts.test.need,
        "refuted": counts.test.refuted,
        "bound": counts.bound.epsilon,
    }
