"""Canaries in a training run with PyTorch and Opacus: nine lines of your script.

Four lines are new, four change, and your own ``DataLoader`` is not needed any more:

>>> from oralib.canaries.opacus import OpacusAudit  # new  # doctest: +SKIP
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

The canaries get weights of their own, which are added to your model and used by nothing else. Your
data come first, then the canaries as further examples, which Opacus's sampler draws like all
others. The gradient of an included canary is three clipping thresholds on its weight and 0
elsewhere, whatever the loss is, so that Opacus clips it to one. The gradient of any other canary is
0; it stays in the data, so that the number of examples does not depend on the coins.

The training must have as many steps as the plan. Nothing inside Opacus is changed: sampling,
clipping and noise are all audited. Any optimizer will do, since the audit reads noisy gradients,
not weights. Ghost clipping and clipping by layers are not supported.
"""

import os
from dataclasses import replace
from math import ceil
from typing import Any
from warnings import warn

from oralib.accounting import SIGMA_RANGE, certified_epsilon
from oralib.canaries.loop import Canaries
from oralib.planning import AuditPlan

__all__ = ["OpacusAudit"]

#: The size of a canary's gradient before clipping, in clipping thresholds.
SIZE = 3.0


class OpacusAudit:
    """A plan, its canaries, your model and your data, on their way through Opacus.

    Parameters
    ----------
    plan : AuditPlan or path
        The plan, or the file that ``oralib plan --out`` wrote.
    model : torch.nn.Module
        Your model, which must return a tensor with a row for each example.
    data : torch.utils.data.Dataset
        Your examples, tuples such as an input and a label.
    seed, public_seed, keep : int, int, bool
        As in :class:`oralib.Canaries`; for a new training.
    resume : path or None
        A file by ``canaries.save``, to go on after a restart with the canaries as they were, in
        place of a seed.

    Attributes
    ----------
    canaries : oralib.Canaries
        The canaries: their coins, their scores, and what they saw of the training.
    model : torch.nn.Module
        Your model with weights for the canaries. It takes two inputs: that of your model, and for
        each example the number of its canary, -1 for your own examples. Without the second input,
        as for predictions, it is just your model.
    data : torch.utils.data.Dataset
        Your examples, and after them the canaries, each with one more entry: which canary it is.
        The other entries of a canary are copied from your first example and do not matter.
    loader : torch.utils.data.DataLoader
        Batches of these data, of a size for which Opacus samples at the rate of the plan.
    """

    def __init__(
        self,
        plan: AuditPlan | str | os.PathLike[str],
        model: Any,
        data: Any,
        *,
        seed: int | None = None,
        public_seed: int = 0,
        keep: bool = False,
        resume: str | os.PathLike[str] | None = None,
    ) -> None:
        from oralib.canaries import _torch  # here, as it takes seconds and not everybody has it

        self.plan = plan if isinstance(plan, AuditPlan) else AuditPlan.load(plan)
        if (seed is None) == (resume is None):
            raise ValueError(f"give one of seed and resume, got {seed=} and {resume=}")
        if resume is not None:
            self.canaries = Canaries.load(resume)
            self._check_plan(resume)
        elif seed is not None:
            self.canaries = Canaries.from_plan(
                self.plan, seed=seed, public_seed=public_seed, keep=keep
            )
        self.model = _torch.WithCanaries(model, self.canaries)
        self.data = _torch.CanaryData(data, self.plan.design.dpsgd.n)
        # Opacus samples at 1 over the number of batches, so the rate must be 1 over an integer.
        size = ceil(len(self.data) / round(1 / self.plan.design.dpsgd.sample_rate))
        self.loader = _torch.DataLoader(self.data, batch_size=size)

    def _check_plan(self, resume: Any) -> None:
        """The canaries that go on must be those of the plan; their noise may be the optimizer's."""
        canaries, design = self.canaries, self.plan.design
        planned = replace(design.dpsgd, sigma=canaries.dpsgd.sigma), design.dropping
        if (canaries.dpsgd, canaries.dropping, canaries.guesses) != (*planned, self.plan.guesses):
            raise ValueError(
                f"resume must be a file of canaries of this plan, got {resume} with "
                f"{canaries.dpsgd}, {canaries.dropping} and {canaries.guesses} guesses"
            )

    @property
    def growth(self) -> float:
        """How much larger the data and each batch are with canaries than without.

        Batches are averaged, so SGD needs a learning rate that is this much larger.
        """
        return len(self.data) / (len(self.data) - self.data.n)

    def attach(self, model: Any, optimizer: Any, loader: Any) -> None:
        """Show each noisy gradient to the canaries.

        All three arguments are those that ``make_private`` or ``make_private_with_epsilon``
        returned. If the optimizer states another noise multiplier than the plan, and the claim
        holds for it too, the canaries expect that noise; if the claim does not, there is a warning.
        """
        from oralib.canaries import _torch

        inner = self.model
        if not any(module is inner for module in model.modules()):
            raise ValueError(f"model must contain that of the audit, got {type(model).__name__}")
        if type(optimizer) is not _torch.DPOptimizer:
            raise TypeError(
                "optimizer must be a DPOptimizer by make_private with grad_sample_mode='hooks' and "
                f"clipping='flat', got {type(optimizer).__name__}"
            )
        stated = self.plan.design.dpsgd.sample_rate
        rate = getattr(loader, "sample_rate", 1 / len(loader))
        if abs(rate / stated - 1) > 0.01:
            raise ValueError(
                f"loader must sample at the rate of the plan, {stated:g}, got {rate:g}: give "
                "make_private the loader of the audit"
            )
        if not isinstance(loader, _torch.DPDataLoader):
            raise ValueError(
                "loader must draw Poisson samples, as the claim assumes: use the one that "
                f"make_private returns, with poisson_sampling=True, got {type(loader).__name__}"
            )
        self._expect(float(optimizer.noise_multiplier))
        inner.push = SIZE * float(optimizer.max_grad_norm)
        inner.loss_is_mean = optimizer.loss_reduction == "mean"
        before, canaries, weight = optimizer.step_hook, self.canaries, inner.coordinates.weight

        def hook(stepping: Any) -> None:
            if before is not None:  # the accountant of the privacy engine
                before(stepping)
            batch = stepping.expected_batch_size * stepping.accumulated_iterations
            canaries.observe(
                canaries.step,
                weight.grad.detach().double().cpu().numpy()[:, 0],
                clip=float(stepping.max_grad_norm),
                batch=batch if inner.loss_is_mean else 1.0,
            )

        optimizer.attach_step_hook(hook)

    def _expect(self, sigma: float) -> None:
        """Let the canaries expect the noise that the optimizer states, if it fits the claim."""
        claim, planned = self.plan.claim, self.plan.design.dpsgd.sigma
        if abs(sigma / planned - 1) <= 0.01:
            return
        stated = replace(self.plan.design.dpsgd, sigma=max(sigma, SIGMA_RANGE[0]))
        run = claim.delta, stated.steps, stated.sample_rate
        certified = certified_epsilon(stated.sigma, *run, accountant="pld")
        if certified <= 1.02 * claim.epsilon:  # accountants differ a little
            self.canaries.dpsgd = stated
            return
        warn(
            f"optimizer adds noise with multiplier {sigma:g}, by which the training is "
            f"({certified:.3g}, {claim.delta:g})-DP; the claim is {claim.epsilon:g}, and the plan "
            f"is for a noise multiplier of {planned:g}",
            stacklevel=3,
        )
