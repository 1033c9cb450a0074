"""A training loop of one's own, in NumPy, PyTorch or JAX: one call a step.

>>> import numpy as np
>>> rng = np.random.default_rng(1)
>>> audit = Audit(examples=600)
>>> for _ in range(50):
...     gradients = rng.normal(size=(rng.binomial(600, 0.1), 1000))
...     norms = np.linalg.norm(gradients, axis=1, keepdims=True)
...     clipped = (gradients * np.minimum(1, 1 / norms)).sum(0)
...     noisy = clipped + rng.normal(scale=2.0, size=1000)
...     audit.step(
...         per_example=gradients, clipped=clipped, noisy=noisy, clip=1.0, sigma=2.0, rate=0.1
...     )
>>> audit.result().status
'passed'
"""

from collections.abc import Sequence
from typing import Any

from oraudit.records import Record, Told
from oraudit.records.arrays import leaves
from oraudit.records.clipping import look_at
from oraudit.report import Result, judge

__all__ = ["Audit"]


class Audit:
    """An audit of a training that calls :meth:`step` once in each of its steps.

    Parameters
    ----------
    examples
        How many examples the data has; needed to check the rate.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.
    """

    def __init__(
        self,
        *,
        examples: int | None = None,
        claim: tuple[float, float] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self._record = Record(examples=examples, claim=claim)
        self._allow = tuple(allow)

    def step(
        self,
        *,
        clipped: Any,
        noisy: Any,
        clip: float,
        sigma: float,
        rate: float | None = None,
        per_example: Any = None,
        inputs: Any = None,
        batch: int | None = None,
    ) -> None:
        """Note a step, after its noise was added.

        Parameters
        ----------
        clipped, noisy
            The sum of the clipped gradients before and after the noise: one array a tensor, alone
            or in nested lists and dictionaries.
        clip, sigma, rate
            What the accountant was told of this step, and the norm that gradients are clipped at.
        per_example
            The gradients before clipping, of the same structure, examples along the first axis.
        inputs
            The examples of the batch, along the first axis.
        batch
            How many examples there were, where neither gradients nor inputs are given.
        """
        record = self._record
        sums = leaves(clipped)
        if not record.names:
            record.names = [str(number) for number in range(len(sums))]
        gradients = None if per_example is None else leaves(per_example)
        if gradients is not None:
            record.looks.append(look_at(record.step, gradients, sums, clip))
            batch = len(gradients[0])
        if inputs is not None:
            record.batches.add_inputs(inputs)
            batch = len(inputs)
        if batch is not None:
            record.batches.add(batch)
        record.end_step(sums, leaves(noisy), Told(clip, sigma, rate))

    def result(self) -> Result:
        """The result so far; the training may go on."""
        return judge(self._record.finished(), unlooked=self._unlooked(), allow=self._allow)

    def _unlooked(self) -> list[str]:
        unlooked = []
        if not self._record.looks:
            unlooked.append("clipping (no gradients of examples were given)")
        if self._record.examples is None:
            unlooked.append("the rate (the number of examples is not known)")
        return unlooked
