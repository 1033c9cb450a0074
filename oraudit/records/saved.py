"""The parts of a saved audit that all ways in have: names, sizes, ranges and steps must fit.

Whoever changes a state can compute its digest anew, so the digest does not show that an audit saved
it. Each error is one line.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import inf, nan
from typing import Any, get_args

import numpy as np

from oraudit.records.around import NAMES
from oraudit.records.clipping import Look
from oraudit.records.noise import kept_sizes
from oraudit.records.record import Event, Kind, Told
from oraudit.records.values import (
    MOST_STEPS,
    check_fields,
    damaged,
    number,
    optional_number,
    reals,
    rows,
    whole,
    words,
)

__all__ = ["check_canaries", "check_causes", "check_event", "check_names", "check_record"]


def check_record(state: Any, names: Sequence[str]) -> int:
    """Check the state of a :class:`Record`; return its number of steps.

    ``names`` are the names of the tensors that this audit has.
    """
    parts = ("names", "noise", "batches", "around", "looks", "events", "told")
    check_fields("the record", state, parts)
    check_names(words("names", state["names"]), names)
    steps = _check_told(state["told"])
    _check_noise(state["noise"], steps)
    _check_batches(state["batches"], steps)
    _check_around(state["around"], steps)
    _check_looks(state["looks"], steps)
    for place, event in enumerate(rows("events", state["events"], 0, MOST_STEPS), 1):
        check_event(f"event {place}", event, steps)
    return steps


def _check_told(state: Any) -> int:
    """Check what the accountant was told of each step; return the number of steps."""
    steps = rows("told", state, 0, MOST_STEPS)
    for place, step in enumerate(steps, 1):
        part = f"step {place} of told"
        check_fields(part, step, _names_of(Told))
        number(f"the clip of {part}", step["clip"], 0)
        number(f"the sigma of {part}", step["sigma"], 0)
        if step["rate"] is not None:
            number(f"the rate of {part}", step["rate"], 0, 1)
    return len(steps)


def _check_looks(state: Any, steps: int) -> None:
    for place, look in enumerate(rows("looks", state, 0, MOST_STEPS), 1):
        part = f"look {place}"
        check_fields(part, look, _names_of(Look))
        whole(f"the step of {part}", look["step"], 1, steps + 1)
        number(f"the error of {part}", look["error"], 0, or_nan=True)
        number(f"the tolerance of {part}", look["tolerance"], 0)
        number(f"the largest of {part}", look["largest"], 0, or_nan=True)
        check_causes(f"the causes of {part}", look["causes"])


def check_names(saved: Sequence[str], names: Sequence[str]) -> None:
    """Check that the saved audit is of the same tensors."""
    if list(saved) != list(names):
        raise ValueError(
            f"the saved audit is of the tensors {_short(saved)}, and this one of {_short(names)}"
        )


def _short(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "") or "none"


def check_event(part: str, value: Any, steps: int) -> None:
    """Check an event of one of ``steps`` finished steps, or of the one under way."""
    check_fields(part, value, _names_of(Event))
    if value["kind"] not in get_args(Kind):
        raise damaged(f"the kind of {part}", "one that is known", value["kind"])
    if value["step"] is not None:
        whole(f"the step of {part}", value["step"], 1, steps + 1)
    if not isinstance(value["what"], str):
        raise damaged(f"the words of {part}", "words", value["what"])
    optional_number(f"the number of {part}", value["number"])


def check_causes(part: str, value: Any) -> None:
    """Check the causes of a sum that is off: texts, and how far one example moves the sum."""
    if not isinstance(value, Mapping):
        raise damaged(part, "a dictionary", value)
    for cause, size in value.items():
        if not isinstance(cause, str):
            raise damaged(f"each of {part}", "a word", cause)
        optional_number(f"each of {part}", size)


def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _check_noise(state: Any, steps: int) -> None:
    check_fields("noise", state, ("sizes", "units", "kept"))
    sizes = [
        whole("each of the noise's sizes", size, 0, 2**48)
        for size in rows("the noise's sizes", state["sizes"], 0, MOST_STEPS)
    ]
    # The step under way may have its noise before the accountant is told of it.
    units = rows("the noise's units", state["units"], steps, steps + 1)
    for deviation in units:
        if number("each of the noise's units", deviation, 0, or_nan=True) == 0:
            raise damaged("each of the noise's units", "more than 0", deviation)
    noise = rows("the noise that is kept", state["kept"], len(units))
    if noise and not sizes:
        raise ValueError("the saved audit is damaged: the noise must have sizes, got none")
    if not noise:
        return
    tensors = len(sizes)
    sampled, heads = kept_sizes(sizes)
    shapes = {
        "squares": (tensors,),
        "products": (tensors,),
        "sums": (tensors,),
        "largest": (tensors,),
        "sample": (sampled,),
        "rounding": (1,),
        "heads": (heads,),
    }
    never_negative = ("squares", "sums", "largest", "rounding")
    for place, numbers in enumerate(noise, 1):
        part = f"the noise of step {place}"
        for (name, shape), array in zip(
            shapes.items(), rows(part, numbers, len(shapes)), strict=True
        ):
            low = 0 if name in never_negative else -inf
            reals(f"the {name} in {part}", array, shape, low=low)


def _check_batches(state: Any, steps: int) -> None:
    check_fields("batches", state, ("sizes", "fingerprints"))
    sizes = rows("the batches' sizes", state["sizes"], steps)
    prints = rows("the batches' fingerprints", state["fingerprints"], steps)
    for size, of_batch in zip(sizes, prints, strict=True):
        if size is not None:
            whole("each of the batches' sizes", size, 0)
        if of_batch is not None:
            if size is None:
                raise damaged("a batch with fingerprints", "of a known size", size)
            part = "the fingerprints of a batch"
            reals(part, of_batch, (int(size),), kinds="i")
            if of_batch.dtype != np.int64:
                raise damaged(part, "of 64 bits", of_batch.dtype)


def _check_around(state: Any, steps: int) -> None:
    for place, step in enumerate(rows("around", state, steps), 1):
        part = f"step {place} of around"
        if not isinstance(step, Mapping):
            raise damaged(part, "a dictionary", step)
        for name, value in step.items():
            if name not in NAMES:
                raise damaged(f"a key of {part}", "one that is known", name)
            number(f"the {name} in {part}", value, or_nan=True)


def check_canaries(state: Any, n: int, weights: int, steps: int) -> None:
    """Check the state of ``n`` canaries on so many ``weights`` after so many ``steps``."""
    if state is None:
        _check_same("canaries", 0, n)
        return
    numbers = ("scores", "least", "share", "steps", "rates", "sigmas")
    check_fields("canaries", state, ("n", "weights", "seed", *numbers, "whole"))
    _check_same("canaries", whole("the number of canaries", state["n"], 1), n)
    _check_same("weights", whole("the weights of canaries", state["weights"], 1), weights)
    seed = state["seed"]
    if not isinstance(seed, str) or not re.fullmatch("[0-9]{1,100}", seed):
        raise damaged("the seed of canaries", "a whole number as a word", seed)
    reals("the scores of canaries", state["scores"], (n,))
    if np.isnan(state["scores"]).any():
        raise damaged("the scores of canaries", "numbers", nan)
    number("the least score of canaries", state["least"], high=0)
    number("the share of noise that canaries saw", state["share"], 0)
    # The step under way may have its scores before the accountant is told of it.
    times = whole("the steps of canaries", state["steps"], steps, steps + 1)
    for rate in rows("the rates of canaries", state["rates"], times):
        number("each of the rates of canaries", rate, 0, 1)
    for sigma in rows("the sigmas of canaries", state["sigmas"], times):
        number("each of the sigmas of canaries", sigma, 0)
    if not isinstance(state["whole"], bool):
        raise damaged("whether canaries are whole", "true or false", state["whole"])


def _check_same(subject: str, saved: int, own: int) -> None:
    if saved != own:
        raise ValueError(
            f"the saved audit is of {saved} {subject}; it must be of {own}, as this one"
        )
