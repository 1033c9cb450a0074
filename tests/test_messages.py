"""What the library says of arguments that cannot be: one line for each message.

The tests of odd arguments see to it that every message names its argument; here are the words.
"""

from functools import partial

import numpy as np
import pytest

from ledger.cases.worst_cases import ExtremalResponse, best_mean, worst_case_rejection
from orabook import experiments, studies
from orabook.experiments.single_step import simulate_single_step
from orabook.laws import Law, count_in_sets_law, local_laplace_law
from orabook.studies import SampledChannel, SelfMutingResponse
from orabook.studies.assumptions import bound_assuming
from oralib import (
    AllOrNothing,
    Channel,
    Count,
    CountInSets,
    Counts,
    DpSgd,
    Dropping,
    LocalLaplace,
    LocalRandomizedResponse,
    NoisyCountInSets,
    ThresholdGuesser,
    TopGuesser,
    Xor,
    XorInPairs,
    adaptive,
    adaptive_failure_probability,
    certified_epsilon,
    channel,
    classic,
    epsilon_lower_bound,
    noise_multiplier,
    one_run,
    p_inv,
    p_value,
    simulate_dpsgd,
    simulate_hopping,
    valid_lower_bound,
)
from oralib.bounds import Anytime, Balanced, Exact, Gaussian, Independent, Pure, RandomR
from oralib.dpsgd import simulate_likelihood
from oralib.games import one_run_law

COUNTS = Counts(74, 100, n=1000, r_fixed=True)
ALL = ThresholdGuesser()
TABLE = channel(Count(), 2)
STEP = DpSgd(n=4, d=2, steps=1, sample_rate=1.0, sigma=1.0)
SMALL = DpSgd(n=6, d=2, steps=3, sample_rate=0.3, sigma=0.8)
HALVES = np.full((2, 2, 2), 0.5)
FAIR = SampledChannel(HALVES, [0.5, 0.5])
MUTING = SelfMutingResponse(1.0, (2, 2))

BOUNDS = [
    (lambda: epsilon_lower_bound(5, 3), "v must be at most r, got v=5 and r=3"),
    (lambda: epsilon_lower_bound([1, 5], [3, 4]), "v=5 and r=4 at index 1"),
    (lambda: epsilon_lower_bound(-1, 3), "v must be at least 0, got v=-1"),
    (lambda: epsilon_lower_bound(2.5, 3), "v must be an integer, got v=2.5"),
    (lambda: epsilon_lower_bound(True, 3), "v must be an integer, got v=True"),
    (lambda: epsilon_lower_bound(2, 3, beta=0), r"beta must lie in \(0, 1\)"),
    (lambda: epsilon_lower_bound(2, 3, delta=1e-5), "n must be given"),
    (lambda: epsilon_lower_bound(2, 3, delta=1e-5, n=2), "r must be at most n"),
    (lambda: epsilon_lower_bound([1, 2], [1, 2, 3]), "broadcast together"),
    (lambda: p_inv(1.5), r"accuracy must lie in \[0, 1\], got accuracy=1.5"),
    (lambda: p_value(1, 2, 1.0, rule="fast"), r"rule must be like oralib.bounds.Exact\(\)"),
    (lambda: RandomR(3).lower_bound(1, 2, delta=0.1, n=2), r"expected must lie in \[1, 2\]"),
    (lambda: worst_case_rejection([1, 1], 1.0, delta=0.1, n=1), "the number of thresholds must"),
    (lambda: adaptive_failure_probability(-1, 10), r"epsilon must lie in \[0, inf\]"),
    (lambda: adaptive_failure_probability(1, 10**7), r"n must lie in \[0, 1000000\]"),
    (lambda: adaptive_failure_probability(1, 5, rule=3), r"rule must be Pure\(\) or Anytime\(\)"),
    (lambda: valid_lower_bound(COUNTS, delta=2.0), "delta must lie in"),
    (lambda: valid_lower_bound(COUNTS, delta=1e-4, expected=0), "expected must"),  # nor needed
    (lambda: valid_lower_bound(75), "counts must be like"),
    (lambda: Gaussian().lower_bound(3, 10**9, n=10**9), r"r must lie in \[0, 100000000\]"),
    (lambda: Independent().lower_bound(3, 10**9, n=10**9), r"r must lie in \[0, 100000000\]"),
    (lambda: Gaussian().lower_bound(75, 100), "n must be given for the f-DP bound"),
    (lambda: Exact().lower_bound(75), "r must be given if v is not Counts, got v=75 and r=None"),
    (lambda: Exact().lower_bound(COUNTS, 100), "r and n must not be given with Counts.*r=100"),
    (lambda: Exact().p_value(COUNTS, epsilon=1.0, n=1000), "r and n must not be given.*n=1000"),
    (
        lambda: Pure().lower_bound(75, 100, n=1000, delta=0.1),
        f"delta must be 0 for the {Pure.name}",
    ),
    (lambda: Anytime().lower_bound(75, 100, n=1000, delta=0.1), "delta must be 0 for the anytime"),
    (lambda: Balanced().lower_bound(75, 100, n=1000), "r_in must be given for balanced coins"),
    (lambda: Balanced(50).lower_bound(75, 100, n=1001), "n must be even .* got n=1001"),
    (lambda: Balanced(101).lower_bound(75, 100, n=1000), r"r_in must lie in \[0, 100\]"),
    (lambda: RandomR(expected=0), "expected must be at least 1, got expected=0"),
    (lambda: p_value(75, 100), "epsilon must be given, got epsilon=None"),
    (lambda: bound_assuming("gauss", COUNTS, delta=0.1), "assumption must be one of"),
    (lambda: bound_assuming("gaussian", Counts(1, 2, 3), delta=0.1), "fixed.*got r_fixed=False"),
    (lambda: bound_assuming("dp", Counts([3, 4], 5, n=5), delta=0.1), "of one audit, got 2"),
    (lambda: bound_assuming("normal", COUNTS, delta=0.1), "scores and included must be given"),
    (lambda: assuming_normal([1.0, np.nan], [0, 1]), "scores must"),
    (lambda: assuming_normal([1.0, 2.0], [0, 1, 1]), "included must"),
    *(
        (lambda f=f, counts=counts: f.lower_bound(*counts, n=10**3, delta=1e-5), message)
        for f in (Gaussian(), Independent())
        for counts, message in (
            ((5, 4), "v must be at most r, got v=5 and r=4"),
            ((3, 2000), "r must be at most n"),
        )
    ),
]


def assuming_normal(scores, included):
    return bound_assuming("normal", COUNTS, delta=1e-5, scores=scores, included=included)


AUDITS = [
    (lambda: Counts(5, 4, n=9), "v must be at most r, got v=5 and r=4"),
    (lambda: Counts(4, 5, n=4), "r must be at most n, got r=5 and n=4"),
    (lambda: Counts([1, 2], [3, 4], n=9, r_fixed=True), "the same in all trials"),
    (lambda: Counts(1, 2, n=9, feedback="some"), "feedback must be one of none, one-way"),
    (lambda: Counts([[1]], [[2]], n=9), "one entry per trial"),
    (lambda: Counts(1, 2, 3, coins="loaded"), "coins must be one of independent, balanced"),
    (lambda: Counts(1, 2, 3, r_fixed="maybe"), "r_fixed must be True or False, got r_fixed='may"),
    (lambda: one_run(Count(), TopGuesser(5), 4, seed=1), r"k must lie in \[1, 4\]"),
    (lambda: one_run(Count(), ALL, 4, seed=-1), "seed must be at least 0"),
    (lambda: one_run(Count, ALL, 4, seed=1), "mechanism must be like Count"),
    (lambda: one_run(Count(), 3, 4, seed=1), "guesser must be like TopGuesser"),
    (lambda: adaptive(Count(), TopGuesser(2), 4, seed=1), "ThresholdGuesser"),
    (lambda: adaptive(Count(), ALL, 4, feedback="a", seed=1), "one-way, full, got"),
    (lambda: adaptive(Count(), ALL, 4, guesses=5, seed=1), r"guesses must lie in \[1, 4"),
    (lambda: classic(Count(), TopGuesser(6), 5, seed=1), "^k must lie in"),
    (lambda: classic(Count(), ALL, 5, base=[0, 1], seed=1), "vector of signs"),
    (lambda: classic(XorInPairs(), ALL, 5, seed=1), "base has a length that Xor"),
    (lambda: one_run_law(Count(), ALL), "channel must be like"),
    (lambda: best_mean(channel(Count(), 6), np.zeros((7, 7))), r"n must lie in \[1, 5"),
    (lambda: best_mean(TABLE, np.eye(2)), r"have shape \(3, 3\), got"),
    (lambda: experiments.taken_guesses((0.5, 1.5)), "fractions must lie in"),
    (lambda: experiments.taken_guesses(()), "fractions must be a row"),
    (lambda: experiments.taken_guesses("0.5"), "fractions must be a number"),
    (lambda: experiments.taken_guesses(n=1500), "n must be a multiple of 1000"),
    (lambda: experiments.elements_per_coordinate((2.5,)), "multiple of 1000"),
    (lambda: experiments.elements_per_coordinate((0.05,)), "guesses must lie in"),
    (lambda: experiments.elements_by_epsilon(colour=1), "colour"),
    (lambda: experiments.adaptive_dpsgd(feedbacks=("half",)), "got feedbacks="),
]

MECHANISMS = [
    (lambda: LocalRandomizedResponse(-1), "epsilon must lie in"),
    (lambda: LocalRandomizedResponse("1"), "epsilon must be a number, got epsilon='1'"),
    (lambda: LocalRandomizedResponse(True), "epsilon must be a number, got epsilon=True"),
    (lambda: LocalLaplace(0), r"epsilon must lie in \(0, inf\)"),
    (lambda: NoisyCountInSets(2, 1e-200), r"sigma must lie in \[0.001, 1e\+06\]"),
    (lambda: AllOrNothing(1.1), r"p must lie in \[0, 1\], got p=1.1"),
    (lambda: CountInSets(0), "s must be at least 1, got s=0"),
    (lambda: XorInPairs().check_size(7), r"multiple of 2 .* got n=7 \(nearest: 6 and 8\)"),
    (lambda: XorInPairs().check_size(1), r"got n=1 \(nearest: 2\)"),
    (lambda: Count().check_size(0), "n must be at least 1"),
    (lambda: ExtremalResponse(1.0, 0.1, 4, 3), r"v must lie in \[1, 3\], got v=4"),
    (lambda: ExtremalResponse(1.0, 0.1, 2, 3).check_size(2), "n must be at least 3"),
    (lambda: SelfMutingResponse(0.0, (1, 2)), r"rate must lie in \(0, 50\]"),
    (lambda: SelfMutingResponse(1.0, ()), "line must be a sequence of thresholds"),
    (lambda: MUTING.check_size(3), r"n must lie in \[1, 2\]"),
    (lambda: MUTING.conditional_loss(np.ones(2), np.zeros(2), 1), "hold all signs before index"),
    (lambda: Channel(np.ones((2, 3)) / 2), r"2\^n columns, got \(2, 3\)"),
    (lambda: Channel(np.ones((2, 4)) / 3), "sum to 1, got a sum of 0.6666"),
    (lambda: Channel(np.array([[2.0, 1], [-1, 0]])), "table must lie in"),
    (lambda: Channel(np.ones((1, 2)), ["a", "b"]), "outputs must be one entry per row"),
    (lambda: channel(LocalLaplace(1.0), 2), "with finitely many outputs, got"),
    (lambda: channel(LocalRandomizedResponse(1.0), 13), r"n=13: .* 2\^13 col"),
    (lambda: studies.success_given_others(channel(Count(), 3)), "be sign vectors"),
    (lambda: studies.after_guesses(TABLE, 0), "guesses must be -1 or 1"),
    (lambda: SampledChannel(np.ones((1, 2, 3)), [0.5, 0.5]), "an axis of"),
    (lambda: SampledChannel(HALVES / 2, [0.5, 0.5]), "sum to 1 over the outputs"),
    (lambda: SampledChannel(HALVES, [0.5, 0.6]), "each row of theta must sum to 1"),
    (lambda: SampledChannel(HALVES, [0.2, 0.3, 0.5]), "theta must have shape"),
    (lambda: SampledChannel.of(Xor()), "channel must be like"),
    (lambda: FAIR.restricted([(0, 2)] * 2), "pairs"),
    (lambda: FAIR.ae_ac_ddp(3), "k must lie in"),
    (lambda: local_laplace_law(0, 5), "epsilon must lie in"),
    (lambda: count_in_sets_law(2, 5, "half"), "feedback must be one of"),
    (lambda: count_in_sets_law(10**10, 10**10), r"s \* sets must lie in"),
    (lambda: Law([1], [1], [0.5], 4), "probability must sum to 1, got a sum of 0.5"),
    (lambda: Law([2], [1], [1.0], 4), "v must be at most r"),
    (lambda: Law([1], [5], [1.0], 4), "r must be at most n"),
    (lambda: Law([1, 1], [1], [1.0], 4), "one entry for each outcome"),
]

made = partial(DpSgd, sigma=1.0)
TRAININGS = [
    (lambda: made(1500), r"n must be a multiple of 1000 .* \(nearest: 1000 and 2000\)"),
    (lambda: made(10, sample_rate=0), r"sample_rate must lie in \(0, 1\]"),
    (lambda: DpSgd(10), "missing 1 required keyword-only argument: 'sigma'"),
    (lambda: DpSgd(10, sigma=-1), "sigma must lie in"),
    (lambda: simulate_dpsgd(made(10), 11, seed=1), r"guesses must lie in \[1, 10\], got gu"),
    (lambda: simulate_dpsgd(DpSgd, 10, seed=1), r"dpsgd must be like DpSgd\(n=1000, sigma=1.0\)"),
    (lambda: simulate_dpsgd(made(10**9, 1, 10**9), 9, seed=1), "n / d and steps must be small"),
    (lambda: simulate_likelihood(made(10), 11, seed=1), "guesses must lie"),
    (lambda: simulate_likelihood(STEP, 3, feedback="full", seed=1), "feedback"),
    (lambda: simulate_single_step(made(10), 1.0, seed=1), "single full-batch step"),
    (lambda: simulate_single_step(STEP, 0.0, seed=1), r"tau must lie in \[1e-06, 1000\]"),
    (
        lambda: simulate_single_step(STEP, 1.0, guesses=3, seed=1),
        "guesses needs feedback, got gues",
    ),
    (lambda: studies.run_dpsgd(STEP, np.ones(3, bool), np.random.default_rng()), "length n=4"),
    (lambda: studies.run_dpsgd(STEP, np.ones(4, bool), 1), "rng must be like"),
    (lambda: Dropping(0.5), "final"),
    (lambda: Dropping(1, until=0), "until"),
    (lambda: Dropping(1, bend=0), "bend"),
    (lambda: Dropping(1, crowding=(0.5, 1)), "crowding"),
    (lambda: Dropping(1, crowding=(1, 2, 3)), "crowding"),
    (lambda: Dropping(1).loads(made(100, 100, 10**6 + 1)), "steps must be at most 1000000, got"),
    (lambda: simulate_hopping(SMALL, 3, dropping=Dropping(1), seed=1), "guesses must lie in"),
    (lambda: noise_multiplier(0.0, 1e-5, 1, 1.0), "epsilon must lie in"),
    (lambda: noise_multiplier(1.0, 0.0, 1, 1.0), "delta must lie in"),
    (lambda: noise_multiplier(1.0, 1e-5, 0, 1.0), "steps must be at least 1"),
    (lambda: noise_multiplier(2.0, 1e-5, 1, 1e-300), r"sample_rate must lie in \[1e-12, 1\]"),
    (lambda: certified_epsilon(1, 0, 1, 1, accountant="pld"), r"delta must lie in \[1e-12, 1\)"),
    (
        lambda: certified_epsilon(1, 1e-5, 1, 1, accountant="x"),
        "accountant must be one of rdp, pld",
    ),
    (lambda: certified_epsilon(0, 1e-5, 1, 1), r"sigma must lie in \[0.001, 1e\+06\], got sigma=0"),
    (lambda: DpSgd.calibrated(0.0, 1e-5, n=10), "epsilon must lie in"),
    (lambda: studies.confidence(made(2000)), "n <= d, got n=2000 and d=1000"),
]


@pytest.mark.parametrize(("call", "message"), [*BOUNDS, *AUDITS, *MECHANISMS, *TRAININGS])
def test_message(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
