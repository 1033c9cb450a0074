"""Canaries in a training run with PyTorch and Opacus: two lines of your script, or nine.

**In the sum** (plans with ``way="sum"``). Two lines, whatever the model and the data are, with flat
clipping, clipping by layers or ghost clipping:

>>> audit = OpacusAudit("plan.json", optimizer=optimizer, seed=1)  # doctest: +SKIP
>>> audit.canaries.write_scores("scores.csv")  # doctest: +SKIP

The first comes after ``make_private``, the second after the training. In each step the audit
samples canaries at the rate of the plan, and adds their gradients, each of one clipping threshold,
to a clipped sum of its own; Opacus adds its noise, and the audit reads the result. So the noise,
the steps and the accountant are under test, but neither sampling nor clipping, and your training is
what it was.

**As examples** (``way="examples"``). All of it is under test, and the canaries cost what as many
examples would. Four lines are new, four change, and your own ``DataLoader`` is not needed any more:

>>> audit = OpacusAudit("plan.json", model, data, seed=1)  # new  # doctest: +SKIP
>>> optimizer = SGD(audit.model.parameters(), lr=0.1 * audit.growth)  # doctest: +SKIP
>>> model, optimizer, loader = PrivacyEngine().make_private(  # doctest: +SKIP
...     module=audit.model, optimizer=optimizer, data_loader=audit.loader,
...     noise_multiplier=1.1, max_grad_norm=1.0)
>>> audit.attach(model, optimizer, loader)  # new  # doctest: +SKIP
>>> for inputs, labels, who in loader:  # doctest: +SKIP
...     optimizer.zero_grad()
...     loss(model(inputs, who), labels).backward()
...     optimizer.step()
>>> audit.canaries.write_scores("scores.csv")  # new  # doctest: +SKIP

The canaries get weights of their own, and Opacus samples them like all other examples. The gradient
of an included canary is three clipping thresholds on each of two weights, in two tensors, whatever
the loss is, so that Opacus clips it to one threshold in all. That of any other canary is 0; it
stays in the data, whose number must not depend on coins. Ghost clipping and clipping by layers are
not supported in this way.

**Probes.** Both ways can audit one training run. Canaries in the sum give the bound; about
200 as examples (``oralib plan --way examples --canaries 200 --d 2``) give no bound to speak of, but
their mean gradient shows whether sampling and clipping are as stated, at hardly a cost.

The training must have as many steps as the plan. Any optimizer of PyTorch will do, since the audit
reads noisy gradients, not weights. Of the eight optimizers of Opacus 1.6 that may wrap it, canaries
in the sum take three: ``DPOptimizer``, ``DPPerLayerOptimizer`` and
``DPOptimizerFastGradientClipping``. Canaries as examples take only the first. All others, for
adaptive clipping and for distributed training, are refused.
"""

import os
from dataclasses import replace
from typing import Any
from warnings import warn

from oralib.accounting import SIGMA_RANGE
from oralib.canaries._data import CanaryData
from oralib.canaries._steps import InTheSum, show_gradients
from oralib.canaries.loop import Canaries
from oralib.dpsgd.setting import differ
from oralib.planning import AuditPlan

__all__ = ["OpacusAudit"]

#: The size of a canary's gradient before clipping, in clipping thresholds.
SIZE = 3.0


class OpacusAudit:
    """A plan and its canaries, on their way through Opacus.

    Parameters
    ----------
    plan : AuditPlan or path
        The plan, or the file that ``oralib plan --out`` wrote.
    model, data : torch.nn.Module, torch.utils.data.Dataset
        Only for canaries as examples: your model, which must return a tensor with a row for each
        example, and your examples, tuples such as an input and a label.
    optimizer : opacus.optimizers.DPOptimizer
        Only for canaries in the sum: the optimizer that the privacy engine returned.
    seed, public_seed : int
        As in :class:`oralib.Canaries`; for a new training.
    resume : path or None
        In place of a seed, a file from ``canaries.save``, to go on with the canaries as they were.

    Attributes
    ----------
    canaries : oralib.Canaries
        The canaries: their coins, their scores, and what they saw of the training.
    model : torch.nn.Module
        As examples: your model with weights for the canaries. It takes two inputs: that of your
        model, and for each example the number of its canary, -1 for your own examples. Without the
        second input, as for predictions, it is just your model.
    data, loader : torch.utils.data.Dataset, torch.utils.data.DataLoader
        As examples: yours, and after them the canaries, with one more entry: which canary it is;
        and batches of these at the sample rate of the plan. If that is not 1 over an integer, the
        loader samples by itself; then give ``make_private`` also ``poisson_sampling=False``.
    """

    def __init__(
        self,
        plan: AuditPlan | str | os.PathLike[str],
        model: Any = None,
        data: Any = None,
        *,
        optimizer: Any = None,
        seed: int | None = None,
        public_seed: int = 0,
        resume: str | os.PathLike[str] | None = None,
    ) -> None:
        from oralib.canaries import _torch  # here, as it takes seconds and not everybody has it

        self.plan = plan if isinstance(plan, AuditPlan) else AuditPlan.load(plan)
        if (seed is None) == (resume is None) or (resume is not None and public_seed):
            got = f"{seed=}, {public_seed=} and {resume=}"
            raise ValueError(f"give one of seed and resume, no public_seed to resume, got {got}")
        if resume is not None:
            self.canaries = Canaries.load(resume)
            self._check_plan(resume)
        elif seed is not None:
            self.canaries = Canaries.from_plan(self.plan, seed=seed, public_seed=public_seed)
        self.canaries.software = _torch.SOFTWARE
        if self.plan.design.way == "sum":
            if optimizer is None or model is not None or data is not None:
                where = "the canaries of this plan go into the sum (way='sum')"
                raise ValueError(f"give optimizer=, and neither model nor data: {where}")
            self._expect(_torch.checked_optimizer(optimizer, "sum"))
            weight = _torch.new_weight(optimizer, self.canaries.dpsgd.used_coordinates)
            InTheSum(optimizer, self.canaries, weight)
            return
        if model is None or data is None or optimizer is not None:
            what = "the canaries of this plan are examples (way='examples')"
            why = f"{what}, and attach() takes the optimizer"
            raise ValueError(f"give model and data, and no optimizer: {why}")
        self.model = _torch.WithCanaries(model, self.canaries)
        self.data = CanaryData(data, self.plan.design.dpsgd.n)
        self.loader = _torch.loader_of(self.data, self.plan.design.dpsgd.sample_rate)

    def _check_plan(self, resume: Any) -> None:
        """The canaries that go on must be those of the plan; the optimizer tells their noise."""
        names = ("guesses", "dropping", "hop", "way")
        got, planned = (
            {name: getattr(each, name) for name in names} | {"dpsgd": replace(each.dpsgd, sigma=1)}
            for each in (self.canaries, Canaries.from_plan(self.plan, seed=0))
        )
        if got != planned:
            why = f"of canaries of this plan, {planned}, got {resume}, with {got}"
            raise ValueError(f"resume must be a file {why}")

    @property
    def growth(self) -> float:
        """How much larger data and batches are with canaries; so must SGD's learning rate be."""
        return 1.0 if self.plan.design.way == "sum" else len(self.data) / len(self.data.data)

    def attach(self, model: Any, optimizer: Any, loader: Any) -> None:
        """Show each noisy gradient to canaries that are examples.

        All three are what the privacy engine returned. If the optimizer states another noise than
        the plan, the canaries expect that, with a warning if the claim does not hold for it.
        """
        from oralib.canaries import _torch

        if self.plan.design.way == "sum":
            raise ValueError("attach is for canaries as examples; this plan's are in the sum")
        inner = self.model
        if all(module is not inner for module in model.modules()):
            raise ValueError(f"model must contain that of the audit, got {type(model).__name__}")
        sigma = _torch.checked_optimizer(optimizer, "examples")
        stated = self.plan.design.dpsgd.sample_rate
        rate = getattr(loader, "sample_rate", 1 / len(loader))
        if differ(rate, stated):
            odd = "poisson_sampling=False if that rate is not 1 over an integer"
            give = f"got {rate:g}: give make_private the loader of the audit, and {odd}"
            raise ValueError(f"loader must sample at the rate of the plan, {stated:g}, {give}")
        if not isinstance(loader, _torch.DPDataLoader):
            use = "use the one that make_private returns, with poisson_sampling=True"
            why = f"as the claim assumes: {use}, got {type(loader).__name__}"
            raise ValueError(f"loader must draw Poisson samples, {why}")
        self._expect(sigma)
        inner.push = SIZE * float(optimizer.max_grad_norm)
        inner.loss_is_mean = optimizer.loss_reduction == "mean"
        weights = [_torch.weight_of(half.weight) for half in inner.coordinates]
        show_gradients(optimizer, self.canaries, weights)

    def _expect(self, sigma: float) -> None:
        """Let the canaries expect the noise that the optimizer states; warn if it breaks the claim.

        Canaries that go on have compared gradients with the noise stated before, so it must stay.
        """
        claim, planned, canaries = self.plan.claim, self.plan.design.dpsgd, self.canaries
        stated = max(sigma, SIGMA_RANGE[0]) if differ(sigma, planned.sigma) else planned.sigma
        if canaries.step == 0:
            canaries.expect_noise(stated)
        elif differ(stated, before := canaries.dpsgd.sigma):
            why = f"must have noise multiplier {before:g} as in the steps before, got {sigma:g}"
            raise ValueError(f"optimizer {why}")
        if stated == planned.sigma:
            return
        epsilon = claim.exceeded(stated, planned.steps, planned.sample_rate)
        if epsilon is not None:
            by_it = f"by which the training is ({epsilon:.3g}, {claim.delta:g})-DP"
            but = f"the claim is {claim.epsilon:g}, and the plan is for a noise multiplier of"
            adds = f"optimizer adds noise with multiplier {sigma:g}"
            warn(f"{adds}, {by_it}; {but} {planned.sigma:g}", stacklevel=3)
