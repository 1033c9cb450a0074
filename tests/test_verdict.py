"""From a plan to a verdict by the plan's own command, for honest training runs and for bugs."""

import gzip
import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from oralib import AuditPlan, Canaries, audit_scores, certified_epsilon, plan_audit
from oralib.__main__ import main
from oralib.canaries.loop import write_scores
from oralib.planning import Forecast, Outcome, expected_outcomes
from oralib.planning.search import BUGS
from oralib.scores.columns import are_listed_twice
from oralib.scores.file import read_scores
from oralib.scores.page import page
from oralib.scores.seen import Seen

#: Share of the stated noise, size of a canary's gradient, share of the stated sample rate.
TRAININGS = {name: (bug.noise, bug.norm, 1.0) for name, bug in BUGS.items()} | {
    "twice the noise": (2.0, 1.0, 1.0),
    "gradients of ten thresholds": (1.0, 10.0, 1.0),
    "twice the sample rate": (1.0, 1.0, 2.0),
}


@pytest.fixture(scope="module")
def plan():
    return plan_audit(1.0, 1e-5, d=500, steps=20, sample_rate=0.1, trials=0)


def scored(plan, seed, noise=1.0, norm=1.0, rate=1.0, steps=None):
    """The canaries of a training run in NumPy."""
    canaries, rng = Canaries.from_plan(plan, seed=seed), np.random.default_rng(seed)
    dpsgd = plan.design.dpsgd
    for step in range(steps or dpsgd.steps):
        batch = rng.random(dpsgd.n) < rate * dpsgd.sample_rate
        added = rng.normal(scale=noise * dpsgd.sigma, size=dpsgd.used_coordinates)
        canaries.observe(step, norm * canaries.gradient(step, batch) + added)
    return canaries


def command_of(plan, file):
    """The command that the plan prints, for this file and without a report in a folder."""
    plan.save(file.with_suffix(".json"))
    (line,) = (line for line in str(plan).splitlines() if line.startswith("oralib audit"))
    names = {"scores.csv": str(file), "plan.json": str(file.with_suffix(".json"))}
    *words, out, _ = [names.get(word, word) for word in shlex.split(line)[1:]]
    assert out == "--out"
    return words


@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
@pytest.mark.parametrize("bug", TRAININGS)
def test_no_training_that_canaries_scored_is_a_usage_error(bug, plan, tmp_path, capsys):
    for seed in range(3):
        file = tmp_path / f"{seed}.csv"
        audit = scored(plan, seed, *TRAININGS[bug])
        audit.write_scores(file)
        status = main(command_of(plan, file))
        report = " ".join(capsys.readouterr().out.split())
        assert status in ((0,) if bug == "none" else (1, 4)), report
        assert audit.seen.as_stated == (bug == "none")
        assert ("looks unlike the stated one" in report) == (bug != "none")
        assert ("do not rely on it, though" in report) == (status == 4)
        assert ("too large to refute the claim" in report) == (status != 1)
        assert "on weights of their own. They test the training's noise, steps and" in report


@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
@pytest.mark.slow
def test_verdicts_are_those_that_the_plan_foretells(plan):
    for outcome in expected_outcomes(plan, trials=20):
        if outcome.bug not in BUGS:
            continue
        audits = [scored(plan, seed, *TRAININGS[outcome.bug]) for seed in range(10)]
        right = [audit.counts().v for audit in audits]
        error = np.hypot(np.std(right, ddof=1) / np.sqrt(10), outcome.right_se)
        assert np.mean(right) == pytest.approx(outcome.right, abs=4 * error + 1)


def test_scores_of_one_sign_are_audited():
    rng = np.random.default_rng(1)
    included = rng.random(1000) < 0.5
    scores = rng.exponential(size=1000) + 3 * included
    audit = audit_scores(scores, included, delta=1e-5, guesses=200, side="farthest")
    assert audit.v > 180
    assert audit.bound > 1
    assert audit.notes == ("no score has the other sign, so every guess says 'included'",)
    with pytest.warns(UserWarning, match="multiply them by -1"):
        turned = audit_scores(-scores, included, delta=1e-5, guesses=200, side="farthest")
    assert turned.problem


def test_what_the_canaries_saw_is_in_the_file_and_in_the_report(plan, tmp_path, capsys):
    file = tmp_path / "scores.csv"
    canaries = scored(plan, 1, steps=12)
    with pytest.warns(UserWarning, match="only 12 of 20 planned steps"):
        canaries.write_scores(file)
    seen = read_scores(file).seen
    assert seen == canaries.seen
    assert seen == Seen("sum", plan.design.dpsgd.sigma, 0.1, 12, 20, seen.checks)
    assert main([*command_of(plan, file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seen"]["steps"] == 12
    lines = file.read_text().splitlines()
    mark, comment = lines[0][: lines[0].index("{")], lines[0][lines[0].index("{") :]
    lines[4] = "x,1.0,2"
    file.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 5, column included"):
        read_scores(file)
    check = {"name": "noise", "share": 1.0, "error": 0.1, "z": 0.0}
    odd = [{"checks": [check | part]} for part in ({"z": "x"}, {"share": None})]
    for part in ({"planned": "x"}, {"sigma": None}, {"way": "x"}, *odd, {"x": 1}):
        lines[0] = mark + json.dumps(json.loads(comment) | part)
        file.write_text("\n".join(lines))
        with pytest.raises(ValueError, match="comment of the canaries is damaged"):
            read_scores(file)


def test_sampling_is_spoken_of_only_where_it_was_seen(plan):
    """And whoever ran the training vouches for what only they can know."""
    canaries = scored(plan, 1)
    vouch = {"sum": "no noise of their own", "examples": "sampled and clipped like the other"}
    for way, words in vouch.items():
        seen = replace(canaries.seen, way=way)
        audit = plan.audit(canaries.scores, canaries.included, seen)
        said, own = dict(audit.rows()), way == "examples"
        assert ("sample rate" in said["training"], "shuffled" in said["unseen"]) == (own, own)
        html = page(audit, None, {})
        assert words in html.partition("Whoever ran the training")[2].partition("</td>")[0]
        assert ("Gradients of records" in html) == (not own)


@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_less_and_more_noise_are_seen(noise, plan):
    (check,) = (check for check in scored(plan, 1, noise).seen.checks if check.name == "noise")
    assert check.share == pytest.approx(noise, abs=4 * check.error)
    assert not check.fits


def test_an_audit_that_is_not_valid_has_no_bound(tmp_path, capsys):
    rng = np.random.default_rng(2)
    included = rng.random(400) < 0.7
    scores = rng.normal(size=400) + 3 * included
    with pytest.warns(UserWarning, match="fair coins are this odd"):
        audit = audit_scores(scores, included, delta=1e-5, guesses=50)
    assert np.isnan([audit.bound, audit.pure_bound, audit.fdp_bound, audit.estimate]).all()
    file = tmp_path / "scores.csv"
    write_scores(file, range(400), scores, included)
    assert main(["audit", str(file), "--delta", "1e-5", "--guesses", "50", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["bound"] is None


def test_canaries_that_are_listed_twice_are_seen():
    rng = np.random.default_rng(3)
    included = rng.random(300) < 0.5
    scores = rng.normal(size=300) + included
    how = {"delta": 1e-5, "guesses": 50, "coins": "independent"}
    with pytest.warns(UserWarning, match="listed twice"):
        audit = audit_scores(np.tile(scores, 2), np.tile(included, 2), **how)
    assert audit.verdict(1.0) == "invalid"
    # A leak of every coin, scores with few values, or ties with both coins are something else.
    ties = np.tile(scores[:150], 2)
    for values in (included.astype(float), np.round(scores), np.repeat(scores[:150], 2)):
        assert not audit_scores(values, included, **how).problem
    for both in (1, 2):
        coins = np.tile(included[:150], 2)
        coins[:both] ^= True
        assert are_listed_twice(ties, coins) == (both == 1)


def test_rankings_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    included = rng.random(3000) < 0.5
    scores = np.round(rng.normal(size=3000) + included, 2)
    audit = audit_scores(scores, included, delta=1e-5, guesses=50)
    pairs = scores[included][:, None] - scores[~included]
    assert audit.ranking.auroc == pytest.approx(((pairs > 0) + (pairs == 0) / 2).mean())
    cuts = (cut for cut in scores if (scores[~included] > cut).mean() <= 0.01)
    reached = max((scores[included] > cut).mean() for cut in cuts)
    assert audit.ranking.tpr_at_1_percent == pytest.approx(reached)


def test_coins_cannot_be_changed(plan):
    canaries = Canaries.from_plan(plan, seed=1)
    with pytest.raises(ValueError, match="read-only"):
        canaries.included[0] = True


def test_a_gzipped_file_is_read(plan, tmp_path):
    file = tmp_path / "scores.csv"
    scored(plan, 1).write_scores(file)
    packed = tmp_path / "scores.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert (read_scores(packed).values == read_scores(file).values).all()
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(ValueError, match="damaged gzip"):
        read_scores(packed)


def test_a_claim_that_contradicts_its_noise_is_refused():
    how = {"d": 100, "steps": 50, "sample_rate": 0.1, "trials": 0}
    with pytest.raises(ValueError, match=r"sigma=1, .* give an epsilon of 5\.\d+ by the"):
        plan_audit(2.0, 1e-5, sigma=1.0, **how)
    assert plan_audit(2.0, 1e-5, sigma=1.37 * 1.5, **how).claim.epsilon == 2


@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
def test_a_plan_audits_as_its_file_and_its_command_do(plan, tmp_path, capsys):
    forecast = replace(plan.forecast, outcomes=expected_outcomes(plan, trials=2))
    plan = replace(plan, forecast=forecast)
    plan.save(tmp_path / "plan.json")
    assert AuditPlan.load(tmp_path / "plan.json") == plan
    file, canaries = tmp_path / "scores.csv", scored(plan, 1, noise=0.1)
    canaries.write_scores(file)
    audit = plan.audit(canaries.scores, canaries.included, canaries.seen)
    assert "training is missing" in str(plan.audit(canaries.scores, canaries.included))
    words = ["audit", str(file), "--plan", str(tmp_path / "plan.json")]
    status = main(words)
    assert capsys.readouterr().out == f"{audit}\n"
    assert main(command_of(plan, file)) == status
    same = ("shown", "verdict")
    assert [row for row in audit.report().splitlines() if row.startswith(same)] == [
        row for row in capsys.readouterr().out.splitlines() if row.startswith(same)
    ]
    assert plan.digest in str(audit)
    assert "a tenth of the noise" in " ".join(str(audit).split())
    for option, value in (("--guesses", "9"), ("--adjacency", "replace")):
        assert main([*words, option, value]) == 2
        assert f"{option} must be left out" in capsys.readouterr().err
    with pytest.raises(TypeError, match="seen must be like"):
        plan.audit(canaries.scores, canaries.included, "x")
    with pytest.raises(ValueError, match=r"those of the plan's .* canaries and 20 steps, got 10"):
        plan.audit(np.arange(10.0), np.arange(10) % 3 == 0)
    with pytest.raises(ValueError, match="of 21 steps"):
        plan.audit(canaries.scores, canaries.included, replace(canaries.seen, planned=21))


def test_whatever_a_plan_file_says_is_under_its_digest(plan, tmp_path):
    """Each number of the file, one after the other, with another digit."""
    path = tmp_path / "plan.json"
    plan.save(path)
    text = path.read_text()
    numbers = list(re.finditer(r": (\d[\d.e-]*)", text))
    assert len(numbers) > 12
    for number in numbers:
        path.write_text(f"{text[: number.start(1)]}1{text[number.start(1) :]}")
        with pytest.raises(ValueError, match=r"which was changed|got .*plan.json: "):
            AuditPlan.load(path)
    for words in ("null", "5", "{}", "[1]", '"format"', ""):
        path.write_text(words)
        with pytest.raises(ValueError, match=r"path must be a file from oralib plan, got .*: [^']"):
            AuditPlan.load(path)


def test_a_plan_has_the_noise_and_the_prediction_of_its_claim(plan):
    dpsgd, (predicted,) = (
        plan.design.dpsgd,
        plan.design.bounds(np.array([plan.guesses]), plan.claim),
    )
    less, enough = (certified_epsilon(dpsgd.sigma - x, 1e-5, 20, 0.1) for x in (2e-6, 0.0))
    assert enough <= plan.claim.epsilon < less
    assert plan.forecast.predicted == predicted
    with pytest.raises(ValueError, match="examples must lie in"):
        plan.text(0)


def test_right_guesses_compared_with_those_of_simulated_audits(plan):
    """By Student's law of one more audit like those, or by that of coins if all agreed."""
    dpsgd, k = plan.design.dpsgd, plan.guesses
    seen = Seen("sum", dpsgd.sigma, dpsgd.sample_rate, dpsgd.steps, dpsgd.steps)
    coins = k * (0.6 * k + 1) / (k + 2) * (1 - (0.6 * k + 1) / (k + 2))
    for right_se, variance in ((0.1 * k, 4 * (0.1 * k) ** 2), (0.0, coins)):
        honest = Outcome("none", 0.6 * k, right_se, 0.5, 0.1, 0.0, 0.0, trials=4)
        compared = replace(plan, forecast=Forecast(0.5, outcomes=(honest,)))._compared(k, seen)
        check, error = compared.checks[-1], np.sqrt(variance * 1.25)
        assert (check.share, check.error) == pytest.approx((1 / 0.6, error / (0.6 * k)))
        assert stats.norm.sf(check.z) == pytest.approx(stats.t.sf(0.4 * k / error, 3))
    for often, doubted in ((0.5, False), (0.49, True)):
        bugs = tuple(replace(honest, bug=f"{x}", refuted=x) for x in (0.1, often))
        said = str(replace(plan, forecast=Forecast(0.5, outcomes=bugs)))
        assert ("This plan cannot test a claim of 1" in said) == doubted
