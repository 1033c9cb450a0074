"""The line that attaches an audit to a training with Opacus.

>>> audit = attach(optimizer, model, loader)  # doctest: +SKIP
>>> train(model, optimizer, loader)  # doctest: +SKIP
>>> audit.result().check()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraudit.ways.opacus.data_parallel import DistributedAudit
from oraudit.ways.opacus.one_process import OpacusAudit
from oraudit.ways.opacus.refused import check_optimizer
from oraudit.ways.opacus.sharded import ShardedAudit

__all__ = ["attach", "audit_class"]


def attach(
    optimizer: Any,
    model: Any = None,
    loader: Any = None,
    *,
    canaries: int = 0,
    seed: int | None = None,
    claim: tuple[float, float] | None = None,
    allow: Sequence[str] = (),
) -> OpacusAudit:
    """Audit the training of an optimizer that ``PrivacyEngine.make_private`` has returned.

    >>> model, optimizer, loader = engine.make_private(...)  # doctest: +SKIP
    >>> audit = attach(optimizer, model, loader)  # before the first step  # doctest: +SKIP
    >>> train(model, optimizer, loader)  # as it is  # doctest: +SKIP
    >>> result = audit.result()  # now or earlier: the training may go on  # doctest: +SKIP
    >>> print(result)  # the report  # doctest: +SKIP
    >>> result.status  # "passed", "failed" or "cannot tell"  # doctest: +SKIP
    'passed'
    >>> result.check()  # returns only if it passed: the line of a test  # doctest: +SKIP

    Parameters
    ----------
    optimizer
        The private optimizer.
    model, loader
        The model and the loader that ``make_private`` has returned with it. Without the model,
        buffers and weights of no private optimizer are not looked at; without the loader, the rate
        is not.
    canaries
        The number of canaries that join the clipped sum and stay in it, for a lower bound on ε and
        a test of the stated training; at most one for each weight that is trained.
    seed
        The seed of the canaries' coins, which nobody may know before the audit; None for one from
        the operating system.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.

    Returns
    -------
    OpacusAudit
        ``audit.result()`` is the :class:`~oraudit.Result`: print it, or call its ``.check()``,
        which raises AssertionError with the report unless the audit passed. ``audit.detach()``
        takes the audit off the optimizer, and ``audit.state_dict()`` is for a checkpoint.
    """
    return audit_class(optimizer)(
        optimizer, model, loader, canaries=canaries, seed=seed, claim=claim, allow=allow
    )


def audit_class(optimizer: Any) -> type[OpacusAudit]:
    """Return the audit that a private optimizer gets, in one process or on one rank of many."""
    check_optimizer(optimizer)
    names = " ".join(base.__name__ for base in type(optimizer).__mro__)
    if "FSDP" in names:
        return ShardedAudit
    return DistributedAudit if "Distributed" in names else OpacusAudit
