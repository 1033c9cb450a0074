"""Loops of one's own that have one bug each, in NumPy, PyTorch and JAX, and pure functions."""

import re

import numpy as np

from . import numpy_loop
from .case import Case
from .numpy_loop import BATCHES, CLIPPING, NOISE, CleanWeights, LeftOut, NoNoise, Training

#: What is true of a loop where the audit can only say that the side is unknown.
TRUTHS = {
    numpy_loop.LargestNorm: "less private",
    numpy_loop.DividedByBatch: "less private",
    numpy_loop.TakenBack: "less private",
}


def _named(kind):
    """The name of a class in words."""
    return re.sub(r"(?<!^)(?=[A-Z0-9])", " ", kind.__name__).lower()


def _case(kind, words, side, *, way="NumPy", source=""):
    def watched(seed):
        training = kind(seed)
        if (kind, words, side) in CLIPPING:
            training.steps = 15
        return training.run()

    truth = TRUTHS.get(kind, side)
    needs = ("attr", "numba") if kind.claim is not None else ()
    return Case(f"a loop: {_named(kind)}", source, way, truth, (words,), watched, needs=needs)


OWN = [_case(*row) for row in CLIPPING + NOISE + BATCHES]


# -------------------------------------------------------------------------------- other frameworks


def _in_torch(kind):
    """The loop, with PyTorch's tensors shown to the audit."""

    class InTorch(kind):
        def array(self, numbers):
            import torch

            return torch.as_tensor(numbers)

    InTorch.__name__ = kind.__name__
    return InTorch


def _in_jax(kind):
    """The loop, with JAX's arrays shown to the audit."""

    class InJax(kind):
        def array(self, numbers):
            import jax.numpy

            return jax.numpy.asarray(numbers)

    InJax.__name__ = kind.__name__
    return InJax


def _as_it_is(kind):
    return kind


def _in(way, kind, *cause, truth="less private", name=""):
    changed = {"PyTorch": _in_torch, "JAX": _in_jax, "NumPy": _as_it_is}[way](kind)
    packages = {"PyTorch": ("torch",), "JAX": ("jax",), "NumPy": ()}[way]
    name = f"{name or 'a loop: ' + _named(kind)}, {way}"
    return Case(name, "", way, truth, cause, lambda seed: changed(seed).run(), needs=packages)


class Halved(Training):
    def noise(self, step, sums):
        return [each / 2 for each in super().noise(step, sums)]


FRAMEWORKS = [
    _in(way, kind, *cause)
    for way in ("PyTorch", "JAX")
    for kind, cause in (
        (LeftOut, ("tensor 0 is left out of the norm",)),
        (Halved, ("the noise is 0.",)),
        (numpy_loop.Shuffled, ("the accountant's ε is not for these batches",)),
    )
]
FRAMEWORKS = [
    case if "ε" not in case.cause[0] else Case(**{**vars(case), "truth": "side unknown"})
    for case in FRAMEWORKS
]

#: The noise deleted, in a loop of one's own.
DELETED = [
    _in(way, NoNoise, "no noise", name="no noise: a loop") for way in ("NumPy", "PyTorch", "JAX")
] + [
    _in(way, CleanWeights, "without its noise", name="no noise: a loop's weights")
    for way in ("NumPy", "PyTorch", "JAX")
]


# --------------------------------------------------------------------------------- pure functions


def _pure(name, way, truth, factor=1.0, raw=False, rate=None):
    """The neighbour test of a step that is a function of state and batch."""
    xp_name = {"NumPy": "numpy", "JAX": "jax.numpy"}[way]

    def compared(seed):
        import importlib

        from oraudit import neighbours_of

        xp = importlib.import_module(xp_name)

        def step(state, batch, released=None):
            inputs = batch["x"]
            norms = xp.linalg.norm(inputs, axis=1, keepdims=True)
            if released is None:
                shares = xp.ones_like(norms) if raw else xp.minimum(1, factor / norms)
                released = {"w": (inputs * shares).sum(0) / 30}
            speed = 0.1 if rate is None else 0.1 / norms.mean()
            return released, {"w": state["w"] - speed * released["w"]}

        rng = np.random.default_rng(seed)
        batch = {"x": rng.normal(size=(30, 5))}
        with np.errstate(all="ignore"):
            return neighbours_of(step, {"w": np.zeros(5)}, batch, clip=1.0, scale=30)

    cause = ("state 0 depends on one example",)
    needs = ("jax",) if way == "JAX" else ()
    return Case(f"{name}, {way}", "", way, truth, cause, neighbours=compared, needs=needs)


PURE = [
    _pure(name, way, "less private", **options)
    for way in ("NumPy", "JAX")
    for name, options in (
        ("a function that clips at 1.5 C", {"factor": 1.5}),
        ("a function that does not clip", {"raw": True}),
        ("a function whose learning rate follows norms", {"rate": "norms"}),
    )
]

#: Honest functions, for the honest variants.
HONEST_PURE = [_pure("a pure function", way, "honest") for way in ("NumPy", "JAX")]
