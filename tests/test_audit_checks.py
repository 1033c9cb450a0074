"""Each check names the bug of a training that has just this bug, and accuses no honest training."""

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from audit_faults import FAULTS
from audit_states import HONEST as HONEST_NUMBERS
from scipy import stats
from witness.numpy_loop import (
    BATCHES,
    CLIPPING,
    HONEST,
    NOISE,
    Clamped,
    CoarseNorms,
    HalfTheNoise,
    LateDrop,
    LeftOut,
    MeansClipped,
    NoiseTwice,
    SameEachStep,
    Training,
)

import oraudit
from oraudit import checks
from oraudit.checks import levels
from oraudit.checks.levels import SHARE
from oraudit.checks.noise_over_steps import strongest
from oraudit.findings import Finding, verdict
from oraudit.records import Event, Look, Seen, Told
from oraudit.records.batches import Batches
from oraudit.records.clipping import look_at
from oraudit.records.hypotheses import HYPOTHESES
from oraudit.report import EXIT, judge


@pytest.mark.parametrize("training", HONEST, ids=lambda each: each.__name__)
def test_honest_trainings_pass(training):
    for seed in (1, 2):
        result = training(seed).run()
        assert result.status == "passed", result.text
        assert not result.findings


@pytest.mark.parametrize(
    ("training", "words", "side"),
    CLIPPING + NOISE + BATCHES,
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_bug_is_named_first(training, words, side):
    broken = training()
    if (training, words, side) in CLIPPING:
        broken.steps = 15
    result = broken.run()
    assert result.findings, result.text
    first = result.findings[0]
    assert words in first.text, result.text
    assert first.side == side, result.text
    assert result.status == ("passed" if side == "safer" else "failed"), result.text


# -------------------------------------------------------------------------- exact facts and verdic


def seen_with(*events, steps=100, looks=()):
    """A training of which nothing is known but these events."""
    nothing = Batches((None,) * steps, (None,) * steps)
    return Seen([], (Told(1.0, 1.0),) * steps, None, looks, nothing, events, None, None)


EVENTS = [
    (
        Event("accountant-told", 1, number=40),
        "the accountant was told 40 steps, 100",
        "less private",
    ),
    (Event("accountant-told", 1, number=120), "the accountant was told 120 steps", "safer"),
    (Event("plain-step", 5), "the optimizer steps without the private step", "less private"),
    (Event("late-parameter", 5, "head"), "head joined the model after", "less private"),
    (Event("unprivate-parameter", 5, "scale"), "scale changes, and no private", "less private"),
    (Event("outside-step", 5), "weights change between private steps", "side unknown"),
]


@pytest.mark.parametrize(("event", "words", "side"), EVENTS)
def test_exact_facts_are_named(event, words, side):
    (finding,) = checks.findings(seen_with(event))
    assert finding.text.startswith(words)
    assert finding.side == side


def test_new_seeds_are_named():
    seeds = [Event("seeded", step, number=step) for step in range(1, 101)]
    (finding,) = checks.findings(seen_with(*seeds))
    assert finding.text.startswith("the generator of the noise is seeded anew")
    assert not checks.findings(seen_with(*[Event("seeded", 1, number=7)] * 100))


STATUSES = [
    ([], 0, (), "cannot tell", 3),
    ([], 9, (), "passed", 0),
    ([Finding("a", "", "less private")], 9, (), "failed", 1),
    ([Finding("a", "", "side unknown")], 9, (), "failed", 1),
    ([Finding("a", "", "safer")], 9, (), "passed", 0),
    ([Finding("a", "", "side unknown", allowed_by="a")], 9, (), "cannot tell", 3),
    ([Finding("a", "", "side unknown", allowed_by="a")], 9, ("a",), "passed", 0),
    ([Finding("a", "", "less private")], 9, ("a",), "failed", 1),
    (
        [Finding("a", "", "side unknown", allowed_by="a"), Finding("b", "", "less private")],
        9,
        ("a",),
        "failed",
        1,
    ),
]


@pytest.mark.parametrize(("found", "steps", "allow", "status", "code"), STATUSES)
def test_status_and_exit_follow_findings(found, steps, allow, status, code):
    assert verdict(found, anything_seen=steps > 0, allow=allow) == status
    assert EXIT[status] == code


def test_failing_finding_comes_first():
    events = [Event("accountant-told", 1, number=120), Event("plain-step", 5)]
    first, second, *_ = judge(seen_with(*events)).text.splitlines()
    assert first.startswith("FAILED    the optimizer steps without the private step")
    assert second.startswith("note      the accountant was told 120 steps")


def test_safer_than_told_is_in_the_verdict():
    first, second, *_ = judge(seen_with(EVENTS[1][0])).text.splitlines()
    assert first == "PASSED    what was looked at is as the accountant was told, or safer"
    assert second.startswith("note      the accountant was told 120 steps")


@pytest.mark.parametrize("first", [Event("plain-step", 5), Event("accountant-forgot", 9, "", 3)])
def test_the_same_words_are_said_once(first):
    lost = [Event("accountant-forgot", step, "", 10) for step in (20, 30, 40)]
    result = judge(seen_with(first, *lost))
    assert len(result.findings) == 4
    assert len(result.text.splitlines()) == 5
    assert result.text.count("the accountant has lost 10 steps") == 1


@pytest.mark.torch
def test_the_same_report_is_printed_once():
    pytest.importorskip("opacus")
    from oraudit.ways.opacus.watch import Audits, Refused

    text = str(Audits([Refused("no hook"), Refused("no loader"), Refused("no hook")]))
    assert text == (
        "training 1, 3 of 3\nCANNOT TELL  no hook\n\ntraining 2 of 3\nCANNOT TELL  no loader"
    )


def test_every_check_is_listed_once():
    helpers = {"levels", "presence"}
    files = {each.name for each in pkgutil.iter_modules(checks.__path__)} - helpers
    assert files == {each.__name__.rpartition(".")[2] for each in checks.CHECKS}
    assert len(checks.CHECKS) == len(files)
    names = [each.NAME for each in checks.CHECKS]
    assert len(set(names)) == len(names)


def test_every_check_has_a_fault():
    assert set(FAULTS) == {check.NAME for check in checks.CHECKS}, "see tests/audit_faults.py"


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.NAME)
def test_each_check_finds_its_fault(check):
    assert check.NAME in FAULTS, f"tests/audit_faults.py has no fault for {check.NAME}"
    assert check.check(FAULTS[check.NAME]()), f"{check.NAME} does not find its fault"
    assert not check.check(HONEST_NUMBERS), f"{check.NAME} accuses an honest training"


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.NAME)
def test_each_check_says_its_statement_and_limit(check):
    assert check.__doc__, f"{check.NAME} has no docstring"
    statement, _, rest = check.__doc__.partition("\n\n")
    assert statement.endswith("."), f"{check.NAME} has no statement at its top"
    assert re.search(r"^(Exact|Formulas?)\b", rest, re.MULTILINE), f"{check.NAME}: which formula?"


def test_statistical_tests_share_one_level():
    for check in checks.CHECKS:
        assert hasattr(check, "SHARE") == (getattr(check, "TESTS", 0) > 0), check.NAME
    declared = sum(getattr(check, "TESTS", 0) for check in checks.CHECKS)
    assert declared == levels.STATISTICAL


def test_explanations_come_earlier_and_exist():
    names = [each.NAME for each in checks.CHECKS]
    for place, check in enumerate(checks.CHECKS):
        assert set(getattr(check, "EXPLAINED_BY", ())) <= set(names[:place])


def test_checks_import_no_framework():
    for each in (*checks.CHECKS, levels, importlib.import_module("oraudit.checks.presence")):
        with open(each.__file__) as file:
            text = file.read()
        for framework in ("torch", "jax", "opacus", "oraudit.ways"):
            assert f"import {framework}" not in text
            assert f"from {framework}" not in text


def test_p_values_are_uniform_enough():
    """A small run of the calibration, which simulates each approximate test 10^7 times."""
    path = Path(__file__).parent / "witness" / "calibrate.py"
    spec = importlib.util.spec_from_file_location("calibrate", path)
    calibrate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(calibrate)
    rng = np.random.default_rng(5)
    seen = set()
    for setting in calibrate.settings():
        for name, p in setting.draw(rng, 1000).items():
            seen.add(name)
            # 10 are expected, and more than 25 have a probability of 1e-5.
            assert (p < 0.01).sum() <= 25, (name, setting.name)
    assert {"dispersion", "repeats", "shared", "counts", "cells", "follows sum"} <= seen


# ------------------------------------------------------------------------------------- explanations


@pytest.mark.torch
def test_causes_agree_in_torch():
    torch = pytest.importorskip("torch")
    for training in (LeftOut, MeansClipped, CoarseNorms, Clamped):
        made = training()
        chosen = made.batch(0)
        gradients = made.parts(made.labels[chosen, None] * made.data[chosen])
        sums = made.clipped(gradients)
        here = look_at(1, gradients, sums, made.clip)
        tensors = [torch.from_numpy(np.asarray(each)) for each in (*gradients, *sums)]
        there = look_at(1, tensors[:4], tensors[4:], made.clip)
        assert here.causes
        assert list(here.causes) == list(there.causes)


def test_cause_needs_all_steps():
    half = Look(1, 0.1, 1e-4, 0.9, {"no example is clipped": 2.0, "other": 3.0})
    other = Look(2, 0.1, 1e-4, 0.9, {"other": 3.0})
    third = Look(3, 0.1, 1e-4, 0.9, {})
    assert checks.findings(seen_with(looks=(half, other)))[0].text.startswith("other: an example")
    (finding,) = checks.findings(seen_with(looks=(half, other, third)))
    assert finding.text == "the clipped sum differs from the sum of clipped gradients"
    assert finding.side == "side unknown"


def test_safer_needs_every_telling_step():
    safer = Look(1, 0.1, 1e-4, 0.9, {"half": 0.5})
    agreeing = Look(2, 0.0, 1e-4, 1.0)
    silent = Look(2, 0.0, 1e-4, 0.6)
    assert checks.findings(seen_with(looks=(safer, silent)))[0].side == "safer"
    assert checks.findings(seen_with(looks=(safer, agreeing)))[0].side == "side unknown"


def test_every_hypothesis_says_what_it_is():
    names = [each.__name__ for each in HYPOTHESES]
    assert len(set(names)) == len(names)
    assert all(each.__doc__ for each in HYPOTHESES)


# --------------------------------------------------------------------------------------- the report


def test_report_tells_what_was_seen():
    class Claimed(Training):
        claim = (8.5, 1e-5)

    lines = Claimed().run().text.splitlines()
    assert lines[0] == "PASSED    what was looked at is as the accountant was told"
    assert [line.split()[0] for line in lines[1:]] == [
        "told",
        "noise",
        "clipping",
        "batches",
        "canaries",
        "unlooked",
    ]
    assert lines[1] == "told      σ 1, rate 0.15, 60 steps: ε = 8.32 at δ = 1e-05 (claimed 8.5)"
    assert lines[-1].endswith("secrecy of seeds; which data")


def test_report_computes_what_was_seen():
    lines = HalfTheNoise().run().text.splitlines()
    (seen,) = (line for line in lines if line.startswith("seen"))
    assert seen.startswith("seen      with the noise, norms and rate seen: ε = 8.")
    assert seen.endswith("(a calculation, not a bound)")
    assert not any(line.startswith("seen") for line in NoiseTwice().run().text.splitlines())
    assert not any(line.startswith("seen") for line in SameEachStep().run().text.splitlines())


def test_report_of_nothing_says_so():
    lines = oraudit.Audit().result().text.splitlines()
    assert lines[0] == "CANNOT TELL  no private step was seen"


def test_one_seed_gives_the_same_report():
    assert LateDrop(3).run().text == LateDrop(3).run().text


# ------------------------------------------------------------------------------------ over steps


def test_steps_in_a_row_have_an_exact_law():
    """Of few numbers, half of them in common to the two pairings of a lag."""
    rng = np.random.default_rng(4)
    p = [strongest(rng.normal(size=(20, 2)))[2] for _ in range(1000)]
    assert sum(each < 0.05 for each in p) <= stats.binom.isf(1e-3, 1000, 0.05)
    assert sum(each < 0.5 for each in p) > 100


@pytest.mark.parametrize("lag", [1, 3, 8])
def test_noise_that_takes_back_earlier_noise_is_seen(lag):
    """Neither two steps alone nor the size of the noise shows it."""
    fresh = np.random.default_rng(5).normal(size=(200, 4))
    noise = (fresh - np.roll(fresh, lag, axis=0))[lag:] / np.sqrt(2)
    correlation, found, p = strongest(noise)
    assert (found, p < SHARE) == (lag, True)
    assert correlation == pytest.approx(-0.5, abs=0.1)


def test_too_few_steps_tell_nothing():
    assert strongest(np.ones((1, 5))) is None
    assert strongest(np.zeros((9, 5))) is None
