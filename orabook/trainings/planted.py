"""Audits with canaries of real trainings, honest ones and some with a planted bug."""

from itertools import product
from typing import Any, Literal
from zlib import crc32

import pandas as pd
from tqdm import tqdm

from orabook.trainings import own_loop
from oralib import noise_multiplier
from oralib.ground.extras import needed
from oraudit import Result

__all__ = ["audited", "columns_of", "planted_bugs"]

Way = Literal["Opacus", "loop"]

#: The canaries of each training, and the noise of all of them.
CANARIES = 1000
SIGMA = noise_multiplier(2.0, 1e-5, own_loop.STEPS, own_loop.SAMPLE_RATE)

#: Trainings with each bug.
RUNS = 5
#: Trainings with half of the noise: more than of others, as a headline gives their share found.
RUNS_OF_BUG = {"0.5 of the noise": 20}
#: Trainings of each honest kind.
HONEST = 8


def planted_bugs(runs: int | None = None, honest: int = HONEST) -> pd.DataFrame:
    """Train with each bug and with none: a row for each training; ten minutes."""
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus
    trainings: list[tuple[Way, str, str, int]] = []
    loop_runs = RUNS if runs is None else runs
    for bug in own_loop.BUGS:
        opacus_runs = RUNS_OF_BUG.get(bug, RUNS) if runs is None else runs
        trainings += product(["Opacus"], [bug], ["SGD"], range(opacus_runs))
        trainings += product(["loop"], [bug], ["SGD"], range(loop_runs))
    trainings += product(["Opacus"], ["none"], _opacus.KINDS, range(honest))
    trainings += product(["loop"], ["none"], ["SGD"], range(loop_runs))
    rows = [audited(*training) for training in tqdm(trainings, disable=None, leave=False)]
    return pd.DataFrame(rows)


def audited(way: Way, bug: str, kind: str, run: int) -> dict[str, Any]:
    """Train and audit once: a row of the table."""
    seed = crc32(f"{way} {bug} {kind} {run}".encode())
    if way == "loop":
        result = own_loop.train(bug, SIGMA, CANARIES, seed)
    else:
        from orabook.trainings import _opacus

        result = _opacus.train(bug, kind, SIGMA, CANARIES, seed)
    return {"way": way, "bug": bug, "training": kind, "run": run} | columns_of(result)


def columns_of(result: Result) -> dict[str, Any]:
    """Return the verdict, the name of the first finding, and the counts."""
    counts = result.counts
    assert counts is not None  # as there are canaries
    assert counts.test is not None  # as the training is stated
    accusing = [finding for finding in result.findings if finding.side != "safer"]
    return {
        "status": result.status,
        "named": accusing[0].name if accusing else "",
        "side": accusing[0].side if accusing else "",
        "right": counts.test.right,
        "guesses": counts.test.guesses,
        "need": counts.test.need,
        "refuted": counts.test.refuted,
        "bound": counts.bound.epsilon,
    }
