"""The exact tables: the paper's privacy notions, Theorems 5.1 and 5.2, total variation."""

from itertools import pairwise, product

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import MEMBERS, SMALL, ZOO

import oralib
from orabook.studies import (
    SampledChannel,
    after_guesses,
    probably_approximately_rr,
    success_given_others,
)
from oralib import Channel, channel, p


@pytest.mark.parametrize(("name", "n"), SMALL)
def test_optimal_efficacy_is_the_best_of_all_guessers(name, n):
    """Theorem 5.2: every guess vector of every output is tried, in fractions."""
    mechanism, definition, _, _ = ZOO[name]
    exact, table = oracles.table(definition, n), channel(mechanism, n)
    for k in range(1, n + 1):
        assert table.optimal_efficacy(k) == pytest.approx(float(oracles.best_efficacy(exact, k)))


def check_chain(table):
    """Theorems 5.1 and 5.2, monotonicity in k, and the formula with total variation."""
    slack = 1 + 1e-12
    efficacy = [table.optimal_efficacy(k) for k in range(1, table.n + 1)]
    assert all(a >= b / slack for a, b in pairwise(efficacy))
    assert efficacy[0] == pytest.approx(table.ac_ddp)
    assert efficacy[-1] == pytest.approx(table.ae_ac_ddp)
    assert table.ae_ac_ddp <= table.ac_ddp * slack
    assert table.ac_ddp <= p(table.ddp) * slack
    assert table.ddp <= table.epsilon * slack + 1e-12
    assert efficacy[-1] == pytest.approx(0.5 + table.total_variation.mean() / 2)


def test_chain_of_the_zoo():
    for name, n in MEMBERS:
        check_chain(channel(ZOO[name][0], n))


random_tables = st.tuples(
    st.integers(1, 5), st.integers(1, 8), st.integers(0, 2**32), st.floats(0.0, 0.9)
)


def random_channel(n, outputs, seed, sparsity):
    """A random mechanism, some of whose probabilities are 0."""
    rng = np.random.default_rng(seed)
    table = rng.exponential(size=(outputs, 2**n)) * (rng.random((outputs, 2**n)) > sparsity)
    table[rng.integers(outputs, size=2**n), np.arange(2**n)] += 0.1
    return Channel(table / table.sum(axis=0))


@given(random_tables)
def test_levels_of_random_mechanisms_by_loops(parameters):
    """Each notion again, from its definition, by loops over outputs, datasets and elements."""
    table = random_channel(*parameters)
    check_chain(table)
    index = {tuple(s): j for j, s in enumerate(table.signs.tolist())}
    largest, losses = 0.0, np.empty((len(table.table), table.n))
    for o, row in enumerate(table.table):
        for i in range(table.n):
            halves = {-1: 0.0, 1: 0.0}
            for s, j in index.items():
                halves[s[i]] += row[j] / 2 ** (table.n - 1)
                flipped = index[(*s[:i], -s[i], *s[i + 1 :])]
                if row[j] > 0:
                    ratio = row[j] / row[flipped] if row[flipped] else np.inf
                    largest = max(largest, np.log(ratio))
            with np.errstate(divide="ignore"):
                losses[o, i] = np.log(halves[-1]) - np.log(halves[1])
    assert table.epsilon == pytest.approx(largest)
    np.testing.assert_allclose(table.privacy_loss, losses, atol=1e-9)
    accuracy = 1 / (1 + np.exp(-np.abs(losses)))
    weight = table.table.mean(axis=1)
    assert table.ddp == pytest.approx(np.abs(losses).max())
    assert table.ac_ddp == pytest.approx(weight @ accuracy.max(axis=1))
    assert table.ae_ac_ddp == pytest.approx(weight @ accuracy.mean(axis=1))


@pytest.mark.parametrize("sparsity", [0.0, 0.5])
def test_knowledge_of_the_element_itself_is_ignored(sparsity):
    """Its loss weighs its two values given the others: in full feedback its own sign comes later.

    Each is summed up dataset by dataset, for all that may be known.
    """
    table = random_channel(3, 4, 7, sparsity)
    datasets = list(product((-1, 1), repeat=3))
    for o, i, known in product(range(len(table.table)), range(3), product((-1, 0, 1), repeat=3)):
        others = [j for j in range(3) if j != i and known[j]]
        halves = {
            sign: sum(
                table.table[o, column]
                for column, s in enumerate(datasets)
                if s[i] == sign and all(s[j] == known[j] for j in others)
            )
            for sign in (-1, 1)
        }
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.log(halves[-1]) - np.log(halves[1])
        loss = table.conditional_loss(o, np.array(known, dtype=np.int8), i)
        assert loss == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_impossible_outputs_are_dropped():
    table = Channel(np.array([[0.5, 1.0], [0.0, 0.0], [0.5, 0.0]]), outputs=["a", "b", "c"])
    assert (table.outputs.tolist(), table.n, table.epsilon) == (["a", "c"], 1, np.inf)
    assert len(channel(oralib.AllOrNothing(0.0), 2).table) == 1


@given(random_tables, st.floats(0, 3))
def test_delta_is_the_worst_event(parameters, epsilon):
    """max over neighbours and events A of P[A | s] - e^ε P[A | s'], events by brute force."""
    table = random_channel(*parameters)
    events = np.array(list(product((0, 1), repeat=len(table.table))))
    worst = 0.0
    for a, one in enumerate(table.signs):
        for b, other in enumerate(table.signs):
            if (one != other).sum() == 1:
                gain = table.table[:, a] - np.exp(epsilon) * table.table[:, b]
                worst = max(worst, (events @ gain).max())
    assert table.delta(epsilon) == pytest.approx(worst, abs=1e-12)


@given(random_tables)
def test_success_given_others_by_words(parameters):
    table = random_channel(*parameters)
    guesses = np.where(table.privacy_loss > 0, -1, 1)
    success = success_given_others(after_guesses(table, guesses))
    for k, s in enumerate(table.signs):
        for i in range(table.n):
            found = 0.0
            for sign in (-1, 1):
                dataset = np.where(np.arange(table.n) == i, sign, s)
                column = (table.signs == dataset).all(axis=1)
                found += table.table[guesses[:, i] == sign][:, column].sum() / 2
            assert success[k, i] == pytest.approx(found)
    assert success.mean() == pytest.approx(table.optimal_efficacy())


def test_probably_approximately_randomized_response():
    table = channel(oralib.LocalRandomizedResponse(1.0), 3)
    assert probably_approximately_rr(table, 1.0, 1.0, 0.0).all()
    assert not probably_approximately_rr(table, 1.01, 0.1, 0.0).any()
    assert probably_approximately_rr(table, 1.01, 1.0, 0.01).all()
    parity = channel(oralib.XorInPairs(), 2)
    blind = after_guesses(parity, np.ones((2, 2), dtype=int))
    assert probably_approximately_rr(blind, 0.0, 1.0, 0.0).all()
    assert not probably_approximately_rr(blind, 0.1, 0.01, 0.0).any()


def test_cached_arrays_cannot_be_changed_in_place():
    """Whoever makes a loss finite to draw it would change what the table says of its privacy."""
    table = oralib.channel(oralib.Count(), 3)
    sampled = SampledChannel.of(table)
    shared = [table.table, table.outputs, table.signs, table.privacy_loss, table.guess_accuracy]
    for array in (*shared, sampled.table, sampled.theta, sampled.privacy_loss):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    mine = np.full((2, 2), 0.5)
    oralib.Channel(mine)
    mine[0] = 1.0  # what was given stays the caller's
