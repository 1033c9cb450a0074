"""The sensitivity of a training step, computed: how far one example moves what the step releases.

A step is done on a batch, and on its neighbour, the same batch without one example; both from the
same state, with the same random numbers and no noise. Two things must hold. The release moves by
at most C. And if the neighbour's step is given the release of the whole batch, it leaves the same
state behind: the step depends on the data by its release alone.

The comparison knows no framework and no particular bug: a :class:`Trial` does the steps.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from oraudit.findings import Finding, Status, verdict

__all__ = ["NeighbourResult", "Outcome", "Release", "Trial", "Variant", "compare"]

#: The largest share of C that rounding adds to a move of C.
ROUNDING = 1e-3

#: The largest difference of two numbers that count as equal: rounding alone makes it.
EQUAL = 1e-9

#: The factors on all numbers of an altered example, by its description in the report.
ALTERED = {"of 1000 times the size": 1000.0, "of zeros": 0.0, "with its sign turned": -1.0}

#: The gradients that an optimizer gets in one step: an array a tensor, or None for no gradient.
Release = Sequence[NDArray[np.float64] | None]


@dataclass(frozen=True)
class Outcome:
    """The effect of one trial of the step.

    Attributes
    ----------
    releases
        The gradients that the optimizer got, once for each time that it moved the weights.
    left
        The state that the step leaves behind, by name: weights, buffers, the optimizer's state.
    """

    releases: Sequence[Release]
    left: Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """The batch and the release that a trial does the step with.

    Attributes
    ----------
    keep
        Indices of the examples kept.
    factor
        The factor on all numbers of the first example kept, if given.
    instead
        The releases that the optimizer gets in place of the step's own, if any.
    """

    keep: NDArray[np.int64]
    factor: float | None = None
    instead: Sequence[Release] | None = None


class Trial(Protocol):
    """Does a training step from the same state with the same random numbers and no noise."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the tensors of a release."""

    def run(self, variant: Variant) -> Outcome:
        """Do the step on a variant of the batch."""

    def explained(self, name: str) -> str:
        """Return why ``name`` may differ though the release does not, as by own noise; or ""."""


@dataclass
class _Worst:
    """The largest move so far, in C, and which example and tensor made it."""

    move: float = 0.0
    example: int = 0
    tensor: str = ""


@dataclass(frozen=True)
class NeighbourResult:
    """The outcome of the neighbour test; ``str`` of it is the report.

    Attributes
    ----------
    status
        "passed" if no neighbour that was tried has a finding; "failed" if some neighbour moves
        the release by more than C, or changes what the step leaves although the release is the
        same; "cannot tell" if the step could not be compared.
    findings
        One finding for each kind of violation.
    move
        The largest move of the release that was seen, in C. The sensitivity is at least that.
    example, tensor
        The example that made this move, and the tensor that moved furthest.
    tried
        The number of neighbours that were tried.
    notes
        Remarks on what is no violation but good to know.
    """

    status: Status
    findings: tuple[Finding, ...]
    move: float
    example: int
    tensor: str
    tried: int
    notes: tuple[str, ...] = field(default=())

    def check(self) -> None:
        """Return only if the test passed; otherwise raise AssertionError with the report."""
        if self.status != "passed":
            raise AssertionError(str(self))

    def __str__(self) -> str:
        headlines = {
            "passed": "PASSED    for these neighbours nothing moves further than C",
            "failed": "FAILED    ",
            "cannot tell": "CANNOT TELL  ",
        }
        texts = [f"{finding.text}: {finding.side}" for finding in self.findings]
        first = headlines[self.status]
        if self.status != "passed" and texts:
            first += texts.pop(0)
        lines = [first, *(f"also      {text}" for text in texts)]
        mover = f"example {self.example}"
        if self.tensor:
            mover += f" in tensor {self.tensor}"
        lines.append(
            f"moves     the largest move seen is {self.move:.4g} C, by {mover} "
            f"({self.tried} neighbours tried); the sensitivity is at least that"
        )
        lines += [f"note      {note}" for note in self.notes]
        lines.append("unlooked  other batches, other states, the noise, how batches are drawn")
        return "\n".join(lines)


def compare(
    trial: Trial, size: int, *, clip: float, scale: float, tries: int = 60, progress: bool = False
) -> NeighbourResult:
    """Compare a batch of ``size`` examples with its neighbours.

    ``scale`` is the divisor of the sum that is released, ``tries`` the most examples to take out.
    With ``progress`` a terminal shows a progress bar.
    """
    everyone = np.arange(size)
    whole = trial.run(Variant(everyone))
    repeated = trial.run(Variant(everyone))
    unsteady = _difference(whole, repeated)
    if unsteady:
        text = (
            f"the same step on the same batch differs ({unsteady}): random numbers could not be "
            "held fixed"
        )
        finding = Finding("steady", text, "side unknown", undecided=True)
        return NeighbourResult("cannot tell", (finding,), 0.0, 0, "", 0)

    worst = _Worst()
    findings: dict[str, Finding] = {}
    notes: list[str] = []
    released_clip = clip / scale
    disabled = None if progress else True  # with None, tqdm shows the bar only on a terminal
    for example in tqdm(range(min(tries, size)), disable=disabled, leave=False):
        keep = np.delete(everyone, example)
        _moved(
            whole,
            trial.run(Variant(keep)),
            "one example less",
            example,
            released_clip,
            trial,
            worst,
            findings,
        )
        fixed = trial.run(Variant(keep, instead=whole.releases))
        _sideways(whole, fixed, trial, findings, notes)
    # One example is altered, and compared with the batch without it.
    without = trial.run(Variant(everyone[1:]))
    for alteration, factor in ALTERED.items():
        altered = trial.run(Variant(everyone, factor=factor))
        _moved(
            altered, without, f"one example {alteration}", 0, released_clip, trial, worst, findings
        )
    try:
        spoiled = trial.run(Variant(everyone, factor=math.nan))
    except (RuntimeError, ValueError) as error:
        notes.append(f"one example of NaN ends the step in an error: {error}")
    else:
        # A note, no violation: NaN is no data that the definition of C speaks of, but a release
        # with NaN shows that such an example was there.
        if not _finite(spoiled):
            notes.append("one example of NaN leaves numbers in the release that are not finite")
    if not findings and worst.move == 0:
        text = "no example moves what is released: the step does nothing with this batch"
        findings["still"] = Finding("still", text, "side unknown", undecided=True)
    return NeighbourResult(
        status=verdict(list(findings.values()), anything_seen=True),
        findings=tuple(findings.values()),
        move=worst.move,
        example=worst.example,
        tensor=worst.tensor,
        tried=min(tries, size) + len(ALTERED),
        notes=tuple(dict.fromkeys(notes)),
    )


def _moved(
    full: Outcome,
    less: Outcome,
    alteration: str,
    example: int,
    released_clip: float,
    trial: Trial,
    worst: _Worst,
    findings: dict[str, Finding],
) -> None:
    """Note how far the release of a batch is from that of its neighbour, in C."""
    if len(full.releases) != len(less.releases):
        text = f"{alteration}: whether a step is taken depends on this example"
        findings.setdefault("step-taken", Finding("step-taken", text, "less private"))
        return
    for one, other in zip(full.releases, less.releases, strict=True):
        moves = [_distance(a, b) / released_clip for a, b in zip(one, other, strict=True)]
        move = math.sqrt(sum(part**2 for part in moves))
        if not math.isfinite(move):
            move = math.inf
        if move <= worst.move:
            continue
        place = int(np.argmax(moves))
        worst.move = move
        worst.example = example
        worst.tensor = trial.names[place] if place < len(trial.names) else str(place)
        if move > 1 + ROUNDING:
            mover = f"example {example}"
            if worst.tensor:
                mover += f", most in tensor {worst.tensor}"
            text = f"{alteration}: what is released moves by {move:.4g} C ({mover})"
            findings["sensitivity"] = Finding(
                "sensitivity", text, "less private", number=move, limit=1.0
            )


def _sideways(
    whole: Outcome, fixed: Outcome, trial: Trial, findings: dict[str, Finding], notes: list[str]
) -> None:
    """Note what a neighbour's step leaves otherwise although the release is the same."""
    if len(whole.releases) != len(fixed.releases):
        text = "whether a step is taken depends on one example"
        findings.setdefault("step-taken", Finding("step-taken", text, "less private"))
        return
    for name in whole.left:
        if name in fixed.left and _equal(whole.left[name], fixed.left[name]):
            continue
        explanation = trial.explained(name)
        if explanation:
            notes.append(f"{name} depends on an example besides the release: {explanation}")
            continue
        text = f"{name} depends on one example by a way that gets no noise, besides the release"
        findings.setdefault(name, Finding("sideways", text, "less private"))


def _difference(one: Outcome, other: Outcome) -> str:
    """Return the name of the first difference between two outcomes of a trial, or ""."""
    if len(one.releases) != len(other.releases):
        return "whether a step is taken"
    for a, b in zip(one.releases, other.releases, strict=True):
        if any(_distance(x, y) > EQUAL for x, y in zip(a, b, strict=True)):
            return "what is released"
    for name in one.left:
        if not _equal(one.left[name], other.left.get(name)):
            return name
    return ""


def _distance(one: NDArray[np.float64] | None, other: NDArray[np.float64] | None) -> float:
    if one is None:
        return 0.0 if other is None else float(np.linalg.norm(other))
    if other is None:
        return float(np.linalg.norm(one))
    return float(np.linalg.norm(one - other))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and bool(
            np.allclose(one, other, rtol=0, atol=EQUAL, equal_nan=True)
        )
    return bool(one == other)


def _finite(outcome: Outcome) -> bool:
    return all(
        np.isfinite(tensor).all()
        for release in outcome.releases
        for tensor in release
        if tensor is not None
    )
