"""The scores of TensorFlow Privacy, which were computed once and are kept as data."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oralib
import oraudit

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "book" / "data" / "tf-privacy.csv"
MADE = json.loads(TABLE.with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(TABLE)


def test_coins_are_fair_and_scores_know_them(table):
    """Odd coins would be refused; and scores in another order say nothing."""
    bound = oraudit.audit_scores(table["score"], table["included"]).counts.bound
    assert 1 < bound.epsilon < 8
    shuffled = np.random.default_rng(1).permutation(table["score"])
    assert oraudit.audit_scores(shuffled, table["included"]).counts.bound.epsilon < 0.5


def test_what_the_stated_training_makes_of_it(table):
    """As computed by another program: so many are right, so many would refute, so good is it."""
    stated = (MADE["sigma"], MADE["sample_rate"], MADE["steps"])
    counts = oraudit.audit_scores(table["score"], table["included"], training=stated).counts
    test = counts.test
    assert (test.right, test.guesses, test.need) == (309, 358, 355)
    assert test.power[0.7] == pytest.approx(0.28, abs=0.01)
    assert counts.bound.epsilon == pytest.approx(1.857, abs=0.001)


def test_coins_are_those_of_the_seed(table):
    """After the canaries' features and labels."""
    n, rng = MADE["n"], np.random.default_rng(MADE["seed"])
    rng.normal(size=(n, 1000))
    rng.integers(10, size=n)
    assert ((rng.random(n) < 0.5) == table["included"]).all()


def test_training_has_the_chapters_noise_and_learned():
    assert MADE["sigma"] == oralib.noise_multiplier(8, 1e-5, MADE["steps"], MADE["sample_rate"])
    assert MADE["accuracy"] > 0.85
