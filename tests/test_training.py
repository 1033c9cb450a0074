"""The claim of a training at all ε, against laws found otherwise; and tests of it by counts."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from orabook.builder import data
from orabook.studies import confidence
from orabook.studies.stated_noise import found_by_counts, law_of_right
from oralib import (
    Counts,
    DpSgd,
    Profile,
    Training,
    TrainingTest,
    TrainingVerdict,
    certified_epsilon,
)
from oralib.bounds.refuting import right_needed
from oralib.bounds.valid import p_values
from oralib.dpsgd import judging, simulate_likelihood
from oralib.dpsgd.claim import EPSILONS, coarse_profile
from oralib.dpsgd.judging import _least_passing

SIGMA = 2.422402
STATED = Training(SIGMA, 0.1, 100)


def fixed(v, r, n, **set_up):
    return Counts(v, r, n=n, r_fixed=True, **set_up)


# ------------------------------------------------------------------------------------ the profile


def exact_profile(dpsgd, epsilon):
    """(D_in, D_out) from the law of the log-likelihood ratio, along contours."""
    pairs = [confidence(dpsgd, side=side).at(epsilon) for side in ("in", "out")]
    return [2 * (right - np.exp(epsilon) * wrong) for right, wrong in pairs]


def test_both_directions_are_known():
    """To the digits of an oracle, above it, and not mistaken for each other."""
    found = Profile.of(STATED, [1.0, 1.3])
    for name, due in (
        ("d_in", (3.041724e-3, 4.759028e-4)),
        ("d_out", (1.455485e-3, 1.125231e-4)),
    ):
        assert getattr(found, name) == pytest.approx(due, rel=1e-4)
        assert (getattr(found, name) > due).all()


@pytest.mark.parametrize("training", [STATED, Training(4.277612, 0.1, 100), Training(3.0, 0.2, 40)])
def test_profiles_are_above_the_exact_law(training):
    dpsgd = DpSgd(9, 9, training.steps, training.sample_rate, sigma=training.sigma)
    grid = np.array([0.2, 0.5, 1.0, 1.5])
    found, coarse = Profile.of(training, grid), coarse_profile((training,), 1.0, tuple(grid))
    for name, due in zip(("d_in", "d_out"), exact_profile(dpsgd, grid), strict=True):
        some = due > 1e-7
        fine = getattr(found, name)[some] / due[some]
        assert ((fine > 1 - 1e-9) & (fine < 1 + 1e-3)).all()
        rough = getattr(coarse, name)[some] / due[some]
        assert ((rough > fine) & (rough < 1.05)).all()


def test_full_batches_are_a_gaussian_mechanism():
    """Both directions are alike there, however many steps."""
    for steps, sigma in ((1, 0.8), (16, 4.0)):
        mu = np.sqrt(steps) / sigma
        found = Profile.of(Training(sigma, 1.0, steps), [0.0, 1.0, 3.0])
        assert found.d_in.tolist() == found.d_out.tolist()
        for epsilon, d_in in zip(found.epsilon, found.d_in, strict=True):
            x = mu / 2 - epsilon / mu
            due = stats.norm.cdf(x) - np.exp(epsilon) * stats.norm.cdf(x - mu)
            assert due < d_in < due * 1.001


def test_stretches_are_composed():
    """Two halves are the whole; and another noise in one of them is between the two."""
    halves = Profile.of([Training(SIGMA, 0.1, 50)] * 2, [1.0])
    assert halves.d_in == pytest.approx(Profile.of(STATED, [1.0]).d_in, rel=1e-6)
    mixed = Profile.of([Training(SIGMA, 0.1, 50), Training(2 * SIGMA, 0.1, 50)], [1.0])
    ends = [Profile.of(STATED.with_noise(share), [1.0]).d_in[0] for share in (2, 1)]
    assert ends[0] < mixed.d_in[0] < ends[1]


def test_divergences_allow_more():
    """Their δ is that of the accountant, and above both directions."""
    by_rdp, by_pld = (Profile.of(STATED, [0.5, 2.0], accountant=x) for x in ("rdp", "pld"))
    assert (by_rdp.d_in == by_rdp.d_out).all()
    assert (by_rdp.d_in > by_pld.d_in).all()
    assert by_rdp.d_in[1] == pytest.approx(1e-5, rel=1e-3)
    assert certified_epsilon(SIGMA, float(by_rdp.d_in[0]), 100, 0.1) == pytest.approx(0.5, rel=1e-3)


def test_profiles_and_trainings_that_cannot_be():
    for make, message in (
        (lambda: Training(0.0, 0.1, 100), "sigma must lie in"),
        (lambda: Training(1.0, 1.1, 100), "sample_rate must lie in"),
        (lambda: Training(1.0, 0.1, 0), "steps must be at least 1"),
        (lambda: Profile([1.0, 2.0], [0.1]), "lists of one length, got d_in"),
        (lambda: Profile([-1.0], [0.1]), "epsilon must lie in"),
        (lambda: Profile([1.0], [1.1]), "d_in must lie in"),
        (lambda: Profile.of([]), "at least one stretch, got none"),
        (lambda: Profile.of((2.0, 0.1, 100)), "training must be like Training"),
        (lambda: Profile.of(STATED, accountant="gdp"), "accountant must be one of"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make()


# ------------------------------------------------------------------------------- the planned test


NEEDS = [(1000, 93, 79, None), (4000, 120, 104, 103), (10_000, 326, 273, None)]
NEEDS += [(100_000, 350, 306, None), (100_000, 754, 642, None), (1000, 150, 123, 121)]


@pytest.mark.parametrize(("n", "k", "both", "one"), NEEDS)
def test_known_numbers_that_refute(n, k, both, one):
    assert TrainingTest(STATED, n=n, guesses=k).needed == both
    found = [TrainingTest(STATED, n=n, guesses=k, side=side).needed for side in ("in", "out")]
    assert one is None or found[0] == one
    # What is left out leaks less, so that guesses "out" need fewer right ones.
    assert found[1] < found[0] <= both


def test_a_claim_of_divergences_needs_more():
    claim = Profile.of(STATED, accountant="rdp")
    designs = ((1000, 93), (4000, 120), (10_000, 326))
    assert [TrainingTest(claim, n=n, guesses=k).needed for n, k in designs] == [82, 108, 284]
    verdict = TrainingTest(claim, n=4000, guesses=120).judge(fixed(110, 120, 4000))
    assert verdict.refuted
    assert verdict.noise is None


#: ε = 2, 1 and 8 by the accountant of the paper, each with 1,000 canaries, and guesses.
HONEST = [(SIGMA, 127), (4.277612, 127), (0.993727, 400)]


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "k"), HONEST)
def test_honest_audits_are_seldom_refuted(sigma, k):
    """Played step by step: far fewer than β, in all of the settings."""
    test = TrainingTest(Training(sigma, 0.1, 100), n=1000, guesses=k)
    played = simulate_likelihood(DpSgd(1000, 1000, sigma=sigma), k, trials=100, seed=1)
    assert (played.v >= test.needed).mean() <= 0.02


@pytest.mark.slow
def test_counts_play_as_their_law_says():
    """A simulated audit of half the noise, whose scores know it; and the exact law of counts."""
    test = TrainingTest(STATED, n=1000, guesses=93)
    played = simulate_likelihood(DpSgd(1000, 1000, sigma=SIGMA / 2), 93, trials=200, seed=2)
    table = found_by_counts(STATED, [(1000, 93)], shares=[0.5]).set_index("scores")
    due = table["found"]["true noise"]
    error = (due * (1 - due) / 200) ** 0.5
    assert (played.v >= test.needed).mean() == pytest.approx(due, abs=4 * error)
    # With the stated noise in the scores a third is found, and the test of (2, 1e-5) finds less.
    assert table["found"]["stated noise"] < 0.35 < due
    assert (table["found_claim"] < 0.1).all()


def test_scores_of_true_noise_have_exact_laws():
    """By Fourier transforms, and along contours."""
    from orabook.studies.ceiling import isolated_law

    law = law_of_right(STATED, 1000, 93, share=0.5)
    due = isolated_law(DpSgd(1000, 1000, sigma=SIGMA / 2), 93)
    np.testing.assert_allclose(law.probability, due.probability, atol=1e-6)


def test_scores_without_sampling_are_normal():
    law = law_of_right(Training(20.0, 1.0, 100), 1, 1, share=0.5)
    assert law.probability @ law.v == pytest.approx(stats.norm.cdf(0.5 * 10 / 10), abs=1e-4)


def test_more_right_guesses_mean_less_noise():
    test = TrainingTest(STATED, n=4000, guesses=120)
    shares = [test.judge(fixed(v, 120, 4000)).noise for v in (60, 95, 103, 104, 110, 120)]
    assert shares[0] is None
    assert all(a >= b for a, b in pairwise(shares[1:]))
    assert shares[2] > 1 >= shares[3]
    # The end that is refuted is returned: the noise itself, not the next smaller one.
    for v, share in ((95, shares[1]), (110, shares[4])):
        due = coarse_needed(share, 4000, 120)
        assert v >= due
        assert v < coarse_needed(share / 1.02, 4000, 120)


def coarse_needed(share, n, k):
    profile = coarse_profile((STATED,), share, tuple(EPSILONS.tolist()))
    return TrainingTest(profile, n=n, guesses=k).needed


def test_the_least_that_passes():
    for goal in (0.02, 0.5, 0.9, 1.0, 1.5, 60.0):
        found = _least_passing(lambda share, goal=goal: share >= goal)
        assert goal <= found <= max(1.0101 * goal, 1 / 64)
    assert _least_passing(lambda share: share > 64) is None
    assert _least_passing(lambda share: True) == 1 / 64


def test_a_file_whose_claim_nothing_could_refute():
    """TensorFlow Privacy's, with ε = 8: for (ε, δ) alone no outcome is enough."""
    made = json.loads((data.FOLDER / "tf-privacy.json").read_text())
    claim = Training(made["sigma"], made["sample_rate"], made["steps"])
    test = TrainingTest(claim, n=2000, guesses=200)
    assert right_needed(fixed(0, 200, 2000), 8.0, delta=1e-5, beta=0.05) is None
    assert test.needed == 200
    verdict = test.judge(fixed(179, 200, 2000))
    assert not verdict.refuted
    assert verdict.noise == pytest.approx(1.8, abs=0.02)


# ---------------------------------------------------------------------- an open number of guesses


def test_a_plan_for_an_open_number_chooses_before():
    """ε′ and b* follow from the pilot alone; the counts of the audit cannot move them."""
    pilot = Counts(100, 120, n=4000)
    test = TrainingTest(STATED, n=4000, expected=pilot)
    before = test.epsilon, test.d_in, test.d_out
    verdicts = [test.judge(Counts(v, r, n=4000)) for v, r in ((106, 120), (112, 128), (60, 90))]
    assert (test.epsilon, test.d_in, test.d_out) == before
    assert {verdict.epsilon for verdict in verdicts} == {before[0]}
    assert [verdict.refuted for verdict in verdicts] == [True, True, False]
    assert test.needed is None
    smaller = [verdict.noise for verdict in verdicts[:2]]
    assert max(smaller) <= 1
    with pytest.raises(ValueError, match="expected must be given if guesses is None"):
        TrainingTest(STATED, n=4000)


def test_all_shares_of_the_noise_have_one_plan(monkeypatch):
    """The same ε′ and b*, so that what refutes a share of the noise refutes all larger ones."""
    test = TrainingTest(STATED, n=4000, expected=Counts(100, 120, n=4000))
    planned, tested = 4000 * (test.d_in + test.d_out) / 2, []

    def recorded(counts, epsilon, d_in, d_out, **how):
        tested.append((epsilon, how.get("planned", 4000 * (d_in + d_out) / 2)))
        return p_values(counts, epsilon, d_in, d_out, **how)

    epsilon = test.epsilon
    monkeypatch.setattr(judging, "p_values", recorded)
    assert test.judge(Counts(106, 120, n=4000)).noise < 1
    assert len(tested) > 5
    assert {point for point, _ in tested} == {epsilon}
    assert [leak for _, leak in tested] == pytest.approx([planned] * len(tested))


def test_an_open_number_is_not_refuted_too_often():
    """Of all (v, r) at small n: what p ≤ α refutes is refuted by the worst mechanism at most α."""
    from test_p_values import most_often

    claim = Profile([0.1, 0.5, 1.0], [0.1, 0.03, 0.01], [0.05, 0.02, 0.005])
    test = TrainingTest(claim, n=3, expected=Counts(2, 2, n=3))
    point = test.epsilon, test.d_in, test.d_out
    found = {(v, r): test.p_value(Counts(v, r, n=3)) for r in range(4) for v in range(r + 1)}
    for level in {p for p in found.values() if p < 1}:
        wins = {counts for counts, p in found.items() if p <= level}
        assert most_often(3, wins, point, None, "both") <= level + 1e-8


@pytest.mark.parametrize(
    "set_up", [{"feedback": "full"}, {"coins": "balanced", "r_in": 60}, {"feedback": "list"}]
)
def test_other_audits_of_a_fixed_number(set_up):
    test = TrainingTest(STATED, n=4000, guesses=120, **set_up)
    assert 104 <= test.needed <= 108
    for v, refuted in ((test.needed, True), (test.needed - 1, False)):
        assert test.judge(fixed(v, 120, 4000, **set_up)).refuted == refuted


def test_stopping_at_will():
    test = TrainingTest(STATED, n=500, feedback="full", expected=Counts(60, 70, n=500))
    verdicts = [test.judge(Counts(v, 70, n=500, feedback="full")) for v in (40, 70)]
    assert [verdict.refuted for verdict in verdicts] == [False, True]
    assert verdicts[1].noise < 1


# ------------------------------------------------------------------------------------- what is said


def test_a_verdict_says_how_often_it_fails():
    verdict = TrainingVerdict(115, 120, 104, 1.3, 0.0123, True, 0.647, 0.05)
    assert str(verdict) == (
        "The stated training is refuted: 115 of 120 guesses are right, 104 refute it (p ≤ 0.013 at "
        "ε' = 1.3). Its noise is at most 0.65 times what was stated, if its rate, steps and "
        "clipping are as stated. This fails with probability at most 0.05; together with a bound "
        "on ε at such a β, one of the two fails with up to 0.1."
    )
    with pytest.raises(TypeError):
        float(verdict)  # it is no bound


def test_counts_must_be_as_planned():
    test = TrainingTest(STATED, n=4000, guesses=120)
    for counts, message in (
        (fixed(100, 121, 4000), "with r=120, got 121"),
        (fixed(100, 120, 4001), "with n=4000, got 4001"),
        (Counts(100, 120, n=4000), "with r_fixed=True, got False"),
        (fixed(100, 120, 4000, side="in"), "with side='both', got 'in'"),
        (fixed(100, 120, 4000, feedback="full"), "with feedback='none', got 'full'"),
        (fixed([100, 90], 120, 4000), "those of one audit, got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            test.judge(counts)
    for make in (
        lambda: TrainingTest(STATED, n=100, guesses=101),
        lambda: TrainingTest(STATED, n=100, guesses=10, side="in", coins="balanced", r_in=5),
        lambda: TrainingTest(STATED, n=100, guesses=10, feedback="all others"),
    ):
        with pytest.raises(ValueError, match=r"guesses must lie in|side is for|knows all other"):
            make()
