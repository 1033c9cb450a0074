"""The paper's experiments on DP-SGD and Count-in-Sets: what their figures say and quote."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ledger.machine.comparisons import at_most, first_least, near
from ledger.machine.entries import explained, mutants, ours, remark, statement
from ledger.machine.findings import Cases, Finding, all_of, each
from ledger.machine.mutants import WEAKER, replaced, varied
from orabook import experiments
from orabook.experiments import REPORTED
from orabook.experiments.single_step import simulate_single_step
from orabook.experiments.summaries import summary
from orabook.laws import count_in_sets_law, mean_bound, single_step_law
from orabook.place import book_file
from oralib import Counts, DpSgd, epsilon_lower_bound, simulate_dpsgd
from oralib.bounds import Exact, Rule, Steinke
from oralib.ground.rounding import first_largest
from oralib.ground.types import Feedback

__all__ = [
    "adaptive_beyond_forty",
    "best_bound",
    "best_number_of_guesses",
    "control",
    "delta_hardly_matters",
    "dropping_is_free",
    "figure_of_count_in_sets",
    "figure_of_dpsgd",
    "figure_of_elements_by_epsilon",
    "figure_of_guesses_by_epsilon",
    "many_elements_cost",
    "many_weights",
    "quoted_bounds",
]

#: The reason for which Monte Carlo rows let small changes pass.
TOO_SMALL = "smaller than what this many audits can tell"
#: The rule of the paper's bound.
_STEINKE = Steinke()


def _rises(table: pd.DataFrame, column: str = "bound", errors: float = 4.0) -> Finding:
    """Find whether no value of a column falls below an earlier one by more than errors allow."""
    value = table[column].to_numpy()
    error = table[f"{column}_se"].to_numpy()
    for j in range(1, len(table)):
        before = first_largest(value[:j])
        drop = value[before] - value[j]
        if drop > errors * sqrt(error[before] ** 2 + error[j] ** 2):
            higher = f"{value[before]:.3f} at {table['x'][before]:g}"
            lower = f"{value[j]:.3f} at {table['x'][j]:g} (s.e. {error[j]:.3f})"
            return Finding(False, f"the mean falls from {higher} to {lower}")
    gain = (value[-1] - value[0]) / sqrt(error[0] ** 2 + error[-1] ** 2)
    first, *_, last = _with_errors(table, column)
    return Finding(bool(gain > errors), f"the mean bound rises from {first} to {last}")


@cache
def _figure_1() -> pd.DataFrame:
    return experiments.taken_guesses(seed=1)


@statement("fig:effect-of-taken-guesses-number-single-epsilon", "Figures 1 and 5", "Monte Carlo")
@explained("05-efficacy#fig-eff-tradeoff")
@mutants(
    replaced("efficacy", rises_with_k=1),
    replaced("estimate", rises_with_k=1),
    replaced("best", with_the_fewest="first", with_all="last"),
)
@remark("The statement names no number; its directions are varied.")
def best_number_of_guesses(
    efficacy: int = -1, estimate: int = -1, best: str = "in between"
) -> Finding:
    """Taking fewer guesses raises efficacy and estimate, while the bound is best in between."""
    table = _figure_1()
    bound = table["bound"].to_numpy()
    error = table["bound_se"].to_numpy()
    finite = np.isfinite(table["estimation"])
    moves = [
        bool((efficacy * np.diff(table["efficacy"]) > 0).all()),
        bool((estimate * np.diff(table["estimation"][finite]) > 0).all()),
    ]
    place = first_largest(bound)
    leads = [(bound[place] - bound[end]) / np.hypot(error[place], error[end]) for end in (0, -1)]
    best_place = "in between"
    if min(leads) <= 4:
        best_place = "first" if leads[0] <= 4 else "last"
    return Finding(
        all(moves) and best_place == best,
        f"the best mean bound is {bound[place]:.3f} (s.e. {error[place]:.3f}), "
        f"at k/n = {table['x'][place]:g}; the efficacy falls with k",
    )


@cache
def _figure_2() -> pd.DataFrame:
    """The two points that the paper quotes, with the numbers of the book, and one far beyond."""
    quoted = experiments.elements_per_coordinate((1, 8), trials=10_000)
    return pd.concat([quoted, experiments.elements_per_coordinate((32,), trials=2000)])


#: The reason why no small change is seen of a number that the paper quotes with an error of 0.01.
_WITHIN_ERRORS = "within three of the standard errors that the paper quotes"


@statement(
    "fig:effect-of-elements-number-single-epsilon", "Figures 2 and 6, Section 6.2", "Monte Carlo"
)
@explained("06-dp-sgd#fig-dpsgd-tradeoff")
@mutants(
    varied("one", up=_WITHIN_ERRORS, down=_WITHIN_ERRORS),
    varied("eight", down=_WITHIN_ERRORS),
    varied("one", 8),
    varied("eight", 8),
    replaced("first", falls=-1, stays=0),
    replaced("then", rises=1, stays=0),
)
@remark(
    "The ± in the evidence is the error of the difference, including the paper's own standard "
    "error of 0.01. That limits the comparison: the smallest difference that can be seen is 0.03, "
    "about 6%."
)
def quoted_bounds(
    one: float = REPORTED[1][0], eight: float = REPORTED[8][0], first: int = 1, then: int = -1
) -> Finding:
    """With 100 guesses the mean bound is 0.49 ± 0.01 at one element per coordinate and 0.62 ± 0.01
    at eight. More elements first raise bound and efficacy, and far beyond that lower them.
    """
    table = _figure_2()
    cases = [
        (f"n/d = {row['x']:g}", row["bound"], sqrt(row["bound_se"] ** 2 + 0.01**2), quoted)
        for row, quoted in zip(table[:2].to_dict("records"), (one, eight), strict=True)
    ]
    moves = [_trend(table[i : i + 2], name) for i in (0, 1) for name in ("bound", "efficacy")]
    efficacies = _with_errors(table, "efficacy", 4)
    shape = Finding(
        moves == [first, first, then, then],
        f"the efficacy at n/d = 1, 8 and 32 is {', '.join(efficacies)}",
    )
    return all_of(near(cases, errors=3.0), shape)


def _with_errors(table: pd.DataFrame, column: str, digits: int = 3) -> list[str]:
    """The means of a column with their standard errors, as evidence."""
    pairs = zip(table[column], table[f"{column}_se"], strict=True)
    return [f"{mean:.3f} (s.e. {error:.{digits}f})" for mean, error in pairs]


def _trend(table: pd.DataFrame, column: str) -> int:
    """1 if a mean rises from the first row to the last, -1 if it falls, 0 if neither is clear."""
    first, *_, last = table[column]
    error = float(np.hypot(*table[f"{column}_se"].iloc[[0, -1]]))
    z = (last - first) / error
    return 0 if abs(z) < 4 else int(np.sign(z))


#: Elements per coordinate, as far as the paper discusses its Figure 3; it does not give the axis.
_PER_COORDINATE = (1, 2, 3, 5, 8, 12, 20)

#: The standard error of a mean bound of 200 audits, as the paper's Figure 3 shows them.
_FIGURE_ERROR = 0.014


def _one_step(ratio: int) -> DpSgd:
    return DpSgd.calibrated(2.0, 1e-5, n=ratio * 1000, steps=1, sample_rate=1.0)


@cache
def _adaptive_dpsgd(ratios: Sequence[int], feedback: Feedback, trials: int) -> pd.DataFrame:
    """Bounds as in :func:`experiments.adaptive_dpsgd`, but no certificates of full feedback."""
    rows = []
    for ratio in ratios:
        counts = simulate_single_step(
            _one_step(ratio), 1.0, feedback=feedback, trials=trials, seed=1
        )
        means = summary(counts, 0.05, 1e-5, proved=feedback != "full")
        rows.append({"x": ratio, **means})
    return pd.DataFrame(rows)


@cache
def _without_feedback(ratio: int, delta: float) -> float:
    """The exact mean bound without feedback of one step, at the paper's parameters."""
    return mean_bound(single_step_law(_one_step(ratio), 1.0), delta=delta)


@statement("fig:dp-sgd-ora-vs-aora", "Figure 3, Section 6.3", "Monte Carlo")
@explained("06-dp-sgd#fig-dpsgd-adaptive")
@mutants(
    replaced("best", two=2, twelve=12),
    replaced(
        "best",
        "the curve is flat there: the bound differs by less than the figure's error",
        four=4,
        six=6,
        seven=7,
        eight=8,
    ),
    replaced("feedback", none="none"),
    replaced("above", below=False),
)
@remark(
    "Judged up to 20 elements per coordinate, and within the error of the paper's 200 audits. "
    "ORA's exact means are largest at six. AORA must be ahead from three elements on; at one "
    "element per coordinate the two audits have the same law."
)
def figure_of_dpsgd(best: int = 5, feedback: Feedback = "full", above: bool = True) -> Finding:
    """The bounds of AORA are above those of ORA and only gain from more elements per coordinate,
    while those of ORA fall beyond five.
    """
    adaptive = _adaptive_dpsgd(_PER_COORDINATE, feedback, 400)
    ora = {s: _without_feedback(s, 1e-5) for s in range(1, 21)}
    largest = max(ora.values())
    falls = ora[20] < ora[best] - 4 * _FIGURE_ERROR
    on_top = largest - ora[best] <= _FIGURE_ERROR
    evidence = f"ORA has {ora[best]:.3f} at {best}, {largest:.3f} at most and {ora[20]:.3f} at 20"
    lead = [
        (row["bound"] - ora[int(row["x"])]) / row["bound_se"]
        for row in adaptive.to_dict("records")
        if row["x"] >= 3  # at one element per coordinate there is nothing to learn from
    ]
    return all_of(
        _rises(adaptive),
        Finding(on_top and falls, evidence),
        Finding((min(lead) > 4) == above, f"AORA leads by {min(lead):.1f} standard errors or more"),
    )


@cache
def _by_epsilon(what: str) -> pd.DataFrame:
    """Twenty audits per point, as in the paper's Figures 7 and 8."""
    play: dict[str, Any] = {"epsilons": (1, 2, 8), "trials": 20, "seed": 1}
    if what == "guesses":
        return experiments.taken_guesses_by_epsilon((0.004, 0.02, 0.1, 1.0), **play)
    return experiments.elements_by_epsilon((0.1, 0.5, 1, 8), **play)


def _has_effect(table: pd.DataFrame, effect: bool, direction: int) -> Finding:
    """Find whether points differ by more than chance at every ε, and bounds grow with ε."""
    evidence = []
    leads = []
    epsilons = np.unique(table["epsilon"])
    for epsilon in epsilons:
        part = table.query("epsilon == @epsilon").reset_index()
        best = first_largest(part["bound"])
        worst = first_least(part["bound"])
        error = float(np.hypot(part["bound_se"][best], part["bound_se"][worst]))
        leads.append((part["bound"][best] - part["bound"][worst]) / error)
        ends = [
            f"{part['bound'][i]:.2f} (s.e. {part['bound_se'][i]:.2f}) at {part['x'][i]:g}"
            for i in (worst, best)
        ]
        evidence.append(f"for ε = {epsilon:g} the mean bound is {' and '.join(ends)}")
    bounds = table["bound"].to_numpy().reshape(len(epsilons), -1)
    moves = bool((direction * np.diff(bounds, axis=0) > 0).all())
    return Finding((min(leads) > 4) == effect and moves, "; ".join(evidence))


#: The paper says nothing about the curves of Figures 7 and 8.
_NO_DIRECTION = (
    "The paper says only what the figure plots, and we do not know its axes. We can check that "
    "there is an effect at each of our ε, and that the bounds grow with ε."
)


@statement("fig:effect-of-taken-guesses-number-multiple-epsilons", "Figure 7", "Monte Carlo")
@explained("D-dp-sgd-in-detail#fig-detail-seven")
@mutants(replaced("effect", none=False), replaced("direction", falls_with_ε=-1))
@remark(_NO_DIRECTION)
def figure_of_guesses_by_epsilon(effect: bool = True, direction: int = 1) -> Finding:
    """For several ε, the number of guesses on 5000 elements affects the mean bound."""
    return _has_effect(_by_epsilon("guesses"), effect, direction)


@statement("fig:effect-of-elements-number-multiple-epsilons", "Figure 8", "Monte Carlo")
@explained("D-dp-sgd-in-detail#fig-detail-eight")
@mutants(replaced("effect", none=False), replaced("direction", falls_with_ε=-1))
@remark(_NO_DIRECTION)
def figure_of_elements_by_epsilon(effect: bool = True, direction: int = 1) -> Finding:
    """For several ε, the number of elements has an effect on the mean bound of 100 guesses."""
    return _has_effect(_by_epsilon("elements"), effect, direction)


@cache
def _figure_9() -> pd.DataFrame:
    return experiments.adaptive_count_in_sets(
        (2, 3, 5), feedbacks=("none", "full"), trials=400, seed=1
    )


@cache
def _exact_means_of_figure_9() -> dict[str, list[float]]:
    return {
        feedback: [mean_bound(count_in_sets_law(s, 100, feedback)) for s in range(1, 11)]
        for feedback in ("none", "full")
    }


@statement("fig:ora-and-aora-of-count-in-sets", "Figure 9", "Monte Carlo")
@explained("E-adaptive-auditing#fig-adapt-cis")
@mutants(replaced("ora", rises=1), replaced("adaptive", falls=-1))
@remark("The means of the exact laws are varied too: the simulation is compared with them.")
def figure_of_count_in_sets(
    ora: int = -1, adaptive: int = 1, mean_ora: float = 1.0, mean_adaptive: float = 1.0
) -> Finding:
    """On Count-in-Sets the bounds of ORA fall with the size of the sets and those of AORA rise."""
    exact = _exact_means_of_figure_9()
    moves = bool(
        (ora * np.diff(exact["none"]) > 0).all() and (adaptive * np.diff(exact["full"]) > 0).all()
    )
    factors = {"none": mean_ora, "full": mean_adaptive}
    rows = []
    for row in _figure_9().to_dict("records"):
        feedback = row["feedback"]
        s = row["x"]
        mean = factors[feedback] * exact[feedback][s - 1]
        rows.append((f"{feedback}, s = {s}", row["bound"], row["bound_se"], mean))
    directions = Finding(
        moves,
        f"ORA falls from {exact['none'][0]:.2f} to {exact['none'][-1]:.2f}, "
        f"AORA rises from {exact['full'][0]:.2f} to {exact['full'][-1]:.2f}",
    )
    return all_of(near(rows), directions)


@cache
def _dpsgd_counts(n: int, k: int) -> Counts:
    dpsgd = DpSgd.calibrated(2.0, 1e-5, n=n)
    return simulate_dpsgd(dpsgd, k, trials=5000 if n < 10_000 else 8000, seed=1)


@cache
def _share_left(n: int, k: int, rule: Rule = _STEINKE) -> tuple[float, float]:
    """The share of the bound for δ = 0 that is left with δ = 1e-5, and its standard error."""
    counts = _dpsgd_counts(n, k)
    pure = epsilon_lower_bound(counts.v, counts.r)
    with_delta = epsilon_lower_bound(counts.v, counts.r, delta=1e-5, n=n, rule=rule)
    share = float(with_delta.mean() / pure.mean())
    residual = with_delta - share * pure
    return share, float(residual.std(ddof=1) / sqrt(counts.trials) / pure.mean())


@statement("footnote:essentially-identical", "Section 6, footnote", "Monte Carlo")
@explained("paper-check#sec-corr-delta")
@mutants(varied("lost", 20, up=WEAKER))
@remark(
    "The paper gives no number. The 4% is ours, set after we had measured 0.5% at one and 3.6% at "
    "eight: the row says what is lost there, and nothing more. With 20 guesses of 5000 elements "
    "15% is lost (row 96)."
)
@each(at_most)
def delta_hardly_matters(lost: float = 0.04) -> Cases:
    """For δ = 10⁻⁵ the (ε, δ) bounds are essentially those of pure ε-DP auditing: read as at most
    4% lost at the two quoted settings, one and eight elements per coordinate with 100 guesses.
    """
    for n in (1000, 8000):
        share, error = _share_left(n, 100)
        yield f"the share lost at n = {n}, s.e. {error:.4f}", 1 - share, lost


# ------------------------------------------------------------------ beyond what we judge


@ours("ours:many-elements-cost", "This book, beyond the quoted settings", "Monte Carlo")
@explained("paper-check#sec-corr-delta")
@mutants(varied("steinke", up=TOO_SMALL, down=TOO_SMALL), varied("steinke", 10))
def many_elements_cost(steinke: float = 0.12, exact: float = 0.81, few: float = 0.852) -> Finding:
    """With 64 elements per coordinate the p-value of Steinke et al. at δ = 10⁻⁵ leaves about 12% of
    the bound for δ = 0, the exact one about 81%; with 20 guesses of 5000 elements that of Steinke
    et al. leaves about 85%.
    """
    return near(
        [
            ("Steinke et al., n = 64,000", *_share_left(64_000, 100), steinke),
            ("exact, n = 64,000", *_share_left(64_000, 100, Exact()), exact),
            ("20 of 5000", *_share_left(5000, 20), few),
        ]
    )


@ours("ours:adaptive-beyond-forty", "This book, beyond what we judge", "Monte Carlo")
@explained("06-dp-sgd#fig-dpsgd-adaptive")
@mutants(replaced("steinke", rises=1, stays=0), replaced("valid", falls=-1, rises=1))
def adaptive_beyond_forty(steinke: int = -1, valid: int = 0) -> Finding:
    """From 40 to 160 elements per coordinate the bounds of Steinke et al. of adaptive audits of one
    step fall; the random-r bound, for one-way feedback, does not.
    """
    full = _adaptive_dpsgd((40, 160), "full", 100)
    one_way = _adaptive_dpsgd((40, 160), "one-way", 100)
    moves = (_trend(full, "bound"), _trend(one_way, "bound"), _trend(one_way, "valid"))
    of_steinke = " and ".join(_with_errors(full, "bound"))
    of_random_r = " and ".join(_with_errors(one_way, "valid"))
    return Finding(
        moves == (steinke, steinke, valid),
        f"bound of Steinke et al. at 40 and 160: {of_steinke}; random-r bound: {of_random_r}",
    )


# --------------------------------------------------------------------- how much one run can show


@cache
def _best_bounds() -> pd.DataFrame:
    """Ways of auditing the same training run, as ``make data`` computes them with seed 0."""
    return pd.read_csv(book_file("data/best-bounds.csv"), index_col="method")


@ours("ours:best-bound", "This book", "Monte Carlo")
@explained("08-how-much-can-one-run-show#fig-much-table")
@remark("From the table stored with the book; its rows take minutes to compute.")
def best_bound(bound: float = 0.984, gain: float = 1.63) -> Finding:
    """In the paper's main setting, with 350 guesses fixed in advance, canaries that hop, are
    crowded and are dropped have a mean exact bound of 0.984, 1.63 times the bound of Steinke et
    al. of the paper's audit.
    """
    best, paper = (_best_bounds().loc[name] for name in ("crowding", "paper"))
    ratio = best["bound"] / paper["steinke"]
    error = ratio * np.hypot(
        best["bound_se"] / best["bound"], paper["steinke_se"] / paper["steinke"]
    )
    mean = ("hop, drop and crowd", best["bound"], best["bound_se"], bound)
    return near([mean, ("against the paper's audit", ratio, error, gain)])


@cache
def _many_weights() -> pd.DataFrame:
    """Audits of a model with 100,000 weights, by the paper's auditor and by ours."""
    return pd.read_csv(book_file("data/many-weights.csv"), index_col="change")


@ours("ours:many-weights", "This book", "Monte Carlo")
@explained("08-how-much-can-one-run-show#sec-much-free")
@remark("From the table stored with the book; its rows take minutes to compute.")
def many_weights(bound: float = 1.31) -> Finding:
    """With the noise, steps and accountant of the paper's main setting, 800,000 canaries that hop,
    are crowded and are dropped, on 100,000 weights in place of 1,000 and with 1,500 guesses
    fixed in advance, have a mean exact bound of 1.31.
    """
    row = _many_weights().loc["800,000 canaries"]
    return near([("800,000 that hop", row["bound"], row["bound_se"], bound)])


@ours("ours:control", "This book", "Monte Carlo")
@explained("08-how-much-can-one-run-show#sec-much-free")
@mutants(varied("bound", 1), varied("share", 5))
@remark("From the tables stored with the book. The share includes the change of the guesses.")
def control(bound: float = 1.042, share: float = 0.62) -> Finding:
    """Most of this is the number of weights: on the same 100,000 weights the paper's audit, one
    canary on each and 882 guesses, shows 1.042, which is 62% of the rise from its bound on 1,000
    weights to 1.31.
    """
    ladder = pd.read_csv(book_file("data/ladder.csv"), index_col="change")
    start = ladder.loc["as in the paper"]
    middle = _many_weights().loc["control"]
    end = _many_weights().loc["800,000 canaries"]
    rise = end["bound"] - start["bound"]
    risen = (middle["bound"] - start["bound"]) / rise
    errors = [middle["bound_se"], (1 - risen) * start["bound_se"], risen * end["bound_se"]]
    of_rise = ("share of the rise", risen, float(np.linalg.norm(errors)) / rise, share)
    return near([("the paper's audit", middle["bound"], middle["bound_se"], bound), of_rise])


@ours("ours:dropping-is-free", "This book", "quadrature")
@explained("F-theorems#prop-much-dropping")
@mutants(varied("factor", up=WEAKER), replaced("dropped", by_a_coin="by a coin"))
@each(at_most)
def dropping_is_free(factor: float = 1.0, dropped: str = "by the output") -> Cases:
    """Two steps with two canaries, one of which may be dropped after the first output, leak no more
    about a canary than two steps with that canary alone.
    """
    for name, leaked, allowed in _leaks_of_two_steps(dropped):
        yield name, leaked, factor * allowed


@cache
def _leaks_of_two_steps(dropped: str) -> list[tuple[str, float, float]]:
    """(name, δ of a canary among two, of which one may be dropped, δ of a canary alone)."""
    rate = 0.4
    sigma = 0.9
    grid, step = np.linspace(-7, 9, 801, retstep=True)
    of_sums = stats.norm.pdf(grid, np.array([[0], [1], [2]]), sigma)
    # The density of the output of a step, by the number of canaries in the data.
    nobody = of_sums[0]
    alone = (1 - rate) * of_sums[0] + rate * of_sums[1]
    pair = (1 - rate) ** 2 * of_sums[0] + 2 * rate * (1 - rate) * of_sums[1] + rate**2 * of_sums[2]

    def law(first: bool, second: bool, low_end: float, high_end: float) -> Any:
        """The density of two outputs, by who is in the data and who is dropped after the first.

        The first canary is dropped after an output below the low end, the second one after an
        output above the high end.
        """
        with_all = (nobody, alone, pair)[first + second]
        if dropped == "by a coin":  # the second canary is left out of step two without the first
            return np.outer(with_all, with_all if first else nobody)
        without_first = alone if second else nobody
        without_second = alone if first else nobody
        is_low = (grid < low_end)[:, None]
        is_high = (grid > high_end)[:, None]
        after = np.where(is_low, without_first, np.where(is_high, without_second, with_all))
        return with_all[:, None] * after

    def leak(epsilon: float, with_it: Any, without: Any) -> float:
        pairs = ((with_it, without), (without, with_it))
        return max(float(np.maximum(a - np.exp(epsilon) * b, 0).sum()) for a, b in pairs) * step**2

    limits = ((0.3, 1.2), (-np.inf, np.inf))  # the latter drop no canary
    leaks = []
    for epsilon, second, ends in product((0.0, 0.3, 1.0), (False, True), limits):
        allowed = leak(epsilon, np.outer(alone, alone), np.outer(nobody, nobody))
        leaked = leak(epsilon, law(True, second, *ends), law(False, second, *ends))
        dropping = "dropping" if ends[0] > 0 else "nobody dropped"
        leaks.append((f"ε = {epsilon:g}, canaries: {1 + second}, {dropping}", leaked, allowed))
    return leaks
