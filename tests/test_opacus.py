"""What the audit of a training by Opacus decides and computes outside PyTorch.

``tests/test_canaries.py`` has the trainings themselves, for those who have PyTorch.
"""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_canaries import SMALL, planned

import oralib.canaries
from oralib.accounting import SIGMA_RANGE
from oralib.canaries import Canaries
from oralib.canaries._data import CanaryData, batch_size, differ, divisor, gradients_in
from oralib.canaries.opacus import OpacusAudit


class PoissonLoader(list):
    """Stands for Opacus's loader, with as many batches as entries."""


def some_optimizer(noise=SMALL.sigma, **named):
    stated = {"noise_multiplier": noise, "max_grad_norm": 1.5, "loss_reduction": "mean"}
    return SimpleNamespace(**stated | named)


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    """What the part with PyTorch is given: here something that only writes it down."""
    shown = []
    half = SimpleNamespace(weight="w")
    stand_in = SimpleNamespace(
        SOFTWARE="Opacus 0",
        DPDataLoader=PoissonLoader,
        checked_optimizer=lambda optimizer, way: optimizer.noise_multiplier,
        InTheSum=lambda *given: shown.append(given),
        WithCanaries=lambda *given: SimpleNamespace(coordinates=[half, half], given=given),
        loader_of=lambda data, rate: PoissonLoader([data] * round(1 / rate)),
        show_gradients=lambda *given: shown.append(given),
    )
    monkeypatch.setattr(oralib.canaries, "_torch", stand_in, raising=False)
    return shown


def test_canaries_in_the_sum(shown):
    optimizer, plan = some_optimizer(), planned(SMALL, 40, way="sum")
    audit = OpacusAudit(plan, optimizer=optimizer, seed=3)
    assert shown == [(optimizer, audit.canaries)]
    same = Canaries.from_plan(plan, seed=3, public_seed=0)
    assert (audit.canaries.included == same.included).all()
    assert (audit.canaries.places(0) == same.places(0)).all()
    assert audit.growth == 1.0
    with pytest.raises(ValueError, match="attach is for canaries as examples"):
        audit.attach(None, optimizer, None)
    for given in ({}, {"model": 1}, {"data": 1}):
        with pytest.raises(ValueError, match="give optimizer=, and neither model nor data"):
            OpacusAudit(plan, **given, optimizer=optimizer if given else None, seed=3)


def test_canaries_as_examples(shown):
    plan, optimizer, data = planned(SMALL, 40), some_optimizer(), [("x", 1)] * 120
    audit = OpacusAudit(plan, "model", data, seed=3)
    assert audit.model.given == ("model", audit.canaries)
    assert audit.growth == (120 + SMALL.n) / 120
    wrapped = SimpleNamespace(modules=lambda: ["another", audit.model])
    audit.attach(wrapped, optimizer, audit.loader)
    assert shown == [(optimizer, audit.canaries, ["w", "w"])]
    assert audit.model.push == 4.5  # three thresholds
    assert audit.model.loss_is_mean
    audit.attach(wrapped, some_optimizer(loss_reduction="sum"), audit.loader)
    assert not audit.model.loss_is_mean
    with pytest.raises(ValueError, match="model must contain that of the audit"):
        audit.attach(SimpleNamespace(modules=lambda: ["another"]), optimizer, audit.loader)
    with pytest.raises(ValueError, match=r"rate of the plan, 0\.125, got 0\.1: give make_private"):
        audit.attach(wrapped, optimizer, PoissonLoader(range(10)))
    with pytest.raises(ValueError, match=r"loader must draw Poisson .*got list"):
        audit.attach(wrapped, optimizer, list(range(8)))
    for given in (("model", None, None), (None, data, None), ("model", data, optimizer)):
        with pytest.raises(ValueError, match="give model and data, and no optimizer"):
            OpacusAudit(plan, *given[:2], optimizer=given[2], seed=3)


def test_the_noise_that_the_optimizer_states():
    """Up to 1% nothing is said; more noise is believed; less, only with a warning."""
    plan = planned(SMALL, 40, way="sum")
    certified = plan.claim.epsilon

    def expected(share, claim=certified):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mine = replace(plan, claim=replace(plan.claim, epsilon=claim))
            optimizer = some_optimizer(share * SMALL.sigma)
            audit = OpacusAudit(mine, optimizer=optimizer, seed=1)
        assert all(w.filename == __file__ for w in caught)  # the line of the user's
        return audit.canaries.dpsgd.sigma, len(caught)

    assert expected(1.0) == expected(0.992) == (SMALL.sigma, 0)
    assert expected(1.2) == (1.2 * SMALL.sigma, 0)
    assert expected(0.9) == (0.9 * SMALL.sigma, 1)
    assert expected(0.0) == (SIGMA_RANGE[0], 1)
    # Accountants differ a little, so that a claim exceeded by 1% is no reason to warn.
    less = oralib.certified_epsilon(0.9 * SMALL.sigma, 1e-5, SMALL.steps, 0.125, accountant="pld")
    assert [expected(0.9, less / over)[1] for over in (1.01, 1.03)] == [0, 1]


def test_going_on_with_a_file(tmp_path):
    plan, file = planned(SMALL, 40, way="sum"), tmp_path / "canaries.npz"
    first = OpacusAudit(plan, optimizer=some_optimizer(1.1 * SMALL.sigma), seed=3)
    first.canaries.save(file)
    again = OpacusAudit(plan, optimizer=some_optimizer(1.1 * SMALL.sigma), resume=file)
    assert (again.canaries.included == first.canaries.included).all()
    for seed, resume in ((3, file), (None, None)):
        with pytest.raises(ValueError, match="give one of seed and resume"):
            OpacusAudit(plan, optimizer=some_optimizer(), seed=seed, resume=resume)
    fewer = replace(SMALL, n=60)
    others = (planned(SMALL, 21, way="sum"), planned(fewer, 40, way="sum"), planned(SMALL, 40))
    for other in others:
        with pytest.raises(ValueError, match="resume must be a file of canaries of this plan"):
            OpacusAudit(other, optimizer=some_optimizer(), resume=file)


def test_canaries_after_the_examples():
    data = CanaryData([("a", 0), ["b", 1]], 3)
    assert len(data) == 5
    shown = [("a", 0, -1), ("b", 1, -1), ("a", 0, 0), ("a", 0, 1), ("a", 0, 2)]
    assert [data[i] for i in range(5)] == shown
    assert CanaryData(["a"], 1)[0] == ("a", -1)


def test_rates_batches_and_divisors():
    assert not differ(1.0099, 1.0) and differ(1.0101, 1.0) and differ(0.98, 1.0)  # noqa: PT018
    assert not differ(0.505, 0.5001) and differ(0.506, 0.5)  # noqa: PT018
    assert [batch_size(100, rate) for rate in (1.0, 0.5, 0.125, 0.3)] == [100, 50, 13, None]
    known = {"expected_batch_size": 30, "accumulated_iterations": 2}
    assert divisor(some_optimizer(**known)) == 60.0
    assert divisor(some_optimizer(**known | {"loss_reduction": "sum"})) == 1.0


def test_the_gradients_that_canaries_ask_for():
    """One by one, the user's own examples and dropped canaries among them."""
    canaries = Canaries.from_plan(planned(SMALL, 40), seed=2)
    coin, where = canaries.included, canaries.places(0).copy()
    where[[1, 5]] = -1  # dropped
    canaries.places = lambda step: where
    who = np.array([-1, 0, 1, 2, 5, 7, -1, SMALL.n - 1])
    assert {bool(coin[i]) for i in (0, 1, 2, 5, 7)} == {True, False}
    assert coin[-1] or coin[5]
    for mean, batch in ((True, 8), (False, 1)):
        at, size = gradients_in(canaries, who, 3.0, mean)
        for i, j in enumerate(who):
            active = j >= 0 and where[j] >= 0
            assert size[i] == (3.0 / batch if active and coin[j] else 0.0)
            assert at[i] == where[j] if active else at[i] >= 0
    empty = gradients_in(canaries, who[:0], 3.0, True)
    assert [part.size for part in empty] == [0, 0]
