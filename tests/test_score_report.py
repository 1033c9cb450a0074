"""What an audit could have shown, when it is not valid, and the report for somebody else."""

import json
import re
import time
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure
from scipy import stats
from test_scores import gaussian, run, written

import oralib
from oralib import Canaries, Counts, DpSgd, audit_counts, audit_guesses, audit_scores
from oralib.bounds import epsilon_lower_bound_random_r as random_r
from oralib.bounds import valid_lower_bound
from oralib.commands.common import clock
from oralib.ground.streams import stream
from oralib.scores import UNFAIR, Check, Seen
from oralib.scores.guessing import LEAST_GUESSES, best_number, right_guesses
from oralib.scores.picture import guess_picture, score_picture

# ------------------------------------------------------------------------------------------ power


def test_the_guesses_that_a_claim_needs():
    pure = audit_counts(Counts(190, 200, n=1000, r_fixed=True), delta=0.0)
    share = 0.05 ** (1 / 200)  # of right ones, so that 200 of 200 are as rare as β
    assert pure.best_bound == pytest.approx(np.log(share / (1 - share)), rel=1e-9)
    share = np.log(0.05) / -np.log1p(np.exp(-8.0))
    assert pure.guesses_needed(8.0) == int(share) + 1  # p(ε)^r <= β
    assert pure.guesses_needed(100.0) is None
    assert "no number of guesses could refute" in " ".join(pure.report(100.0).split())


@pytest.fixture
def scores_csv(tmp_path):
    """Which tell who was included nearly for sure."""
    return written(tmp_path / "scores.csv", *gaussian(2000, shift=8.0))


def test_an_audit_that_cannot_test_the_claim_does_not_let_it_stand(scores_csv):
    """Even with the noise cut to a hundredth, 200 guesses show 4.19 at most."""
    words = (scores_csv, "--delta", 1e-5, "--guesses", 200)
    for claim, verdict, status in ((4, "refuted", 1), (8, "cannot test", 3)):
        found, out, err = run(*words, "--claim", claim, "--json")
        said = json.loads(out)
        assert (found, said["format"]) == (status, 1)
        assert (said["status"], said["refuted"]) == (verdict, status == 1)
        assert said["best_bound"] == pytest.approx(4.1931, abs=1e-3)
        if status == 3:
            assert err.startswith("warning: even 200 right of 200 guesses would only show 4.192")
    assert 8500 < said["guesses_needed"] < 9500
    out = " ".join(run(*words, "--claim", 8)[1].split())
    assert "verdict this audit cannot test the claim" in out
    assert f"to refute ε = 8 takes {said['guesses_needed']:,} guesses" in out
    for other in (("--grid", "50,200"), ("--split", 0.2)):
        assert run(*words[:3], *other, "--claim", 8)[0] == 3
    found, out, err = run(*words, "--json")
    assert (found, json.loads(out)["status"], err) == (0, "no claim", "")


def test_what_is_said_of_the_best_outcome_without_a_claim():
    audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    text = " ".join(str(audit).split())
    assert "ε = 1.099, by the accuracy alone: not a bound, but at this accuracy no number" in text
    more = Counts(75 * 10**8, 10**10, n=10**10, r_fixed=True)
    assert 1.09 < valid_lower_bound(more) < audit.estimate  # which is so


@pytest.mark.parametrize("fixed", [True, False])
def test_a_stronger_audit_is_the_same_one_four_times_as_large(fixed):
    """The hint's number is the bound of an audit with four times as many of everything."""
    audit = audit_counts(Counts(75, 100, n=1000, r_fixed=fixed), delta=1e-4)
    larger = audit_counts(Counts(300, 400, n=4000, r_fixed=fixed), delta=1e-4)
    (hint,) = (text for label, text in audit.rows() if label == "stronger")
    assert hint.startswith("four times as many canaries and guesses, at the same accuracy, would")
    shown = float(hint.rpartition(" ")[2])
    assert shown <= larger.bound < shown + 0.001


def test_numbers_in_sentences():
    many = audit_counts(Counts(170, 200, n=40_000, r_fixed=True), delta=1e-4)
    assert "as n δ = 4: fewer canaries would lose less" in str(many).replace("\n          ", " ")
    assert f"δ costs {many.pure_bound - many.bound:.2f}, as" in many.rows()[-1][1]
    blind = audit_scores(*gaussian(400, shift=0.1), delta=0.0, grid=(100, 200))
    assert blind.p_value(2.0) == 1.0  # and not that of one test, doubled


def test_what_is_said_without_enough_steps():
    scores, coins = gaussian(100)
    check = Check("noise", 1.01, 0.02, 0.5)
    says = {(): "too few numbers to say", (check,): "it looks like the stated one"}
    for checks, said in says.items():
        seen = Seen("sum", 1.0, 0.1, 5, 50, checks)
        text = dict(audit_scores(scores, coins, delta=0.0, guesses=20, seen=seen).rows())
        assert text["training"].startswith(said)
        assert ("its noise is 1.01" in text["training"]) == bool(checks)


# -------------------------------------------------------------------------------- what is not valid


def test_scores_of_the_wrong_sign_are_named_first(tmp_path):
    scores, included = gaussian(401, shift=1.0)
    with pytest.warns(UserWarning, match=r"^higher scores must mean included: multiply them by -1"):
        audit = audit_scores(-scores, included, delta=1e-5, guesses=200)
    assert audit.verdict(1.0) == "invalid"
    assert audit.report(1.0).splitlines()[1].startswith("invalid   higher scores must mean")
    path = written(tmp_path / "scores.csv", -scores, included)
    status, _, err = run(path, "--delta", 1e-5, "--claim", 1, "--guesses", 200)
    assert status == 2
    assert err.startswith("error: higher scores must mean included: multiply them by -1?")
    guessed = np.where(np.arange(401) < 100, ~included, np.nan)
    with pytest.warns(UserWarning, match=r"^a guess of 1 must mean included"):
        audit_guesses(guessed, included, delta=0.0)


def test_missing_guesses_are_not_wrong_ones_and_the_test_is_exact():
    _, included = gaussian(401)
    r = 100
    v = int(stats.binom.ppf(UNFAIR, r, 0.5))  # the first that is not significant
    assert stats.binomtest(v, r, alternative="less").pvalue >= UNFAIR
    for right, wrong in ((v, False), (v - 1, True)):
        order = np.arange(401)
        guessed = np.where(order < right, included, ~included).astype(float)
        guessed[r:] = np.nan
        if wrong:
            with pytest.warns(UserWarning, match="a guess of 1 must mean included"):
                audit_guesses(guessed, included, delta=0.0)
        else:
            assert audit_guesses(guessed, included, delta=0.0).problem == ""
    few = np.where(np.arange(401) < 20, included, np.nan)
    audit = audit_guesses(few, included, delta=0.0, guesses=200)
    assert (audit.v, audit.r, audit.problem) == (20, 200, "")
    assert audit_guesses([1, *[np.nan] * 400], included, delta=0.0, guesses=1).r == 1


def test_coins_that_just_balance(tmp_path):
    for n in (38, 40, 1000):
        included, scores = np.arange(n) % 2 == 1, np.arange(n) % 7 + np.arange(n) / n
        given = {"delta": 1e-5, "guesses": 20}
        assert audit_scores(scores, included, coins="independent", **given).problem == ""
        if n < 40:  # where that is ordinary
            assert "exactly half" in audit_scores(scores, included, **given).notes[0]
            continue
        with pytest.warns(UserWarning, match=f"^exactly half of {n} canaries were included"):
            assert audit_scores(scores, included, **given).verdict(1.0) == "invalid"
        with pytest.warns(UserWarning, match="exactly half"):
            audit_guesses(included, included, delta=0.0)
        path = written(tmp_path / "scores.csv", scores, included)
        words = (path, "--delta", 1e-5, "--guesses", 20, "--claim", 1)
        status, out, err = run(*words)
        assert status == 2
        assert "invalid   exactly half" in out
        assert "--coins independent" in err
        assert run(*words, "--coins", "independent")[0] == 0


# ------------------------------------------------------------------------------- the chosen number


def test_a_split_chooses_what_could_refute_the_claim():
    scores, included = gaussian(1001, shift=1.0, seed=5)
    for seed in range(5):
        how = {"delta": 1e-5, "seed": seed}
        alone = audit_scores(scores, included, **how)
        assert alone.r >= LEAST_GUESSES
        assert "on the 200 canaries set aside" in alone.notes[0]
        assert f"{alone.r} guesses looked best: they promised" in alone.notes[0]
        for claim in (0.5, 2.0, 3.0):
            audit = audit_scores(scores, included, claim=claim, **how)
            assert audit.best_bound > claim
            assert audit.verdict(claim) != "cannot test"
    assert audit_scores(scores, included, claim=20.0, **how).r == alone.r  # none could
    few = audit_scores(scores[:30], included[:30], delta=1e-5)
    assert (few.n, few.r) == (24, 24)


@pytest.mark.parametrize("claim", [None, 1.5, 50.0])
@pytest.mark.parametrize(("shift", "n"), [(1.0, 400), (0.0, 400), (1.5, 25)])
def test_the_number_that_is_chosen(claim, shift, n):
    """The largest bound at Wilson's lower limit of the accuracy, as SciPy has it."""
    right, level = right_guesses(*gaussian(120, shift), "both", 0), {"delta": 1e-5, "beta": 0.05}
    options, one_error = [], 2 * stats.norm.cdf(1) - 1
    for k in sorted({round(x) for x in np.geomspace(1, 120, 100)}):
        low = stats.binomtest(int(right[k - 1]), k).proportion_ci(one_error, "wilson").low
        taken = min(max(round(k * n / 120), 1), n)
        z = (right[k - 1] / k - 0.5) * np.sqrt(k)
        options.append([random_r(int(low * taken), taken, n=n, **level), z, taken])
    able = [claim is not None and random_r(k, k, n=n, **level) > claim for *_, k in options]
    for option, can in zip(options, able, strict=True):
        if not (can if any(able) else option[2] >= min(LEAST_GUESSES, n)):
            option[0] = -1.0
    promise, _, taken = max(reversed(options), key=lambda option: option[:2])
    chosen, why = best_number(right, n, **level, claim=claim)
    assert (chosen, f"promised {promise:.2f}" in why) == (taken, True)
    left_out = f"so few that even all right could not refute ε = {claim:g} were" if claim else "?"
    assert (left_out in why) == (any(able) > all(able))
    assert (f"fewer than {LEAST_GUESSES} were not considered" in why) == (not any(able))


def test_the_choice_does_not_know_the_canaries_that_are_audited():
    scores, included = gaussian(1001, shift=1.0, seed=5)
    rest = stream(3, "scores", "split").permutation(1001)[200:]
    rng = np.random.default_rng(1)
    for claim in (None, 2.0):
        how = {"delta": 1e-5, "seed": 3, "claim": claim}
        first = audit_scores(scores, included, **how)
        others, coins = scores.copy(), included.copy()
        others[rest], coins[rest] = rng.normal(size=801), rng.random(801) < 0.5
        second = audit_scores(others, coins, **how)
        assert (first.r, first.notes) == (second.r, second.notes)


def test_scores_farthest_from_0():
    included = [1, 0, 1, 0, 1, 0]
    scores = [0.5, -3, -2, 0.1, 4, -0.2]
    how = {"delta": 0.0, "side": "farthest"}
    audits = [audit_scores(scores, included, guesses=k, **how) for k in range(1, 7)]
    assert [audit.v for audit in audits] == [1, 2, 2, 3, 4, 4]
    said = " ".join(str(audits[0]).split())
    assert "farthest from 0 (positive: included, negative: left out)" in said
    # Equal distances, and zeros, are a matter of lots.
    equal = [1, -1, 1, -1, 1, 0.5]
    assert audit_scores(equal, included, guesses=3, **how).ties_drawn == 3
    coins, zeros = np.arange(101) < 51, np.zeros(101)
    zeros[:2] = 1, -1
    right = [audit_scores(zeros, coins, guesses=101, seed=s, **how).v for s in range(100)]
    assert abs(np.mean(right) - 50.5) < 3
    assert np.std(right) > 2
    assert right_guesses(np.zeros(100), np.full(100, True), "farthest", 1)[-1] == 50


# -------------------------------------------------------------------------------------- pictures


@pytest.fixture
def drawn(monkeypatch):
    """The last figure that was saved: its curves by label, and the figure."""
    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **how: saved.append(figure))

    def last():
        (axes,), (legend,) = saved[-1].axes, saved[-1].legends
        assert axes.get_ylim()[0] == 0
        assert [name for name, x in axes.spines.items() if x.get_visible()] == ["left", "bottom"]
        assert (legend._ncols, legend.get_frame_on()) == (2, False)
        assert axes.get_ylim()[1] > max(line.get_ydata()[-1] for line in axes.lines)
        return {line.get_label(): np.transpose(line.get_xydata()).tolist() for line in axes.lines}

    return last


@pytest.mark.parametrize("side", ["both", "included", "farthest"])
def test_the_picture_of_scores(drawn, side):
    scores, coins = gaussian(300)
    scores, level = scores.round(1), {"delta": 1e-5, "beta": 0.1}
    given = {**level, "claim": 0.5, "side": side, "seed": 3}
    for how, tried in (({"guesses": 60}, None), ({"grid": (20, 60)}, [20, 60])):
        audit = audit_scores(scores, coins, **given, **how)
        score_picture(audit, scores, coins)
        k, bounds = drawn()["only exploration: not valid"]
        right = right_guesses(scores, coins, side, 3)[np.array(k, dtype=int) - 1]
        exact = oralib.epsilon_lower_bound(right, k, n=300, method="exact", **level)
        assert (k[0], k[-1], len(k) > 50, bounds) == (1, 300, True, exact.tolist())
        assert drawn().get("tried, with a correction", [None])[0] == tried
        label = f"valid: {np.floor(audit.bound * 1000) / 1000:.3f}, {audit.r} guesses"
        assert drawn()[label] == [[audit.r], [audit.bound]]
        assert drawn()["claimed ε = 0.5"][1] == [0.5, 0.5]


def test_the_picture_of_guesses(drawn):
    audit = audit_counts(Counts(80, 100, n=400, r_fixed=True), delta=1e-5)
    guess_picture(audit)
    betas, bounds = drawn()["had another β been fixed in advance"]
    assert (betas[0], betas[-1]) == pytest.approx((0.001, 0.5))
    assert bounds == [valid_lower_bound(audit.counts, beta=b, delta=1e-5) for b in betas]
    assert drawn()["by the accuracy alone: not a bound"][1] == [audit.estimate] * 2
    (valid,) = (curve for label, curve in drawn().items() if "80 of 100 right" in label)
    assert valid == [[0.05], [audit.bound]]


# ----------------------------------------------------------------------------- for somebody else


def read(file):
    """A page and its words."""
    page = BeautifulSoup(file.read_text(), "html.parser")
    return page, " ".join(page.get_text().split())


def test_a_page_for_somebody_else(scores_csv, tmp_path):
    odd = tmp_path / "<b>&.csv"
    odd.write_bytes(scores_csv.read_bytes())
    for claim, headline in (
        ((), "with 95% confidence. Such a statement is wrong in at most 5 of 100 audits."),
        (("--claim", 2), "The claim of ε = 2 is refuted: ε is at least 4.192 at δ = 1e-5"),
        (("--claim", 8), "This audit cannot test the claim of ε = 8."),
    ):
        out = tmp_path / f"report {len(claim)} {headline[:11]}"
        run(odd, "--delta", 1e-5, "--guesses", 200, *claim, "--out", out)
        (html, text), raw = read(out / "report.html"), (out / "report.html").read_text()
        assert headline in text
        assert "\N{GREEK CAPITAL LETTER EPSILON}" not in text
        titles = ["What was tested", "What was shown", "What it could not have seen", "vouch for"]
        assert ("In this audit, even" in text) == ("is refuted" not in headline)
        for title in titles + ["What was claimed"] * len(claim[:1]):
            assert title in text
        (image,) = html.find_all("img")
        assert image["src"].startswith("data:image/png;base64,")
        assert image["alt"]
        assert not re.search(r"(src|href)=.?(http|//)|@import|url\(", raw)  # nothing from outside
        assert html.meta["charset"] == "utf-8"
        assert "<b>&.csv" in text
        assert (out / "report.txt").read_text().startswith("claim" if claim else "canaries")
        assert json.loads((out / "report.json").read_text())["best_bound"] > 4


def test_a_page_about_an_audit_that_is_not_valid(tmp_path):
    scores, included = gaussian(401, shift=2.0)
    path, out = written(tmp_path / "scores.csv", -scores, included), tmp_path / "out"
    words = (path, "--delta", 1e-5, "--guesses", 100, "--claim", 1, "--out", out)
    with patch("pathlib.Path.write_bytes", side_effect=OSError):  # the disk is full
        assert run(*words)[0] == 2
    assert list(tmp_path.iterdir()) == [path]  # so that the same command works again
    assert run(*words)[0] == 2
    assert not (out / "figure.png").exists()
    _, text = read(out / "report.html")
    assert "This audit is not valid: nothing has been shown. Higher scores must mean" in text


def test_notebooks_show_a_table():
    audit = audit_counts(Counts(75, 100, n=1000, r_fixed=True), delta=1e-5)
    html = audit._repr_html_()
    assert html.startswith("<table")
    assert html.count("<tr>") == len(audit.rows())


# -------------------------------------------------------------------------------- tensors and words


class _Tensor:
    """As those of PyTorch that NumPy does not take."""

    def __init__(self, dtype, requires_grad, error):
        self.dtype, self.requires_grad, self.error = dtype, requires_grad, error

    def __array__(self, dtype=None, copy=None):
        raise self.error


def test_what_to_do_about_tensors_and_words():
    coins = np.arange(101) % 2 == 0
    grad = _Tensor("torch.float32", True, RuntimeError("Can't call numpy() on Tensor that ..."))
    half = _Tensor("torch.bfloat16", False, TypeError("Got unsupported ScalarType BFloat16"))
    gpu = _Tensor("torch.float32", False, TypeError("can't convert cuda:0. Use Tensor.cpu()"))
    words = ["0.5"] * 101
    for scores, message in (
        (grad, r"requires a gradient: give it as \.detach\(\)\.cpu\(\)\.numpy\(\)"),
        ([grad] * 101, "requires a gradient"),
        (half, r"NumPy has no bfloat16: give it as \.float\(\)\.cpu\(\)\.numpy\(\)"),
        (gpu, r"Use Tensor\.cpu\(\)"),
        (words, "words: turn them into numbers, or compare them, as in column == 'yes'"),
        (pd.Series(words), "words: turn them into numbers"),
    ):
        with pytest.raises(TypeError, match=rf"scores must be a list of numbers .*{message}"):
            audit_scores(scores, coins, delta=0.0, guesses=20)
        with pytest.raises(TypeError, match="included must be a list of numbers or truth values"):
            audit_scores(np.arange(101.0), scores, delta=0.0, guesses=20)
    dpsgd = DpSgd(n=4, d=4, steps=2, sigma=1.0)
    with pytest.raises(TypeError, match=r"sampled must be .*Use Tensor.cpu\(\)"):
        Canaries(dpsgd, 2, seed=9).gradient(0, gpu)
    with pytest.raises(TypeError, match=r"gradient must be .*give it as \.float\(\)"):
        Canaries(dpsgd, 2, seed=9).observe(0, half)


class _Array:
    """As those of PyTorch: a dtype that is none of NumPy's, equal to nothing but itself."""

    dtype = object()

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)

    def __len__(self):
        return len(self.values)


def test_tensors_and_columns_of_pandas_are_as_good_as_arrays():
    included, scores = np.arange(100) % 2 == 0, np.arange(100.0)
    included[1] = True
    expected = audit_scores(scores, included, delta=1e-5, guesses=20)
    for kind in (np.float32, np.float16, np.int64, object):
        found = audit_scores(_Array(scores.astype(kind)), _Array(included), delta=1e-5, guesses=20)
        assert found == expected
    guesses = [*included[:-2].tolist(), None, None]
    expected = audit_guesses(guesses, included, delta=0.0)
    assert (expected.v, expected.r) == (98, 98)
    for dtype in ("boolean", "Int64"):  # what is missing there is no guess
        assert audit_guesses(pd.Series(guesses, dtype=dtype), included, delta=0.0) == expected


def test_the_clock_of_an_audit(monkeypatch, capsys):
    for is_terminal, waited in ((True, 0.8), (True, 0.05), (False, 0.8)):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        with clock("reading {a}", after=0.2):
            time.sleep(waited)
        out, shown = capsys.readouterr()
        assert (out, "reading {a}: 00:0" in shown) == ("", is_terminal and waited > 0.2)
