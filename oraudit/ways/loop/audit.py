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

from oraudit.records import Event, Look, Record, Seen, Told, saved
from oraudit.records.arrays import leaves, namespace
from oraudit.records.clipping import is_looked_at, joined_norms, look_at, tensor_norms
from oraudit.report import Result, judge
from oraudit.ways.loop.history import History
from oraudit.ways.loop.moves import Buffers, Moved, Moves
from oraudit.ways.loop.riders import Riders
from oraudit.ways.loop.trees import arrays, branches, rows

__all__ = ["Audit"]

#: The kind of audit that a saved state is of, what it has of moves, and what it counts.
KIND = "Audit"
PARTS = ("record", "shapes", "moves", "buffers", "given", "canaries")
FELT = ("felt", "noisiness", "clean", "numbers")
GIVEN = ("inputs", "weights", "buffers", "rate", "per_example", "batch")


class Audit:
    """An audit of a training that calls :meth:`step` once in each of its steps.

    Parameters
    ----------
    examples
        How many examples the data has; needed to check the rate.
    accountant
        What the accountant is told: an accountant with a ``history`` as those of Opacus, made
        before this audit and read when the result is asked for; or a list of (noise multiplier,
        rate, steps) of the whole training.
    claim
        The (ε, δ) that the training is said to have.
    allow
        Names of findings that are post-processing and meant.
    canaries
        How many canaries join the clipped sums by :meth:`ride`, and stay in them, for a lower
        bound on ε and a test of the stated training; at most one for each weight.
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
        if examples is not None:
            fine = float(examples).is_integer() and examples > 0
            _check(fine, "examples", examples, "a whole number > 0")
            examples = int(examples)
        if claim is not None:
            claim = _claim(claim)
        _check(not isinstance(allow, str), "allow", allow, "a list of names, as in the report")
        self._history = None if accountant is None else History(accountant)
        self._record = Record(examples=examples, claim=claim)
        self._allow = tuple(allow)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._moves = Moves()
        self._buffers = Buffers()
        self._given: dict[str, int] = {}
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
            The same structure with canaries in it; arrays of JAX come back as those of NumPy,
            which JAX takes. Without canaries, what was given.
        """
        if not self._riders.n:
            return sums
        self._meet(sums)
        found = arrays("sums", sums, self._shapes)
        return self._riders.ride(sums, found, _clips(clip, len(found)), _rate(rate))

    def _meet(self, sums: Any) -> None:
        """Note the names and shapes of the tensors, in the first step."""
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
        """Note a step, after its noise was added. What is not given is not looked at.

        Padding: leave its rows out of ``per_example`` and ``inputs``, as each row counts as an
        example: with ``real`` true for real ones, give ``gradients[real]`` and ``inputs[real]``;
        or give neither, and the number of real examples as ``batch``.

        Microbatches: call it once for all that get noise together, with their gradients and inputs
        one after the other; ``clipped`` is the sum over all.

        Empty batches: their step adds noise, so call it for them, too, with arrays that have no
        rows, or with ``batch=0``; ``clipped`` is zero. Do not call it for a batch that the loop
        skips; but Poisson sampling skips none, and the audit sees it only where no batch is empty
        though many would be.

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
            What the model has beside weights, such as BatchNorm's running means: it must not
            change.
        batch
            How many examples there were, without padding, where neither gradients nor inputs are
            given.
        """
        record = self._record
        self._meet(clipped)
        sums = arrays("clipped", clipped, self._shapes)
        released = arrays("noisy", noisy, self._shapes)
        clips = _clips(clip, len(sums))
        told = Told(_together(clips), _sigma(sigma), _rate(rate))
        size = _size(per_example=per_example, inputs=inputs, batch=batch)
        self._riders.check(sums, clips, told.rate)

        if per_example is not None and self._looks():
            shapes = {name: (size or 0, *shape) for name, shape in self._shapes.items()}
            gradients = arrays("per_example", per_example, shapes)
            self._look(gradients, self._riders.without(sums), clips)
        if inputs is not None and size:
            record.batches.add_inputs(rows(inputs))
        record.noise.add(sums, released, told.sigma * told.clip)
        self._riders.note(released, told.sigma)
        if weights is not None:
            now = arrays("weights", weights, self._shapes)
            precision = float(namespace(now[0]).finfo(now[0].dtype).eps)
            sample = record.noise.sampled(now)
            parts = record.noise.parts()
            self._moves.note(record.step, sample, *record.noise.last(), precision, parts)
        if buffers is not None:
            named = branches(buffers)
            self._buffers.note(record.step, list(named), leaves(list(named.values())))
        if size is not None:
            record.batches.add(size)
            record.around.note(size=size)
        given = {"inputs": inputs, "weights": weights, "buffers": buffers, "rate": rate}
        for name, value in {**given, "per_example": per_example, "batch": size}.items():
            self._given[name] = self._given.get(name, 0) + (value is not None)
        record.around.note(clip=told.clip, sigma=told.sigma)
        record.close_step(told)

    def _looks(self) -> bool:
        numbers = sum(map(math.prod, self._shapes.values()))
        return is_looked_at(self._record.step, numbers)

    def _look(self, gradients: list[Any], sums: list[Any], clips: float | list[float]) -> None:
        record = self._record
        if len(gradients[0]):
            norms = tensor_norms(gradients)
            record.looks.append(look_at(record.step, gradients, sums, clips, norms))
            if isinstance(clips, float):
                record.around.note_norms(joined_norms(norms), clips)
            return
        # Nothing may be added for an empty batch.
        added = math.sqrt(sum(float((each**2).sum()) for each in sums)) / _together(clips)
        record.looks.append(Look(record.step, error=added, tolerance=1e-4, largest=0.0))

    # ------------------------------------------------------------------------------------- result

    def result(self) -> Result:
        """The result so far; the training may go on."""
        seen = self._record.finished()
        moved = self._moves.finished(seen.steps)
        seen = self._with_moves(seen, moved)
        if self._history is not None:
            seen = self._history.compared(seen)
        counts = self._riders.counted(self._record.told, self._record.claim)
        return judge(seen, counts=counts, unlooked=self._unlooked(moved), allow=self._allow)

    def _with_moves(self, seen: Seen, moved: Moved) -> Seen:
        """What is seen, with what weights and buffers tell; their multiple is a learning rate."""
        events = [Event("outside-step", step) for step in moved.outside]
        events += [Event("buffer-changed", step, name) for name, step in self._buffers.changes()]
        around = seen.around
        if around is not None:
            around = replace(around, rate=np.abs(moved.factors), **_felt(seen.steps, moved))
        return replace(seen, events=(*seen.events, *events), around=around)

    def _unlooked(self, moved: Moved) -> list[str]:
        steps = len(self._record.told)
        unlooked = []
        if self._riders.unusable:
            unlooked.append(f"counts ({self._riders.unusable})")
        if not self._record.looks:
            unlooked.append("clipping (per_example was not given)")
        if self._record.examples is None:
            unlooked.append("the rate (examples was not given)")
        for name, what in {
            "rate": "the rate",
            "batch": "the sizes of batches",
            "inputs": "which examples are in a batch",
            "weights": "what else moves the weights",
            "buffers": "buffers",
        }.items():
            given = self._given.get(name, 0)
            if given < steps or not steps:
                times = f"given in {given} of {steps} steps" if given else "was not given"
                unlooked.append(f"{what} ({name} {times})")
            elif name == "weights" and moved.unlike:
                unlooked.append(f"{what} ({moved.unlike})")
        if self._history is None:
            unlooked.append("the accountant (none was given)")
        elif self._history.earlier:
            unlooked.append(f"the {self._history.earlier} steps that the accountant knew before")
        unlooked.append("how gradients are made")
        return unlooked

    # ------------------------------------------------------------------------------------ resumed

    def state_dict(self) -> dict[str, Any]:
        """What was seen so far, for the training's own checkpoint."""
        content = {
            "record": self._record.state(),
            "shapes": {name: list(shape) for name, shape in self._shapes.items()},
            "moves": self._moves.state(),
            "buffers": self._buffers.state(),
            "given": dict(self._given),
            "canaries": self._riders.state(),
        }
        return saved.sealed(KIND, content)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from an audit of an earlier process, whose training is resumed.

        Raises ValueError, before anything is used, for a state that is not as it was saved.
        """
        content = saved.opened(KIND, state)
        saved.check_fields("the state", content, PARTS)
        steps = saved.check_record(content["record"], _names_in(content["shapes"]))
        _check_shapes(content["shapes"], content["record"]["noise"]["sizes"])
        _check_moves(content["moves"], steps)
        _check_buffers(content["buffers"], steps)
        _check_given(content["given"], steps)
        numbers = sum(map(math.prod, content["shapes"].values()))
        if steps or content["canaries"] is not None:
            saved.check_canaries(content["canaries"], self._riders.n, numbers, steps)
        self._riders.load(content["canaries"], content["shapes"])
        self._shapes = {name: tuple(shape) for name, shape in content["shapes"].items()}
        self._record.names = list(self._shapes)
        self._record.load(content["record"])
        self._moves.load(content["moves"])
        self._buffers.load(content["buffers"])
        self._given = dict(content["given"])


def _names_in(shapes: Any) -> list[str]:
    if not isinstance(shapes, Mapping):
        raise saved.damaged("shapes", "a dictionary", shapes)
    return list(shapes)


def _check_shapes(shapes: Mapping[str, Any], sizes: Sequence[int]) -> None:
    """Refuse shapes of tensors that have other numbers than their noise."""
    for name, shape in shapes.items():
        for length in saved.rows(f"the shape of {name}", shape, 0, 64):
            saved.whole(f"the shape of {name}", length, 0, 2**48)
    products = [math.prod(shape) for shape in shapes.values()]
    if list(sizes) not in (products, []):
        raise saved.damaged("shapes", f"of tensors with {list(sizes)} numbers", products)


def _check_given(given: Any, steps: int) -> None:
    """Refuse counts of what was given that no training with so many steps has."""
    if given or steps:
        saved.check_fields("given", given, GIVEN)
    elif not isinstance(given, Mapping):
        raise saved.damaged("given", "a dictionary", given)
    for name, times in given.items():
        saved.whole(f"the steps that {name} was given in", times, 0, steps)


def _check_moves(state: Any, steps: int) -> None:
    """Refuse moves that no weights make in so many steps and the one under way."""
    saved.check_fields("moves", state, ("steps", "rows", "precision", "felt"))
    times = saved.check_steps("the steps of moves", state["steps"], steps + 1)
    for row in saved.rows("the products of moves", state["rows"], times):
        saved.reals("each of the products of moves", row, (4, 4))
        saved.reals("each square of moves", np.diag(row), low=0)
    saved.number("the precision of moves", state["precision"], 0, 1)
    for felt in saved.rows("what moves felt", state["felt"], 0, steps + 1):
        step, *numbers = saved.rows("each of what moves felt", felt, 3)
        saved.whole("the step of what moves felt", step, 1, steps + 1)
        for each in numbers:
            saved.check_fields("what a move felt", each, FELT)
            for name, value in each.items():
                saved.number(f"the {name} of a move", value, or_nan=True)


def _check_buffers(state: Any, steps: int) -> None:
    """Refuse what no buffers leave in so many steps and the one under way."""
    saved.check_fields("buffers", state, ("names", "steps", "rows"))
    names = saved.words("the names of buffers", state["names"])
    times = saved.check_steps("the steps of buffers", state["steps"], steps + 1)
    for row in saved.rows("the sums of buffers", state["rows"], times):
        saved.reals("each of the sums of buffers", row, (2 * len(names),))


def _felt(steps: int, moved: Moved) -> dict[str, np.ndarray]:
    """How much of the noise is in the moves of the weights, as columns over the steps."""
    names = ("felt", "noisiness", "clean", "numbers")
    columns = {name: np.full(steps, np.nan) for name in names}
    for step, numbers in moved.felt.items():
        for name in names:
            columns[name][step - 1] = numbers[name]
    return columns


# ------------------------------------------------------------------------------ what is allowed


def _check(fine: bool, argument: str, value: Any, allowed: str) -> None:
    if not fine:
        raise ValueError(f"{argument} is {value!r}; it must be {allowed}")


def _number(argument: str, value: Any, allowed: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{argument} is {value!r}; it must be {allowed}") from None


def _claim(claim: Any) -> tuple[float, float]:
    allowed = "(ε, δ) with ε > 0 and 0 < δ < 1"
    _check(isinstance(claim, tuple | list) and len(claim) == 2, "claim", claim, allowed)
    epsilon, delta = (_number("claim", each, allowed) for each in claim)
    _check(0 < epsilon < math.inf and 0 < delta < 1, "claim", claim, allowed)
    return epsilon, delta


def _clips(clip: Any, tensors: int) -> float | list[float]:
    allowed = f"a number > 0, or a list of {tensors} of them, one for each tensor"
    if np.ndim(clip) == 0:
        number = _number("clip", clip, allowed)
        _check(0 < number < math.inf, "clip", clip, allowed)
        return number
    numbers = [_number("clip", each, allowed) for each in clip]
    fine = len(numbers) == tensors and all(0 < number < math.inf for number in numbers)
    _check(fine, "clip", clip, allowed)
    return numbers


def _together(clips: float | list[float]) -> float:
    """The most that an example may add, all tensors together."""
    return clips if isinstance(clips, float) else math.hypot(*clips)


def _sigma(sigma: Any) -> float:
    number = _number("sigma", sigma, "a number >= 0")
    _check(0 <= number < math.inf, "sigma", sigma, "a number >= 0")
    return number


def _rate(rate: Any) -> float | None:
    if rate is None:
        return None
    number = _number("rate", rate, "a number in (0, 1]")
    _check(0 < number <= 1, "rate", rate, "a number in (0, 1]")
    return number


def _size(*, per_example: Any, inputs: Any, batch: int | None) -> int | None:
    """The number of examples in a batch, by whatever says it."""
    sizes = {}
    for argument, tree in (("per_example", per_example), ("inputs", inputs)):
        if tree is not None:
            first, *_ = branches(tree).values()
            sizes[argument] = int(np.shape(first)[0])
    if batch is not None:
        _check(float(batch).is_integer() and batch >= 0, "batch", batch, "a whole number >= 0")
        sizes["batch"] = int(batch)
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{argument} {size}" for argument, size in sizes.items())
        raise ValueError(f"the numbers of examples differ: {said}; they must be equal")
    return next(iter(sizes.values()), None)
