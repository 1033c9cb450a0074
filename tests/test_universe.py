"""Section 5 in its general form: any universe and product distribution, by words and as a table."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import SMALL, ZOO

from orabook.studies import SampledChannel
from oralib import Channel, Xor, channel


def random_sampled(seed, size, n, outputs=3):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(outputs), size=(size,) * n)
    return SampledChannel(np.moveaxis(table, -1, 0), rng.dirichlet(np.ones(size), n))


def given_by_words(sampled, o, i, x):
    """P[O = o | D_i = x], dataset by dataset."""
    n, size = sampled.theta.shape
    found = 0.0
    for d in product(range(size), repeat=n):
        if d[i] == x:
            others = [sampled.theta[j, d[j]] for j in range(n) if j != i]
            found += sampled.table[(o, *d)] * np.prod(others)
    return found


cases = st.tuples(st.integers(0, 1000), st.integers(2, 3), st.integers(1, 3))


@given(cases)
def test_loss_and_notions_by_words(case):
    sampled = random_sampled(*case)
    n, size = sampled.theta.shape
    ddp, ac, ae = 0.0, 0.0, 0.0
    for o in range(len(sampled.table)):
        rows = [[given_by_words(sampled, o, i, x) for x in range(size)] for i in range(n)]
        for i, x, y in product(range(n), range(size), range(size)):
            loss = np.log(rows[i][x] / rows[i][y])
            assert sampled.privacy_loss[o, i, x, y] == pytest.approx(loss)
            ddp = max(ddp, loss)
        accuracy = [max(row) / (max(row) + min(row)) for row in rows]
        probability = np.dot(rows[0], sampled.theta[0])
        assert sampled.probability[o] == pytest.approx(probability)
        ac += probability * max(accuracy)
        ae += probability * np.mean(accuracy)
    assert sampled.ddp == pytest.approx(ddp)
    assert sampled.ac_ddp == pytest.approx(ac)
    assert sampled.ae_ac_ddp() == pytest.approx(ae)
    assert sampled.ae_ac_ddp(1) == pytest.approx(ac)


@given(cases)
def test_the_chain_holds_for_every_product_distribution(case):
    sampled = random_sampled(*case)
    levels = [sampled.ae_ac_ddp(k) for k in range(sampled.n, 0, -1)]
    levels += [sampled.ac_ddp, *(1 / (1 + np.exp(-x)) for x in (sampled.ddp, sampled.epsilon))]
    assert (np.diff(levels) >= -1e-12).all()


@pytest.mark.parametrize(("name", "n"), SMALL)
def test_fair_coins_are_the_audit(name, n):
    table = channel(ZOO[name][0], n)
    sampled = SampledChannel.of(table)
    assert sampled.ddp == pytest.approx(table.ddp)
    assert sampled.epsilon == pytest.approx(table.epsilon)
    assert sampled.ac_ddp == pytest.approx(table.ac_ddp)
    for k in range(1, n + 1):
        assert sampled.ae_ac_ddp(k) == pytest.approx(table.optimal_efficacy(k))
    loss = sampled.privacy_loss[:, :, 0, 1]
    assert np.allclose(np.nan_to_num(loss), np.nan_to_num(table.privacy_loss))


def test_certain_laws_leave_no_pair_to_tell_apart():
    """And if only the others are certain, the loss of an element is that of DP."""
    sampled = SampledChannel.of(channel(Xor(), 3), [0.0, 1.0])
    assert (sampled.ddp, sampled.ac_ddp, sampled.epsilon) == (0.0, 0.5, np.inf)
    theta = [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]
    assert SampledChannel.of(channel(Xor(), 3), theta).ddp == np.inf


def test_parity_of_biased_coins():
    for q, n in product((0.6, 0.9), (2, 3, 4)):
        sampled = SampledChannel.of(channel(Xor(), n), [1 - q, q])
        assert sampled.ddp == pytest.approx(2 * np.arctanh(abs(1 - 2 * q) ** (n - 1)))


def test_pairs_choose_from_the_universe():
    rng = np.random.default_rng(5)
    table = np.moveaxis(rng.dirichlet(np.ones(4), size=(3, 3)), -1, 0)
    sampled = SampledChannel(table, np.full(3, 1 / 3))
    chosen = sampled.restricted([(0, 2), (1, 0)])
    assert isinstance(chosen, Channel)
    for k, s in enumerate(chosen.signs):
        d = ((0, 2)[int(s[0] > 0)], (1, 0)[int(s[1] > 0)])
        assert np.allclose(chosen.table[:, k], table[:, d[0], d[1]])
    assert chosen.epsilon <= sampled.epsilon + 1e-12
