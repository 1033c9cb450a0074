"""Real trainings by Opacus, with bugs and without, and how audits of them end.

Without PyTorch these tests are skipped, unless ORALIB_REQUIRE_TORCH is set.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from orabook.builder import data
from orabook.trainings import blackbox, planted, release_noise
from orabook.trainings.leak import expected_batch
from oralib import Canaries
from oralib.ground.types import WAYS
from oralib.scores.seen import LIMIT

pytestmark = pytest.mark.torch

TORCH = find_spec("opacus") is not None or os.environ.get("ORALIB_REQUIRE_TORCH")
real = pytest.mark.skipif(not TORCH, reason="PyTorch and Opacus are not installed: make torch")


@pytest.fixture(scope="module")
def audited():
    return pd.read_csv(data.FOLDER / "audited-trainings.csv")


@real
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_table_of_audited_trainings_is_that_of_this_library(way, audited, monkeypatch):
    """Its first runs without a bug and with some, trained again."""
    from orabook.trainings import _opacus

    monkeypatch.setattr(_opacus, "BUGS", ["same noise in each step", "no clipping", "shuffled"])
    again = planted.planted_bugs([way], runs=1, honest=0)
    rows = audited.query("way == @way and run == 0 and training == 'SGD'").set_index("bug")
    rows = rows.loc[again["bug"]].reset_index()
    # Sums of floats may differ in the last digits on another machine.
    assert again["v"].to_numpy() == pytest.approx(rows["v"].to_numpy(), abs=1)
    z = [name for name in rows if name.startswith("z_")]
    np.testing.assert_allclose(again[z], rows[z], rtol=0.02, atol=0.3)
    assert again[["status", "found"]].equals(rows[["status", "found"]])


def test_what_audits_of_trainings_find(audited):
    """Wrong noise always; wrong sampling and clipping only if canaries are examples."""
    found = audited["found"] != "nothing"
    assert len(audited) == 10 * 2 * 12 + 4 * (5 + 4)
    assert (found == audited["status"].isin(["refuted", "unlike"])).all()
    shares = found.groupby([audited["way"], audited["bug"]]).mean()
    clipping = ["no clipping", "batch clipped as a whole", "each layer clipped alone"]
    for way in WAYS:
        of_noise = shares[way].filter(like="noise")
        assert len(of_noise) == 5
        assert (of_noise == 1).all()
    assert (shares["examples"][[*clipping, "half the data in each batch"]] == 1).all()
    # What canaries cannot see is accused as seldom as what is honest: here in at most 1 of 20.
    unseen = audited["bug"].eq("none") | audited["way"].eq("sum")
    unseen &= ~audited["bug"].str.contains("noise")
    assert found[unseen].mean() <= 0.05
    assert not audited["status"][unseen].eq("refuted").any()


def test_honest_audits_are_seldom_accused():
    """At most 1% of them, and three standard errors more."""
    table = pd.read_csv(data.FOLDER / "honest-audits.csv")
    accused, trials = table["unlike"].sum() + table["refuted"].sum(), table["trials"].sum()
    assert trials == 2000
    assert accused <= 0.01 * trials + 3 * np.sqrt(0.01 * trials)


@pytest.mark.parametrize(("share", "statuses"), [(1.0, {"not refuted"}), (0.0, {"refuted"})])
@pytest.mark.filterwarnings("ignore:the noisy gradients look like")
def test_a_loop_whose_noise_was_deleted(share, statuses):
    """One vector of weights, the model's and the canaries', and one call for the noise."""
    plan = planted.plan_of("sum")
    canaries, rng = Canaries.from_plan(plan, seed=1), np.random.default_rng(1)
    for step in range(plan.design.dpsgd.steps):
        summed = np.concatenate([rng.uniform(size=640), canaries.gradient(step)])
        noisy = summed + share * rng.normal(scale=plan.design.dpsgd.sigma, size=summed.size)
        canaries.observe(step, noisy[640:])
    audit = plan.audit(canaries.scores, canaries.included, canaries.seen)
    assert audit.status in statuses
    assert (abs(audit.seen.checks[1].z) > LIMIT) == (share == 0)


@real
def test_the_noise_of_opacus_depends_on_the_number_of_examples():
    """A fact about Opacus 1.6.0; a version that has repaired it will be noticed here."""
    batches = {100: 10, 101: 9, 109: 9, 110: 10, 111: 9, 921: 10, 931: 9}
    for examples, batch in batches.items():
        assert expected_batch(examples, 10) == batch
        noise = release_noise(examples, weights=20_000, seed=1)
        assert noise.std() == pytest.approx(1 / batch, rel=0.02)


@real
def test_ghost_clipping_divides_by_the_same_number():
    """Also where the number differs by one in 256: a million weights show it."""
    how = {"weights": 900, "batch_size": 10, "steps": 5, "seed": 3}
    np.testing.assert_array_equal(release_noise(40, **how), release_noise(40, ghost=True, **how))
    for examples, batch in ((256_000, 256), (256_001, 255)):
        assert expected_batch(examples, 256) == batch
        noise = release_noise(examples, weights=10**6, batch_size=256, ghost=True, seed=batch)
        # Within four standard errors, which are less than the difference.
        assert 1 / noise.std() == pytest.approx(batch, rel=4 / np.sqrt(2 * 10**6))


def test_bad_input():
    for name, value in {"examples": 0, "seed": 2**63, "batch_size": 99}.items():
        with pytest.raises(ValueError, match=f"{name} must lie in"):
            release_noise(**{"examples": 10, "seed": 1} | {name: value})


def test_what_is_missing_is_named():
    """In a process where the packages cannot be found."""
    code = """
import sys
sys.modules["torch"] = None
from orabook.trainings import release_noise
try:
    release_noise(10, seed=1)
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install torch opacus" in done.stdout


@real
def test_the_table_of_last_models_is_that_of_this_library():
    """Its first run; rounding grows in a thousand steps. And no honest bound is above its claim."""
    table, first = pd.read_csv(data.FOLDER / "black-box.csv"), blackbox.black_box(runs=1)
    rows = table.query("run == 0").reset_index(drop=True)
    assert first[["kind", "score"]].equals(rows[["kind", "score"]])
    assert first["v"].to_numpy() == pytest.approx(rows["v"].to_numpy(), abs=5)
    assert (table.query("kind == 'honest'")["bound"] < blackbox.CLAIM).all()
