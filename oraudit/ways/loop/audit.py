"""A training loop of one's own, in NumPy, PyTorch or JAX: one call a step.

In JAX the call stands outside of ``jit``, or inside in a callback that keeps the order of steps::

    jax.debug.callback(lambda **sums: audit.step(clip=1.0, sigma=2.0, **sums), ordered=True,
                       per_example=gradients, clipped=clipped, noisy=noisy)

and ``jax.effects_barrier()`` before the result is asked for.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oraudit.records import Event, Look, Record, Seen, Told
from oraudit.records.arrays import leaves, namespace
from oraudit.records.clipping import is_looked_at, joined_norms, look_at, tensor_norms
from oraudit.records.seal import opened, sealed
from oraudit.report import Result, judge
from oraudit.ways.loop.arguments import (
    batch_size,
    check_allow,
    check_claim,
    check_clips,
    check_examples,
    check_rate,
    check_sigma,
    joint_clip,
)
from oraudit.ways.loop.buffers import Buffers
from oraudit.ways.loop.history import History
from oraudit.ways.loop.moves import Moved, Moves
from oraudit.ways.loop.riders import Riders
from oraudit.ways.loop.saved import COMPARISON_FIELDS, GIVEN, check_content
from oraudit.ways.loop.trees import arrays, branches, rows

__all__ = ["Audit"]

#: The kind of audit that a saved state is of.
KIND = "Audit"

#: The subject that the report calls unlooked where an argument of a step is not given.
SUBJECTS = {
    "rate": "the rate",
    "batch": "the sizes of batches",
    "inputs": "which examples are in a batch",
    "weights": "what else moves the weights",
    "buffers": "buffers",
}


class Audit:
    """An audit of a training that calls :meth:`step` once in each of its steps.

    Parameters
    ----------
    examples
        The number of examples in the data; needed to check the rate.
    accountant
        The steps that the accountant is told: an accountant with a ``history`` as those of Opacus,
        made before this audit and read when the result is asked for; or a list of (noise
        multiplier, rate, steps) of the whole training.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.
    canaries
        The number of canaries that join the clipped sums by :meth:`ride`, and stay in them, for a
        lower bound on ε and a test of the stated training; at most one for each weight.
    seed
        The seed of the canaries' coins, which nobody may know before the audit; None for one from
        the operating system.

    Examples
    --------
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

    def __init__(
        self,
        *,
        examples: int | None = None,
        canaries: int = 0,
        seed: int | None = None,
        accountant: Any = None,
        claim: tuple[float, float] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self._record = Record(examples=check_examples(examples), claim=check_claim(claim))
        self._allow = check_allow(allow)
        self._history = None if accountant is None else History(accountant)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._moves = Moves()
        self._buffers = Buffers()
        self._given: dict[str, int] = {}  # for each argument, the number of steps that gave it
        # Canaries are made in the first step, which shows the weights.
        self._riders = Riders(canaries, seed)

    def ride(self, sums: Any, *, clip: float | Sequence[float], rate: float) -> Any:
        """Let canaries join the clipped sum of a step; call it before the noise is added.

        >>> audit = Audit(examples=600, canaries=100)
        >>> sums = audit.ride(np.zeros(1000), clip=1.0, rate=0.1)
        >>> noisy = sums + np.random.default_rng(1).normal(scale=2.0, size=1000)
        >>> audit.step(clipped=sums, noisy=noisy, clip=1.0, sigma=2.0, rate=0.1)

        What it returns takes the place of the clipped sum in all that follows, in :meth:`step`,
        too. Within ``jit`` of JAX it is called back::

            sums = jax.experimental.io_callback(
                functools.partial(audit.ride, clip=1.0, rate=0.1), sums, sums, ordered=True)

        Parameters
        ----------
        sums
            The sum of the clipped gradients, as ``clipped`` of :meth:`step`. It is not changed.
        clip, rate
            What the accountant is told of this step, as in :meth:`step`.

        Returns
        -------
        sums
            The same structure with canaries in it; arrays of JAX come back as arrays of NumPy,
            which JAX accepts. Without canaries, ``sums`` itself.
        """
        if not self._riders.n:
            return sums
        self._meet(sums)
        tensors = arrays("sums", sums, self._shapes)
        clips = check_clips(clip, len(tensors))
        return self._riders.ride(sums, tensors, clips, check_rate(rate))

    def _meet(self, sums: Any) -> None:
        """Keep the names and shapes of the tensors, in the first step."""
        if not self._shapes:
            self._shapes = {name: tuple(np.shape(leaf)) for name, leaf in branches(sums).items()}
            self._record.names = list(self._shapes)

    def step(
        self,
        *,
        clipped: Any,
        noisy: Any,
        clip: float | Sequence[float],
        sigma: float,
        rate: float | None = None,
        per_example: Any = None,
        inputs: Any = None,
        weights: Any = None,
        buffers: Any = None,
        batch: int | None = None,
    ) -> None:
        """Note a step, after its noise was added. An argument that is not given is not checked.

        Padding: leave its rows out of ``per_example`` and ``inputs``, as each row counts as an
        example: with ``real`` true for real ones, give ``gradients[real]`` and ``inputs[real]``;
        or give neither, and the number of real examples as ``batch``.

        Microbatches: call it once for all that get noise together, with their gradients and inputs
        one after the other; ``clipped`` is the sum over all.

        Empty batches: their step adds noise, so call it for them, too, with arrays that have no
        rows, or with ``batch=0``; ``clipped`` is zero. Do not call it for a batch that the loop
        skips; but Poisson sampling skips none, and the audit sees it only where no batch is empty
        though chance would make many of them empty.

        Parameters
        ----------
        clipped, noisy
            The sum of the clipped gradients before and after the noise: one array a tensor, alone
            or in nested lists and dictionaries. ``clipped`` must not be changed in place by the
            noise; nothing is divided by the batch's size yet.
        clip, sigma, rate
            What the accountant is told of this step: the norm that gradients are clipped at, or a
            list of norms, one for each tensor; the noise multiplier; the sampling rate.
        per_example
            The gradients before clipping, of the same structure, examples along the first axis. It
            may be given in some steps only.
        inputs
            The examples of the batch, along the first axis, before any random augmentation.
        weights
            The weights, of the same structure, either always before the step moves them or always
            after it.
        buffers
            What the model has besides weights, such as BatchNorm's running means: it must not
            change.
        batch
            The number of examples, without padding, where neither gradients nor inputs are given.
        """
        record = self._record
        self._meet(clipped)
        sums = arrays("clipped", clipped, self._shapes)
        released = arrays("noisy", noisy, self._shapes)
        clips = check_clips(clip, len(sums))
        told_step = Told(joint_clip(clips), check_sigma(sigma), check_rate(rate))
        size = batch_size(per_example=per_example, inputs=inputs, batch=batch)
        self._riders.check(sums, clips, told_step.rate)

        if per_example is not None and self._looks():
            shapes = {name: (size or 0, *shape) for name, shape in self._shapes.items()}
            gradients = arrays("per_example", per_example, shapes)
            self._look(gradients, self._riders.without(sums), clips)
        if inputs is not None and size:
            record.batches.add_inputs(rows(inputs))
        record.noise.add(sums, released, told_step.sigma * told_step.clip)
        self._riders.note(released, told_step.sigma)
        if weights is not None:
            self._note_weights(weights)
        if buffers is not None:
            tree = branches(buffers)
            self._buffers.note(record.step, list(tree), leaves(list(tree.values())))
        if size is not None:
            record.batches.add(size)
            record.around.note(size=size)
        values = (inputs, weights, buffers, rate, per_example, size)
        for name, value in zip(GIVEN, values, strict=True):
            self._given[name] = self._given.get(name, 0) + (value is not None)
        record.around.note(clip=told_step.clip, sigma=told_step.sigma)
        record.close_step(told_step)

    def _looks(self) -> bool:
        numbers = sum(map(math.prod, self._shapes.values()))
        return is_looked_at(self._record.step, numbers)

    def _look(self, gradients: list[Any], sums: list[Any], clips: float | list[float]) -> None:
        """Compare the clipped sum of this step with the gradients of its examples."""
        record = self._record
        if len(gradients[0]):
            norms = tensor_norms(gradients)
            record.looks.append(look_at(record.step, gradients, sums, clips, norms))
            if isinstance(clips, float):
                record.around.note_norms(joined_norms(norms), clips)
            return
        # The clipped sum of an empty batch must be zero.
        squares = sum(float((tensor**2).sum()) for tensor in sums)
        added = math.sqrt(squares) / joint_clip(clips)
        record.looks.append(Look(record.step, error=added, tolerance=1e-4, largest=0.0))

    def _note_weights(self, weights: Any) -> None:
        """Note the weights of this step, whose noise was noted."""
        noise = self._record.noise
        tensors = arrays("weights", weights, self._shapes)
        precision = float(namespace(tensors[0]).finfo(tensors[0].dtype).eps)
        sample = noise.sampled(tensors)
        self._moves.note(self._record.step, sample, *noise.last(), precision, noise.parts())

    # ------------------------------------------------------------------------------------- result

    def result(self) -> Result:
        """Return the result so far; the training may go on."""
        moved = self._moves.finished(len(self._record.told))
        seen = self._with_moves(self._record.finished(), moved)
        if self._history is not None:
            seen = self._history.compared(seen)
        counts = self._riders.counted(self._record.told, self._record.claim)
        return judge(seen, counts=counts, unlooked=self._unlooked(moved), allow=self._allow)

    def _with_moves(self, seen: Seen, moved: Moved) -> Seen:
        """Return the record with what weights and buffers show; a factor is a learning rate."""
        events = [Event("outside-step", step) for step in moved.outside]
        events += [Event("buffer-changed", step, name) for name, step in self._buffers.changes()]
        around = seen.around
        if around is not None:
            around = replace(around, rate=np.abs(moved.factors), **_columns(seen.steps, moved))
        return replace(seen, events=(*seen.events, *events), around=around)

    def _unlooked(self, moved: Moved) -> list[str]:
        """Return the subjects that were not looked at, as the report names them."""
        steps = len(self._record.told)
        unlooked = []
        if self._riders.unusable:
            unlooked.append(f"counts ({self._riders.unusable})")
        if not self._record.looks:
            unlooked.append("clipping (per_example was not given)")
        if self._record.examples is None:
            unlooked.append("the rate (examples was not given)")
        for name, subject in SUBJECTS.items():
            count = self._given.get(name, 0)
            if not count:
                unlooked.append(f"{subject} ({name} was not given)")
            elif count < steps:
                unlooked.append(f"{subject} ({name} given in {count} of {steps} steps)")
            elif name == "weights" and moved.unlike:
                unlooked.append(f"{subject} ({moved.unlike})")
        if self._history is None:
            unlooked.append("the accountant (none was given)")
        elif self._history.earlier:
            unlooked.append(f"the {self._history.earlier} steps that the accountant knew before")
        unlooked.append("how gradients are made")
        return unlooked

    # ------------------------------------------------------------------------------------ resumed

    def state_dict(self) -> dict[str, Any]:
        """Return what was seen so far, for the training's own checkpoint."""
        content = {
            "record": self._record.state(),
            "shapes": {name: list(shape) for name, shape in self._shapes.items()},
            "moves": self._moves.state(),
            "buffers": self._buffers.state(),
            "given": dict(self._given),
            "canaries": self._riders.state(),
        }
        return sealed(KIND, content)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from an audit of an earlier process, whose training is resumed.

        Raises ValueError, before anything is used, for a state that is not as it was saved.
        """
        content = opened(KIND, state)
        check_content(content, self._riders.n)
        self._riders.load(content["canaries"], content["shapes"])
        self._shapes = {name: tuple(shape) for name, shape in content["shapes"].items()}
        self._record.names = list(self._shapes)
        self._record.load(content["record"])
        self._moves.load(content["moves"])
        self._buffers.load(content["buffers"])
        self._given = dict(content["given"])


def _columns(steps: int, moved: Moved) -> dict[str, np.ndarray]:
    """Return the comparisons of moves with the noise, as columns over the steps."""
    columns = {name: np.full(steps, np.nan) for name in COMPARISON_FIELDS}
    for step, comparison in moved.comparisons.items():
        for name in COMPARISON_FIELDS:
            columns[name][step - 1] = comparison[name]
    return columns
