"""The search for a plan, and what to expect of it."""

from dataclasses import replace
from math import ceil, expm1, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oralib.accounting import certified_epsilon, noise_multiplier
from oralib.bounds import Counts, valid_lower_bound
from oralib.bounds.refuting import guesses_needed, right_needed
from oralib.dpsgd import DpSgd
from oralib.dpsgd.hopping import hopping_counts
from oralib.ground import arguments
from oralib.ground.rounding import first_largest
from oralib.ground.types import ACCOUNTANTS, AIMS, WAYS, Accountant, Aim, Way
from oralib.planning.designs import PER_COORDINATE, Claim, Design, designs
from oralib.planning.plan import AuditPlan, Forecast, Outcome
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

#: By default no more canaries than this are planned; and weights and, at most, canaries of a plan
#: for a large bound in which both are free.
MOST_CANARIES, FREE = 10**6, (100_000, 800_000)

#: A plan to refute is for the first of these shares of the noise at which it can, with one of these
#: multiples of the least number of guesses that can, and doubles its coordinates so often.
NOISE_SHARES = (0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
MULTIPLES = (1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)
_DOUBLINGS = 4


class NoRefutationError(ValueError):
    """No plan was seen to refute the claim."""


class _Candidate(NamedTuple):
    """A design, numbers of guesses, and how many of them must be right to refute the claim."""

    design: Design
    k: NDArray[np.int64]
    need: NDArray[np.int64]


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
    accountant: Accountant = "rdp",
    aim: Aim = "bound",
    way: Way = "sum",
    trials: int = 40,
    seed: int = 0,
) -> AuditPlan:
    """The best audit that we can plan for a training run with an (ε, δ) claim.

    Parameters
    ----------
    epsilon, delta, beta : float
        The claim, and how often the bound may fail; if ε is None it is computed from the noise.
    d : int or None
        How many weights the audit adds for the canaries. By default, if the aim is to refute,
        enough for most bugs; for a large bound one for each canary, at most 100,000; if
        ``canaries`` is not given either, 100,000 for 800,000 canaries (as examples: an error).
    steps, sample_rate, sigma : int, float, float or None
        The training, as in :class:`oralib.DpSgd`; by default the noise is computed from the claim.
    canaries : int or None
        The largest number of canaries that can be used; by default 150 d, at most a million.
    accountant : str
        Which one computes the noise or ε, ``"rdp"`` or ``"pld"``: :func:`oralib.certified_epsilon`.
    aim : str
        ``"bound"``, the largest bound for an honest run; or ``"refute"``, to refute the claim
        if half of the stated noise was added or, where no plan can do that, a smaller share of it.
    way : str
        How canaries enter the training, as in :class:`oralib.Canaries`: ``"sum"`` costs a few
        ms per step; ``"examples"`` cost as much as others, but test sampling and clipping too.
    trials, seed : int
        Simulated audits of each kind, to say what to expect; with fewer than two there are none.

    Examples
    --------
    >>> plan = plan_audit(2.0, 1e-5, d=100, steps=20, sample_rate=0.1, trials=2)
    >>> plan.guesses <= plan.design.dpsgd.n
    True
    """
    beta, delta = arguments.beta_and_delta(
        beta, arguments.real("delta", delta, 0, 1, interval="()")
    )
    steps = arguments.integer("steps", steps, 1, 10**6)
    sample_rate = arguments.real("sample_rate", sample_rate, 1e-12, 1)
    trials, seed = arguments.integer("trials", trials, 0, 10**6), arguments.seed(seed)
    arguments.one_of("accountant", accountant, ACCOUNTANTS)
    arguments.one_of("aim", aim, AIMS)
    arguments.one_of("way", way, WAYS)
    claim, sigma = _claimed(epsilon, sigma, beta, accountant, (delta, steps, sample_rate))
    training = DpSgd(1, 1, steps, sample_rate, sigma=sigma)
    canaries = None if canaries is None else arguments.integer("canaries", canaries, 1)
    d = None if d is None else arguments.integer("d", d, 1, 10**8)
    try:
        plan = _plan(training, claim, canaries, d, aim, way, seed)
    except NoRefutationError as error:
        few = canaries is not None and (d is None or canaries < PER_COORDINATE[-1] * d)
        name = "canaries" if few else "beta" if d is None else "d"
        still = _plan(training, claim, canaries, d, "bound", way, seed).forecast.predicted
        seen = ", ".join(part for part, ways in SEES.items() if way in ways)
        raise NoRefutationError(
            f"{name} must be larger: {error}. With aim bound expect a bound of {still:.2f}, and "
            f"checks of {seen}"
        ) from None
    if not plan.design.affordable(trials):
        return plan
    outcomes, forecast = expected_outcomes(plan, trials=trials, seed=seed), plan.forecast
    if aim == "refute":  # as often as the table says, which more audits made
        (refuted,) = (each.refuted for each in outcomes if each.bug == _less(forecast.noise))
        forecast = replace(forecast, refuted=refuted)
    return replace(plan, forecast=replace(forecast, outcomes=outcomes))


def _plan(
    training: DpSgd, claim: Claim, most: int | None, d: int | None, aim: Aim, way: Way, seed: int
) -> AuditPlan:
    """The best plan with at most this many canaries and coordinates, where they are given."""
    if d is None and aim == "refute":  # doubled until nine of ten audits refute, for most bugs
        d = coordinates_to_refute(training, claim)
        for left in reversed(range(_DOUBLINGS + 1)):
            try:
                plan = _plan(training, claim, most, d, aim, way, seed)
                _, *bugs = expected_outcomes(plan, trials=10, seed=seed)
                if not left or 2 * sum(bug.refuted >= 0.9 for bug in bugs) > len(bugs):
                    return plan
            except NoRefutationError:
                if not left:
                    raise
            d *= 2
    if d is None:
        if way == "examples" and most is None:
            raise ValueError("canaries or d must be given for aim='bound' and way='examples'")
        most = most or FREE[1]
        d = min(most, FREE[0])
    most = most or min(PER_COORDINATE[-1] * d, MOST_CANARIES)
    tried, best = list(designs(replace(training, d=d), most, way)), -1.0
    forecast = Forecast(0.0)
    if aim == "refute":
        design, k, forecast = find_refutation(tried, claim, seed)
    for each in tried if aim == "bound" else ():
        active = each.active_at_the_end
        some = np.array([guesses for guesses in GUESSES if guesses <= active] or [active])
        bounds = each.bounds(some, claim)
        if bounds.max() > best:
            best, design, k = bounds.max(), each, int(some[first_largest(bounds)])
    predicted = float(design.bounds(np.array([k]), claim)[0])
    return AuditPlan(claim, design, k, replace(forecast, predicted=predicted))


def find_refutation(tried: list[Design], claim: Claim, seed: int) -> tuple[Design, int, Forecast]:
    """The design that refutes at the largest share of the noise, its guesses, and how often."""
    candidates, most = [], max(design.dpsgd.n for design in tried)
    for design in tried:
        n, active = design.dpsgd.n, design.active_at_the_end
        least = guesses_needed(Counts(1, 1, n, r_fixed=True), claim.epsilon, **claim.test)
        if least is not None and least <= active:
            k = np.unique([min(ceil(least * multiple), active) for multiple in MULTIPLES])
            fixed = [Counts(r, r, n, r_fixed=True) for r in k.tolist()]
            need = np.array([right_needed(each, claim.epsilon, **claim.test) for each in fixed])
            candidates.append(_Candidate(design, k, need))
    if not candidates:
        raise NoRefutationError(
            f"refuting an epsilon of {claim.epsilon:g} takes at least {_least_guesses(claim):,} "
            f"guesses, all right, and {most:,} canaries are too few, or too many for its delta"
        )
    for noise in NOISE_SHARES:
        for candidate in _most_promising(candidates, noise):
            guesses, refuted = _simulated(candidate, noise, seed)
            if refuted >= 0.5:
                return candidate.design, guesses, Forecast(0.0, noise, refuted)
    dpsgd, least = candidates[0].design.dpsgd, candidates[0].k[0]
    enough = max(coordinates_to_refute(dpsgd, claim), 2 * dpsgd.d)
    raise NoRefutationError(
        f"no plan for {dpsgd.d:,} coordinates and at most {most:,} canaries was seen to refute an "
        f"epsilon of {claim.epsilon:g}, even with {NOISE_SHARES[-1]:g} of the stated noise. It "
        f"takes {least:,} guesses, nearly all right; try d={enough}, and at least as many canaries"
    )


def coordinates_to_refute(training: DpSgd, claim: Claim) -> int:
    """How many coordinates to begin with: five in a batch for each guess that is needed.

    Half as many refuted a claim of 8 with very little noise, but never one without clipping.
    """
    seen = -expm1(training.steps * log1p(-min(training.sample_rate, 0.999)))
    many = 5 * _least_guesses(claim) / seen
    unit = 10 ** max(len(str(int(many))) - 2, 0)
    return ceil(many / unit) * unit


def _least_guesses(claim: Claim) -> int:
    """The least number of guesses that can refute a claim at δ = 0: less than at any other δ."""
    any_audit = Counts(1, 1, 1, r_fixed=True)
    return guesses_needed(any_audit, claim.epsilon, delta=0.0, beta=claim.beta) or 10**7


def _most_promising(candidates: list[_Candidate], noise: float) -> list[_Candidate]:
    """The three with the largest predicted margins, and one more in which canaries are alone.

    Predictions are too kind to canaries that share a coordinate; simulating a design takes seconds.
    """
    margins = [float(each.design.with_noise(noise).margins(*each[1:]).max()) for each in candidates]
    order = sorted(range(len(candidates)), key=lambda i: -margins[i])
    able = [candidates[i] for i in order if margins[i] > 0]
    quick = [each for each in able if each.design.affordable(2)] or able
    alone = [each for each in quick[3:] if each.design.dpsgd.per_coordinate == 1]
    return quick[:3] + alone[:1]


def _simulated(candidate: _Candidate, noise: float, seed: int) -> tuple[int, float]:
    """The best number of guesses of a candidate, and how often it refutes the claim."""
    design = candidate.design.with_noise(noise)  # which the guesser has learned from the gradients
    options: dict[str, Any] = {"dropping": design.dropping, "trials": max(2, design.affordable(10))}
    counts = hopping_counts(design.dpsgd, candidate.k[::-1].tolist(), **options, seed=seed)
    spare = np.array([each.v for each in counts[::-1]]) - candidate.need[:, None]
    i = max(range(len(spare)), key=lambda i: ((spare[i] >= 0).mean(), spare[i].mean()))
    k = int(candidate.k[i])
    # The best of several may have been lucky, so another seed says how often it refutes.
    (again,) = hopping_counts(design.dpsgd, [k], **options, seed=seed + 1)
    return k, float((again.v >= candidate.need[i]).mean())


def expected_outcomes(plan: AuditPlan, *, trials: int = 20, seed: int = 0) -> tuple[Outcome, ...]:
    """What an audit with this plan would show for an honest training run, and for some with bugs.

    Only bugs that canaries can see, given how they enter the training, are listed. The guesser sees
    from the gradients how much noise there is, as :class:`oralib.Canaries` does. For missing
    clipping we simulate gradients three times as large. Trials that take too long are left out.

    Examples
    --------
    >>> plan = plan_audit(1.0, 1e-5, d=500, steps=20, sample_rate=0.1, trials=0)
    >>> honest, _, wrong = expected_outcomes(plan, trials=4)
    >>> wrong.bug, honest.refuted, wrong.bound > honest.bound
    ('a tenth of the noise', 0.0, True)
    """
    arguments.instance("plan", plan, AuditPlan, "plan_audit(8.0, 1e-5, ...)")
    claim, noise, outcomes = plan.claim, plan.forecast.noise, []
    trials = max(2, plan.design.affordable(arguments.integer("trials", trials, 2, 10**6)))
    options: dict[str, Any] = {"dropping": plan.design.dropping, "trials": trials, "seed": seed}
    bugs = {name: bug for name, bug in BUGS.items() if plan.design.way in SEES[bug.part]}
    if noise < 1:
        bugs.setdefault(_less(noise), Bug("noise", noise))
    for name, (_, share, norm) in bugs.items():
        dpsgd = plan.design.with_noise(share).dpsgd
        (counts,) = hopping_counts(dpsgd, [plan.guesses], norm=norm, **options)
        bounds = valid_lower_bound(counts, **claim.test)
        numbers: list[Any] = [name]
        for seen in (counts.v, bounds, bounds > claim.epsilon):
            numbers += float(seen.mean()), float(seen.std(ddof=1)) / sqrt(trials)
        outcomes.append(Outcome(*[*numbers, trials]))
    return tuple(outcomes)


def _less(noise: float) -> str:
    """The name of the bug that there is only this share of the noise."""
    names = {bug.noise: name for name, bug in BUGS.items()}
    return names.get(noise, f"{noise:g} of the noise")


def _claimed(
    epsilon: float | None,
    sigma: float | None,
    beta: float,
    accountant: Accountant,
    run: tuple[float, int, float],
) -> tuple[Claim, float]:
    """The claim and the noise, if ε or the noise may be missing, for a δ, steps and a rate."""
    delta, steps, sample_rate = run
    if epsilon is None:
        if sigma is None:
            raise ValueError("epsilon or sigma must be given, got neither")
        return Claim(certified_epsilon(sigma, *run, accountant=accountant), delta, beta), sigma
    claim = Claim(arguments.real("epsilon", epsilon, 0, 1000, interval="(]"), delta, beta)
    if sigma is None:
        return claim, noise_multiplier(claim.epsilon, *run, accountant=accountant)
    if (certified := claim.exceeded(sigma, steps, sample_rate)) is not None:
        raise ValueError(
            f"epsilon and sigma must fit together: {sigma=:g}, {steps=}, {sample_rate=:g} and "
            f"{delta=:g} give an epsilon of {certified:.3f} by the tightest accountant here, got "
            f"{epsilon=:g}; leave out sigma or epsilon, or correct it"
        )
    return claim, sigma
