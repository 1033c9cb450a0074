"""The scores of TensorFlow Privacy, which come from an environment of its own."""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import oralib
from oralib import scores

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "orabook" / "trainings" / "tf_privacy.py"
TABLE = ROOT / "book" / "data" / "tf-privacy.csv"
MADE = json.loads(TABLE.with_suffix(".json").read_text())
PINS = dict(
    line.split("==")
    for line in (ROOT / "requirements-tf.txt").read_text().splitlines()
    if not line.startswith("#")
)


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(TABLE)


def test_the_file_is_that_of_the_script():
    """Who edits the script runs ``make tf-scores`` again."""
    assert MADE["script"] == hashlib.sha256(SCRIPT.read_bytes()).hexdigest()
    assert MADE["tensorflow"] == PINS["tensorflow"]
    assert MADE["tensorflow_privacy"] == PINS["tensorflow-privacy"]


def test_coins_are_fair_and_scores_know_them(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # which odd coins would give
        audit = oralib.audit_scores(table["score"], table["included"], guesses=200, delta=1e-5)
    assert audit.coins_p_value > scores.UNFAIR
    assert 1 < audit.bound < 8
    shuffled = np.random.default_rng(1).permutation(table["score"])
    assert oralib.audit_scores(shuffled, table["included"], guesses=200, delta=1e-5).bound < 0.5


def test_coins_are_those_of_the_seed(table):
    """After the canaries' features and labels."""
    n, rng = MADE["n"], np.random.default_rng(MADE["seed"])
    rng.normal(size=(n, 1000))
    rng.integers(10, size=n)
    assert ((rng.random(n) < 0.5) == table["included"]).all()


def test_its_noise_is_that_of_the_chapter_and_it_has_learned():
    assert MADE["sigma"] == oralib.noise_multiplier(8, 1e-5, MADE["steps"], MADE["sample_rate"])
    assert MADE["accuracy"] > 0.85
