"""Mechanisms against their definitions: tables in fractions, losses, laws of the samplers."""

from itertools import combinations, product

import numpy as np
import oracles
import pytest
from scipy import stats
from scipy.special import logsumexp
from zoo import CONTINUOUS, MEMBERS, SMALL, ZOO

import oralib
from ledger.cases import worst_cases
from orabook.studies import SelfMutingResponse
from oralib import (
    CountInSets,
    LocalRandomizedResponse,
    NoisyCountInSets,
    channel,
)
from oralib.mechanisms import sign_vectors


def log_ratio(ratio):
    return np.inf if ratio is None else -np.inf if ratio == 0 else np.log(float(ratio))


def test_table_is_the_definition():
    for name, n in MEMBERS:
        mechanism, definition, _, as_defined = ZOO[name]
        channel, exact = oralib.channel(mechanism, n), oracles.table(definition, n)
        outputs = [as_defined(tuple(o)) for o in channel.outputs.tolist()]
        assert set(outputs) == oracles.outputs(exact)
        assert len(outputs) == len(set(outputs))
        for column, s in enumerate(channel.signs.tolist()):
            for row, o in enumerate(outputs):
                assert channel.table[row, column] == pytest.approx(
                    float(exact[tuple(s)].get(o, 0)), abs=1e-15
                )


def test_loss_given_all_that_may_be_known():
    """For every possible output and every set of known signs that is consistent with it."""
    for name, n in SMALL:
        mechanism, definition, _, as_defined = ZOO[name]
        exact = oracles.table(definition, n)
        outputs = oralib.channel(mechanism, n).outputs
        for o in outputs:
            losses = mechanism.privacy_loss(o, n)
            for known in product((-1, 0, 1), repeat=n):
                known_signs = {i: sign for i, sign in enumerate(known) if sign}
                for i in range(n):
                    minus, plus = (
                        oracles.joint(exact, as_defined(tuple(o.tolist())), known_signs, i, sign)
                        for sign in (-1, 1)
                    )
                    if minus == plus == 0:
                        continue
                    expected = log_ratio(minus / plus if plus else None)
                    loss = mechanism.conditional_loss(o, np.array(known, dtype=np.int8), i)
                    assert loss == pytest.approx(expected, abs=1e-12)
                    if not any(known):
                        assert losses[i] == pytest.approx(expected, abs=1e-12)


def test_privacy_level():
    for name, n in MEMBERS:
        mechanism = ZOO[name][0]
        assert oralib.channel(mechanism, n).epsilon == pytest.approx(mechanism.epsilon, rel=1e-12)


def test_sampler_has_the_law_of_the_table():
    """A chi-square test of the joint law of dataset and output."""
    others = SelfMutingResponse(0.8, (1, 2, 2)), worst_cases.ExtremalResponse(0.7, 0.05, 2, 2)
    for mechanism, n in [*((ZOO[name][0], n) for name, n in MEMBERS), *product(others, (3,))]:
        channel = oralib.channel(mechanism, n)
        rng = np.random.default_rng(2024)
        trials = 20_000
        signs = channel.signs[rng.integers(2**n, size=trials)]
        outputs = mechanism.run(signs, rng)
        rows = {tuple(o): i for i, o in enumerate(channel.outputs.tolist())}
        columns = {tuple(s): i for i, s in enumerate(channel.signs.tolist())}
        observed = np.zeros_like(channel.table)
        for o, s in zip(outputs.tolist(), signs.tolist(), strict=True):
            observed[rows[tuple(o)], columns[tuple(s)]] += 1
        assert observed[channel.table == 0].sum() == 0
        expected = channel.table * observed.sum(axis=0)  # given the datasets that were drawn
        possible = channel.table > 0
        if possible.sum() > 2**n:  # else the mechanism is deterministic, and all is checked
            statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
            assert stats.chi2.sf(statistic, possible.sum() - 2**n) > 1e-3
        else:
            np.testing.assert_array_equal(observed[possible], expected[possible])


def test_continuous_sampler_has_its_laws():
    """Each entry by its distribution function; and entries do not depend on each other."""
    trials = 20_000
    for mechanism, definition, sizes in CONTINUOUS.values():
        for n in sizes:
            s = [1 if i % 3 < 2 else -1 for i in range(n)]
            laws = definition(s)
            output = mechanism.run(np.tile(np.array(s, dtype=np.int8), (trials, 1)), generator())
            assert output.shape == (trials, len(laws))
            levels = [law.cdf(entry) for law, entry in zip(laws, output.T, strict=True)]
            for level in levels:
                assert stats.kstest(level, "uniform").pvalue > 1e-3
            for one, other in combinations(levels, 2):
                assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(trials)


def generator():
    return np.random.default_rng(5)


def test_continuous_loss_given_all_that_may_be_known():
    """By adding up densities over all datasets, for every set of known signs."""
    grid = np.linspace(-5, 5, 101)
    for mechanism, definition, sizes in CONTINUOUS.values():
        for n in sizes:
            datasets = sign_vectors(n)
            laws = [definition(s) for s in datasets.tolist()]
            rng = generator()
            output = np.column_stack([rng.permutation(grid) for _ in laws[0]])
            log_density = np.array(
                [sum(law.logpdf(x) for law, x in zip(each, output.T, strict=True)) for each in laws]
            )
            losses = mechanism.privacy_loss(output, n)
            largest = 0.0
            for known in np.array(list(product((-1, 0, 1), repeat=n)), dtype=np.int8):
                for i in range(n):
                    others = np.delete(np.arange(n), i)
                    agree = (known[others] == 0) | (known[others] == datasets[:, others])
                    level = {
                        sign: logsumexp(
                            log_density[agree.all(axis=1) & (datasets[:, i] == sign)], axis=0
                        )
                        for sign in (-1, 1)
                    }
                    expected = level[-1] - level[1]
                    loss = mechanism.conditional_loss(output, np.tile(known, (len(output), 1)), i)
                    np.testing.assert_allclose(loss, expected, rtol=1e-12, atol=1e-12)
                    largest = max(largest, np.abs(loss).max())
                    if not known.any():
                        np.testing.assert_allclose(losses[:, i], expected, rtol=1e-12, atol=1e-12)
            if np.isfinite(mechanism.epsilon):
                assert largest == pytest.approx(mechanism.epsilon)


def test_runs_keep_leading_axes():
    widths = [
        (entry[0], n, entry[0].outputs(n).shape[1]) for entry in ZOO.values() for n in entry[2]
    ]
    for mechanism, definition, sizes in CONTINUOUS.values():
        widths += [(mechanism, n, len(definition([1] * n))) for n in sizes]
    for mechanism, n, width in widths:
        signs = np.ones((3, 5, n), dtype=np.int8)
        output = mechanism.run(signs, generator())
        assert output.shape == (3, 5, width)
        assert mechanism.privacy_loss(output, n).shape == (3, 5, n)
        assert mechanism.conditional_loss(output, signs, n - 1).shape == (3, 5)


def test_checked_values_are_stored():
    assert CountInSets(2.0) == CountInSets(2)
    assert repr(CountInSets(np.float64(2))) == "CountInSets(s=2)"
    assert repr(LocalRandomizedResponse(np.int64(1))) == "LocalRandomizedResponse(epsilon=1.0)"


def muting_by_words(rate, line, n):
    """The table, output by output and dataset by dataset."""
    truth = 1 / (1 + np.exp(-rate))
    table = np.ones((2**n, 2**n))
    signs = sign_vectors(n)
    for j, o in enumerate(signs):
        for k, s in enumerate(signs):
            right, good = 0, False
            for i in range(n):
                table[j, k] *= 0.5 if good else (truth if o[i] == s[i] else 1 - truth)
                right += o[i] == s[i]
                good = good or right >= line[i]
    return table


def test_self_muting_response_is_its_words():
    for rate, line in ((0.7, (2, 2, 2, 3)), (0.05, (1, 9, 9, 9)), (1, (9,) * 4)):
        mechanism = SelfMutingResponse(rate, line)
        table = channel(mechanism, 4)
        assert np.allclose(table.table, muting_by_words(rate, line, 4))
        assert np.allclose(mechanism.privacy_loss(table.outputs, 4), table.privacy_loss)
        for o, s in product(range(16), range(16)):
            for i in range(4):
                known = np.where(np.arange(4) < i, table.signs[s], 0)
                loss = mechanism.conditional_loss(table.outputs[o], known, i)
                assert loss == pytest.approx(table.conditional_loss(o, known, i))
                assert any(abs(loss) == pytest.approx(x) for x in (0, rate))


def test_sets_of_unequal_size():
    counts = CountInSets(3)
    assert counts.run(np.array([[1, -1, 1, 1, 1]]), np.random.default_rng(0)).tolist() == [[2, 2]]
    assert len(counts.outputs(5)) == counts.count_outputs(5) == 4 * 3
    noisy = NoisyCountInSets(3, 1.0)
    alone = NoisyCountInSets(2, 1.0)
    output = np.array([1.3, 0.4])
    assert np.allclose(noisy.privacy_loss(output, 5)[3:], alone.privacy_loss(output[1:], 2))


def test_outputs_of_the_extremal_response():
    for n, r in ((3, 1), (4, 2), (4, 4)):
        mechanism = worst_cases.ExtremalResponse(1.0, 0.01, 1, r)
        outputs = {tuple(o) for o in mechanism.outputs(n).tolist()}
        assert outputs == {o for o in product((-1, 0, 1), repeat=n) if sum(map(abs, o)) == r}
        assert len(mechanism.outputs(n)) == mechanism.count_outputs(n) == len(outputs)
    # One printed sign of eighteen elements: 36 outputs, not 3^18.
    large = channel(worst_cases.ExtremalResponse(1.0, 0.01, 1, 1), 18)
    assert large.table.shape == (36, 2**18)


def test_a_tail_too_small_for_a_double():
    mechanism = worst_cases.ExtremalResponse(0.0, 1e-3, 2000, 2000)
    assert mechanism._law(2000).sum() == pytest.approx(1)
    assert mechanism._law(2000)[2000] == pytest.approx(1e-3)
    counts = oralib.one_run(mechanism, oralib.TopGuesser(2000), 2000, trials=5, seed=1)
    assert (counts.v >= 800).all()
