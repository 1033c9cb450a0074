"""How audits of real trainings end, honest ones and some with a bug that was planted."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from tqdm import tqdm

from oralib.canaries import Canaries
from oralib.ground.extras import needed
from oralib.ground.types import WAYS, Way
from oralib.planning import AuditPlan, plan_audit

#: Honest trainings beside plain SGD; ghost clipping only with canaries in the sum.
KINDS = "momentum", "Adam", "schedule", "small batches", "ghost"

CHECKS = "gradient", "noise", "steps", "guesses"


@lru_cache(maxsize=2)
def plan_of(way: Way) -> AuditPlan:
    """The plan of these audits, for a claim of ε = 2: the same design in both ways."""
    run: dict[str, Any] = {"steps": 100, "sample_rate": 0.1, "d": 500, "canaries": 4000}
    return plan_audit(2.0, 1e-5, aim="refute", way=way, **run)


def planted_bugs(ways: Iterable[Way] = WAYS, runs: int = 10, honest: int = 4) -> pd.DataFrame:
    """Train with each bug and with none, and some honest ways more: a row for each training."""
    with needed("torch", "opacus"):
        from orabook.trainings import _opacus
    played = [*product(ways, ["none", *_opacus.BUGS], ["SGD"], range(runs))]
    played += [*product(ways, ["none"], KINDS, range(honest))]
    played = [each for each in played if each[0] == "sum" or each[2] != "ghost"]
    return pd.DataFrame([audited(*each) for each in tqdm(played, disable=None, leave=False)])


def audited(way: Way, bug: str, training: str, run: int) -> dict[str, Any]:
    """Train and audit once: a row of the table.

    ``z_...`` are the checks of the audit, and ``found`` is what found the bug: the bound, which
    then refutes the claim; otherwise the check that is farthest off, if one fails; or nothing.
    """
    from orabook.trainings import _opacus

    plan, seed = plan_of(way), crc32(f"{way} {bug} {training} {run}".encode())
    canaries = _opacus.train(plan, bug, training, seed)
    audit = plan.audit(canaries.scores, canaries.included, canaries.seen)
    seen: Any = audit.seen
    checks = {check.name: check.z for check in seen.checks}
    surest = max(CHECKS, key=lambda name: abs(checks[name]))
    found = {"refuted": "bound", "unlike": surest}.get(audit.status, "nothing")
    row = {"way": way, "bug": bug, "training": training, "run": run, "v": audit.v}
    row |= {"guesses": audit.r, "bound": audit.bound, "status": audit.status}
    return row | {f"z_{name}": checks[name] for name in CHECKS} | {"found": found}


#: Small honest trainings: the claimed ε, coordinates, canaries at most, steps and sample rate.
HONEST = (
    (1.0, 100, 100, 20, 0.1),
    (1.0, 100, 4800, 20, 0.1),
    (4.0, 200, 200, 20, 0.02),
    (4.0, 20, 80, 10, 0.1),
    (8.0, 50, 800, 20, 1.0),
)


def honest_audits(trials: int = 400) -> pd.DataFrame:
    """How many audits of honest trainings, which are simulated, accuse them."""
    rows = []
    for epsilon, d, canaries, steps, sample_rate in HONEST:
        run: dict[str, Any] = {"d": d, "steps": steps, "sample_rate": sample_rate}
        plan = plan_audit(epsilon, 1e-5, canaries=canaries, **run)
        ends = [honest_status(plan, seed) for seed in tqdm(range(trials), disable=None)]
        accused = {name: ends.count(name) for name in ("unlike", "refuted")}
        rows.append(
            run | {"epsilon": epsilon, "n": plan.design.dpsgd.n, "trials": trials} | accused
        )
    return pd.DataFrame(rows)


def honest_status(plan: AuditPlan, seed: int) -> str:
    """How the audit of an honest training ends."""
    canaries, dpsgd = Canaries.from_plan(plan, seed=seed, public_seed=seed), plan.design.dpsgd
    rng = np.random.default_rng([seed, 1])
    for step in range(dpsgd.steps):
        noise = rng.normal(scale=dpsgd.sigma, size=dpsgd.used_coordinates)
        canaries.observe(step, canaries.gradient(step) + noise)
    return plan.audit(canaries.scores, canaries.included, canaries.seen).status
