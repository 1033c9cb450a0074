"""The gradients of single examples, computed independently of the library that trains.

The model is run once more on each example alone, and its output is given the gradient that the
training's loss gave it (``vmap`` of ``vjp``). This uses none of the library's own rules, so the
rules can be compared with it; and an example whose output changes when it is alone depends on the
others of its batch. If a model draws random numbers, as dropout does, two examples are sent through
the graph of the whole batch instead, so that their random numbers are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.func import functional_call, vjp, vmap
from torch.utils import _pytree as pytree

from oraudit.ways.opacus.generators import untouched

__all__ = ["ExampleGradients", "IndependentGradients", "NotComputed", "bare", "due"]

#: The most numbers of gradients to compute at a time: 160 MB in single precision.
MOST_NUMBERS = 40_000_000

#: The largest move of an output that rounding explains when an example is run alone, as a share of
#: the largest output.
ROUNDING = 0.01


class NotComputed(Exception):
    """The gradients could not be computed, for the reason that the report gives."""


@dataclass(frozen=True)
class ExampleGradients:
    """The gradients of some examples of a batch.

    Attributes
    ----------
    gradients
        For each tensor, the gradients of these examples, stacked.
    rows
        The places of the examples in the batch.
    size
        The number of examples in the batch.
    mixed
        The largest move of an example's output when it is alone, as a share of the largest output.
    """

    gradients: list[torch.Tensor]
    rows: list[int]
    size: int
    mixed: float = 0.0

    @property
    def whole(self) -> bool:
        return len(self.rows) == self.size


def due(step: int) -> bool:
    """Return whether to compute gradients at a step: the first five, each 20th, later each 100th.

    >>> [step for step in range(1, 301) if due(step)]
    [1, 2, 3, 4, 5, 20, 40, 60, 80, 100, 200, 300]
    """
    return step <= 5 or step % (20 if step < 100 else 100) == 0


class IndependentGradients:
    """Keeps a step's forward pass and the gradient of its output, and computes gradients from them.

    Parameters
    ----------
    module
        The model that is called, without the wrapper of the library.
    parameters
        The private parameters.
    batch_axis
        The axis of inputs along which examples lie.
    mean
        True if the loss is the mean over examples, not their sum.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        parameters: Sequence[torch.Tensor],
        *,
        batch_axis: int,
        mean: bool,
    ) -> None:
        self._module = module
        self._parameters = list(parameters)
        self._axis = batch_axis
        self._mean = mean
        self._random = False
        self._generation = 0
        self.clear()

    def clear(self) -> None:
        """Forget the forward passes of the step that has ended."""
        self._generation += 1
        self._calls = 0
        # An edge keeps its graph, and the graph keeps our hook: forgetting it breaks the circle.
        self._edges: dict[int, Any] = {}
        self._inputs: tuple[Any, Any] = ((), {})
        self._outputs: list[torch.Tensor] = []
        self._arrived: list[torch.Tensor | None] = []
        self._pairs: list[list[torch.Tensor]] = []

    def capture(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> None:
        """Keep a forward pass, and wait for the gradient of its output."""
        self._calls += 1
        if self._calls > 1:
            return
        self._inputs = pytree.tree_map(_detached, (args, dict(kwargs)))
        leaves = [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
        self._outputs = [leaf.detach() for leaf in leaves]
        self._arrived = [None] * len(leaves)
        for place, leaf in enumerate(leaves):
            if leaf.requires_grad:
                self._edges[place] = get_gradient_edge(leaf)
                leaf.register_hook(partial(self._arrive, self._generation, place))

    def _arrive(self, generation: int, place: int, gradient: torch.Tensor) -> None:
        """Keep the first gradient that arrives at an output."""
        if generation != self._generation or self._arrived[place] is not None:
            return
        self._arrived[place] = gradient.detach()
        if self._random and not self._pairs and len(gradient):
            self._pairs = self._through_graph(self._edges[place], gradient)

    def compute(self, most: int | None = None) -> ExampleGradients:
        """Return the gradients of at most ``most`` examples, or raise NotComputed."""
        if self._calls != 1:
            raise NotComputed(f"the model was called {self._calls} times in a step")
        places = [place for place, gradient in enumerate(self._arrived) if gradient is not None]
        if not places:
            raise NotComputed("no gradient arrived at the model's output")
        sizes = {tuple(output.shape[:1]) for output in self._outputs}
        if len(sizes) > 1 or () in sizes:
            raise NotComputed("the model's output has no row for each example")
        size = len(self._outputs[places[0]])
        if size == 0:
            raise NotComputed("the batch is empty")
        if self._pairs:
            rows = _two_of(size)
            gradients = [torch.stack(pair) for pair in zip(*self._pairs, strict=True)]
            return ExampleGradients(self._scaled(gradients, size), rows, size)
        numbers = sum(parameter.numel() for parameter in self._parameters)
        room = max(MOST_NUMBERS // max(numbers, 1), 2)
        count = min(size, room, size if most is None else most)
        with untouched():
            try:
                return self._alone(places, size, count)
            except RuntimeError as error:
                if "random operation" in str(error):
                    self._random = True
                    raise NotComputed("the model draws random numbers") from error
                raise NotComputed(f"the model cannot be run on single examples: {error}") from error

    def _alone(self, places: list[int], size: int, count: int) -> ExampleGradients:
        module = bare(self._module)
        private = {id(parameter) for parameter in self._parameters}
        values = {name: self._value(p) for name, p in self._module.named_parameters()}
        names = {id(p): name for name, p in self._module.named_parameters() if id(p) in private}
        trained = {name: values[name] for name in names.values()}
        frozen = {name: value for name, value in values.items() if name not in trained}
        buffers = {name: buffer.clone() for name, buffer in self._module.named_buffers()}

        leaves, shape = pytree.tree_flatten(self._inputs)
        mapped = [place for place, leaf in enumerate(leaves) if self._has_rows(leaf, size)]
        if not mapped:
            raise NotComputed("no input has a row for each example")

        def run(parameters: Mapping[str, torch.Tensor], inputs: list[Any]) -> tuple[Any, ...]:
            args, kwargs = pytree.tree_unflatten(inputs, shape)
            output = functional_call(module, {**frozen, **parameters, **buffers}, args, kwargs)
            outputs = [leaf for leaf in pytree.tree_leaves(output) if torch.is_tensor(leaf)]
            return tuple(outputs[place] for place in places)

        def one(rows: list[torch.Tensor], arrived: list[torch.Tensor]) -> tuple[Any, Any]:
            inputs = list(leaves)
            for place, row in zip(mapped, rows, strict=True):
                inputs[place] = row.unsqueeze(self._axis)
            outputs, pull = vjp(lambda parameters: run(parameters, inputs), trained)
            return outputs, pull(tuple(gradient[None] for gradient in arrived))[0]

        rows = [leaves[place].narrow(self._axis, 0, count) for place in mapped]
        arrived = [self._arrived[place][:count] for place in places]  # type: ignore[index]
        with torch.enable_grad():
            outputs, pulled = vmap(one, in_dims=(self._axis, 0))(rows, arrived)
        usual = [self._outputs[place] for place in places]
        alone = [output.squeeze(1) for output in outputs]
        mixed = _apart(alone, [output[:count] for output in usual])
        if mixed > ROUNDING:
            with torch.no_grad():
                repeated = run(trained, list(leaves))
            if _apart(repeated, usual) > ROUNDING:
                raise NotComputed("the model's output is another one when it is run again")
        gradients = [pulled[names[id(parameter)]].detach() for parameter in self._parameters]
        return ExampleGradients(self._scaled(gradients, size), list(range(count)), size, mixed)

    def _value(self, parameter: torch.Tensor) -> torch.Tensor:
        return parameter.detach()

    def _has_rows(self, leaf: Any, size: int) -> bool:
        return torch.is_tensor(leaf) and leaf.ndim > self._axis and leaf.shape[self._axis] == size

    def _scaled(self, gradients: list[torch.Tensor], size: int) -> list[torch.Tensor]:
        return [gradient * size for gradient in gradients] if self._mean else gradients

    def _through_graph(self, edge: Any, gradient: torch.Tensor) -> list[list[Any]]:
        """Return the gradients of two examples through the batch's graph; [] if hooks forbid it.

        The hooks of Opacus are switched off during this backward pass. Other hooks cannot be, and
        would see a pass too many: then there are no gradients.
        """
        owner = _hooks_owner(self._module)
        hooked = [parameter for parameter in self._parameters if parameter._backward_hooks]
        if owner is None or hooked:
            return []
        enabled = owner.hooks_enabled
        owner.hooks_enabled = False
        try:
            pairs_of_rows = []
            for row in _two_of(len(gradient)):
                alone = torch.zeros_like(gradient)
                alone[row] = gradient[row]
                pulled = torch.autograd.grad(
                    edge, self._parameters, alone, retain_graph=True, allow_unused=True
                )
                pairs = zip(pulled, self._parameters, strict=True)
                pairs_of_rows.append([torch.zeros_like(p) if g is None else g for g, p in pairs])
            return pairs_of_rows
        finally:
            owner.hooks_enabled = enabled


def bare(module: torch.nn.Module, twins: dict[int, Any] | None = None) -> torch.nn.Module:
    """Return a copy of a module that shares its tensors and has none of its hooks."""
    twins = {} if twins is None else twins
    if id(module) in twins:
        return twins[id(module)]
    if isinstance(module, torch.jit.ScriptModule):
        raise NotComputed("the model is compiled by torch.jit")
    # Not the class's own __new__: that of a module in shards makes another module.
    twin: torch.nn.Module = object.__new__(module.__class__)
    twins[id(module)] = twin
    for name, value in module.__dict__.items():
        if name.endswith("_hooks") or "_hooks_" in name:
            value = OrderedDict() if isinstance(value, dict) else value
        else:
            value = _bare_value(value, twins)
        twin.__dict__[name] = value
    return twin


def _bare_value(value: Any, twins: dict[int, Any]) -> Any:
    """Return a copy of an attribute with bare modules in it, and new lists and dictionaries."""
    if isinstance(value, torch.nn.Module):
        return bare(value, twins)
    if type(value) in (list, tuple):
        return type(value)(_bare_value(part, twins) for part in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _bare_value(part, twins)) for key, part in value.items())
    return value


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _two_of(size: int) -> list[int]:
    return sorted({0, size // 2})


def _apart(outputs: Sequence[torch.Tensor], usual: Sequence[torch.Tensor]) -> float:
    """Return the largest difference over the largest output; NaN equals NaN and nothing else."""
    difference = max(_farthest(a, b) for a, b in zip(outputs, usual, strict=True))
    size = max(float(b.nan_to_num().abs().max()) for b in usual)
    return difference / size if size > 0 else difference


def _farthest(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of two tensors, infinite if only one has a NaN there."""
    difference = torch.where(one.isnan() & other.isnan(), 0.0, (one - other).abs())
    return float(difference.nan_to_num(nan=torch.inf).max())


def _hooks_owner(module: torch.nn.Module) -> Any:
    """Return the object with the switch of Opacus's hooks; None if others have hooks, too."""
    owners = set()
    for part in module.modules():
        for hook in (*part._forward_hooks.values(), *part._backward_hooks.values()):
            inner = getattr(hook, "func", hook)
            owners.add(getattr(inner, "__self__", None))
    if len(owners) != 1:
        return None
    owner = owners.pop()
    return owner if hasattr(owner, "hooks_enabled") else None
