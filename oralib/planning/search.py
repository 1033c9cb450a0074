"""The search for a plan, and what to expect of it."""

from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oralib import _check
from oralib._rounding import first_largest
from oralib._types import AIMS, WAYS, Aim, Way
from oralib.accounting import ACCOUNTANTS, certified_epsilon, noise_multiplier
from oralib.bounds import valid_lower_bound
from oralib.dpsgd import DpSgd
from oralib.dpsgd.hopping import hopping_counts
from oralib.planning.designs import PER_COORDINATE, Claim, Design, designs
from oralib.planning.plan import AuditPlan, Forecast, Outcome
from oralib.planning.refute import NoRefutationError, coordinates_to_refute, find_refutation
from oralib.scores.seen import SEES

#: Numbers of guesses to choose from for the largest bound.
GUESSES = (50, 70, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1500, 2000, 3000, 5000)


class Bug(NamedTuple):
    """What may be wrong with a training run: in which part of it, and how it then looks."""

    part: str
    noise: float = 1.0  # as a share of the stated one
    norm: float = 1.0  # of a canary's gradient, in clipping thresholds


BUGS = {
    "none": Bug("noise"),
    "half the noise": Bug("noise", noise=0.5),
    "a tenth of the noise": Bug("noise", noise=0.1),
    "no clipping": Bug("clipping", norm=3.0),
}

#: How often a plan to refute may double its coordinates.
_DOUBLINGS = 4

#: By default no more canaries than this are planned.
MOST_CANARIES = 10**6

#: The weights, and at most the canaries, of a plan for a large bound in which both are free.
FREE = 100_000, 800_000


def plan_audit(
    epsilon: float | None,
    delta: float,
    *,
    d: int | None = None,
    steps: int,
    sample_rate: float,
    beta: float = 0.05,
    canaries: int | None = None,
    sigma: float | None = None,
    accountant: str = "rdp",
    aim: Aim = "bound",
    way: Way = "sum",
    trials: int = 40,
    seed: int = 0,
) -> AuditPlan:
    """The best audit that we can plan for a training run with an (ε, δ) claim.

    Parameters
    ----------
    epsilon, delta : float
        The claim; if ε is None it is what the accountant computes from the noise.
    d : int or None
        The coordinates for the canaries, weights that the audit adds. By default enough to refute
        the claim for most bugs of :func:`expected_outcomes`, if that is the aim; for a large bound
        one for each canary, at most 100,000, with 800,000 canaries if their number is free, too.
    steps, sample_rate : int, float
        The training, as in :class:`oralib.DpSgd`.
    beta : float
        How often the bound may fail, in (0, 1).
    canaries : int or None
        The largest number of canaries that can be used; by default 150 d, at most a million.
    sigma, accountant : float or None, str
        The claimed noise multiplier; by default the accountant, ``"rdp"`` or ``"pld"`` as in
        :func:`oralib.certified_epsilon`, computes it from the claim.
    aim : str
        ``"bound"``, the largest bound for an honest run; or ``"refute"``, to refute the claim
        if the noise is half of what is stated, or the largest share below that which will do.
    way : str
        How canaries come into the training, as in :class:`oralib.Canaries`: ``"sum"`` costs
        nothing, and ``"examples"`` as much computation as other examples, but tests sampling and
        clipping too.
    trials, seed : int
        Simulated audits of each kind, to say what to expect; with fewer than two there are none.

    Examples
    --------
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=2)
    >>> plan.guesses <= plan.design.dpsgd.n
    True
    """
    beta, delta = _check.beta_and_delta(beta, _check.real("delta", delta, 0, 1, interval="()"))
    steps = _check.integer("steps", steps, 1, 10**6)
    sample_rate = _check.real("sample_rate", sample_rate, 1e-12, 1)
    trials, seed = _check.integer("trials", trials, 0, 10**6), _check.seed(seed)
    _check.one_of("accountant", accountant, ACCOUNTANTS)
    _check.one_of("aim", aim, AIMS)
    _check.one_of("way", way, WAYS)
    epsilon, training = _claimed(epsilon, sigma, (delta, steps, sample_rate), accountant)
    claim = Claim(epsilon, delta, beta)
    if canaries is not None:
        canaries = _check.integer("canaries", canaries, 1)
    if d is not None:
        d = _check.integer("d", d, 1, 10**8)
    if aim == "bound" and way == "examples" and canaries is None and d is None:
        raise ValueError("canaries or d must be given for aim='bound' and way='examples'")
    room = canaries, d
    try:
        plan = _plan(training, claim, room, aim, way, seed)
    except NoRefutationError as error:
        few = canaries is not None and (d is None or canaries < PER_COORDINATE[-1] * d)
        name = "canaries" if few else "beta" if d is None else "d"
        still = _plan(training, claim, room, "bound", way, seed).forecast.predicted
        seen = ", ".join(part for part, ways in SEES.items() if way in ways)
        raise NoRefutationError(
            f"{name} must be larger: {error}. With aim bound expect a bound of {still:.2f}, and "
            f"checks of {seen}"
        ) from None
    if plan.design.affordable(trials):
        outcomes = expected_outcomes(plan, trials=trials, seed=seed)
        forecast = replace(plan.forecast, outcomes=outcomes)
        if aim == "refute":  # as often as the table says, which more audits made
            (refuted,) = (each.refuted for each in outcomes if each.bug == _less(forecast.noise))
            forecast = replace(forecast, refuted=refuted)
        plan = replace(plan, forecast=forecast)
    return plan


def _plan(
    training: DpSgd,
    claim: Claim,
    room: tuple[int | None, int | None],
    aim: Aim,
    way: Way,
    seed: int,
) -> AuditPlan:
    """The best plan with at most so many canaries and on so many coordinates, if they are given."""
    canaries, d = room
    if d is None and aim == "refute":
        return _plan_with_enough_coordinates(training, claim, canaries, way, seed)
    if d is None:
        canaries = canaries or FREE[1]
        d = min(canaries, FREE[0])
    most = canaries or min(PER_COORDINATE[-1] * d, MOST_CANARIES)
    tried = list(designs(replace(training, d=d), most, way))
    noise, refuted = 1.0, None
    if aim == "refute":
        design, k, noise, refuted = find_refutation(tried, claim, seed)
    else:
        design, k = _largest_bound(tried, claim)
    predicted = float(design.bounds(np.array([k]), claim)[0])
    return AuditPlan(claim, design, k, Forecast(predicted, noise, refuted))


def _plan_with_enough_coordinates(
    training: DpSgd, claim: Claim, canaries: int | None, way: Way, seed: int
) -> AuditPlan:
    """Double the coordinates until nine of ten audits refute the claim, for most bugs."""
    d = coordinates_to_refute(training, claim)
    for left in range(_DOUBLINGS, -1, -1):
        try:
            plan = _plan(training, claim, (canaries, d), "refute", way, seed)
        except NoRefutationError:
            if not left:
                raise
        else:
            outcomes = expected_outcomes(plan, trials=10, seed=seed)
            refuted = [outcome.refuted >= 0.9 for outcome in outcomes if outcome.bug != "none"]
            if 2 * sum(refuted) > len(refuted) or not left:
                break
        d *= 2
    return plan


def expected_outcomes(plan: AuditPlan, *, trials: int = 20, seed: int = 0) -> tuple[Outcome, ...]:
    """What an audit with this plan would show for an honest training run, and for some with bugs.

    Only bugs that canaries can see by their way into the training are listed. The guesser sees from
    the gradients how much noise there is, as :class:`oralib.Canaries` does. Without clipping a
    canary's gradient is three times as large as with it.

    Parameters
    ----------
    plan : AuditPlan
        The plan.
    trials, seed : int
        Simulated audits of each kind, at least two; fewer if they would take too long.

    Examples
    --------
    >>> plan = plan_audit(1.0, 1e-5, d=500, steps=20, sample_rate=0.1, trials=0)
    >>> honest, _, wrong = expected_outcomes(plan, trials=4)
    >>> wrong.bug, honest.refuted, wrong.bound > honest.bound
    ('a tenth of the noise', 0.0, True)
    """
    _check.instance("plan", plan, AuditPlan, "plan_audit(8.0, 1e-5, ...)")
    trials = _check.integer("trials", trials, 2, 10**6)
    claim, noise = plan.claim, plan.forecast.noise
    options = {"trials": max(2, plan.design.affordable(trials)), "seed": seed}
    way = plan.design.way
    bugs = {name: bug for name, bug in BUGS.items() if way in SEES[bug.part]}
    if noise < 1:
        bugs.setdefault(_less(noise), Bug("noise", noise))
    outcomes = []
    for bug, (_, share, norm) in bugs.items():
        design = plan.design.with_noise(share)
        (counts,) = hopping_counts(
            design.dpsgd, [plan.guesses], dropping=design.dropping, norm=norm, **options
        )
        bounds = valid_lower_bound(counts, beta=claim.beta, delta=claim.delta)
        refuted = mean(bounds > claim.epsilon)
        outcomes.append(Outcome(bug, *mean(counts.v), *mean(bounds), *refuted, options["trials"]))
    return tuple(outcomes)


def _less(noise: float) -> str:
    """The name of the bug that there is only this share of the noise."""
    names = {bug.noise: name for name, bug in BUGS.items() if bug.part == "noise"}
    return names.get(noise, f"{noise:g} of the noise")


def mean(values: NDArray[Any]) -> tuple[float, float]:
    """The mean of some trials, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / sqrt(values.size)


def _claimed(
    epsilon: float | None, sigma: float | None, run: tuple[float, int, float], accountant: str
) -> tuple[float, DpSgd]:
    """The ε of a claim, and the training with its noise; one of the two may be missing."""
    delta, steps, sample_rate = run
    if epsilon is not None:
        epsilon = _check.real("epsilon", epsilon, 0, 1000, interval="(]")
    if sigma is None:
        if epsilon is None:
            raise ValueError("epsilon or sigma must be given, got neither")
        sigma = noise_multiplier(epsilon, *run, accountant=accountant)
        return epsilon, DpSgd(1, 1, steps, sample_rate, sigma=sigma)
    training = DpSgd(1, 1, steps, sample_rate, sigma=sigma)
    if epsilon is None:
        return certified_epsilon(sigma, *run, accountant=accountant), training
    # Accountants differ a little, so the tightest that we have judges, with some room.
    certified = certified_epsilon(sigma, *run, accountant="pld")
    if certified > 1.02 * epsilon:
        raise ValueError(
            f"epsilon and sigma must fit together: {sigma=:g}, {steps=}, {sample_rate=:g} and "
            f"{delta=:g} give an epsilon of {certified:.3f} by the tightest accountant here, got "
            f"{epsilon=:g}; leave out sigma or epsilon, or correct it"
        )
    return epsilon, training


def _largest_bound(tried: list[Design], claim: Claim) -> tuple[Design, int]:
    """The design and the number of guesses with the largest predicted bound."""
    found = []
    for design in tried:
        active = design.active_at_the_end
        k = np.array([guesses for guesses in GUESSES if guesses <= active] or [active])
        bounds = design.bounds(k, claim)
        found.append((float(bounds.max()), design, int(k[first_largest(bounds)])))
    return max(found, key=lambda each: each[0])[1:]
