"""Saved audits vouch for themselves: a format, a version, a digest, and proof of every part.

A checkpoint may be cut short, edited, or of another training. So before anything of it is used, the
digest must be that of what is there, and names, types, sizes, ranges and the number of steps must
fit each other, as a digest can be computed anew. What does not hold is told in one line.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from math import inf, isnan, nan
from typing import Any, get_args

import numpy as np

from oraudit.records.around import NAMES
from oraudit.records.clipping import Look
from oraudit.records.noise import kept_sizes
from oraudit.records.record import Event, Kind, Told

__all__ = [
    "MOST_STEPS",
    "check_canaries",
    "check_causes",
    "check_event",
    "check_fields",
    "check_names",
    "check_record",
    "check_steps",
    "damaged",
    "digest_of",
    "number",
    "opened",
    "optional_number",
    "reals",
    "rows",
    "sealed",
    "whole",
    "words",
]

#: Raised by whoever changes what is saved.
VERSION = 1

#: The most entries of lists that no number of steps limits; no training has so many.
MOST_STEPS = 10**9


def sealed(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an audit of some kind, with what vouches for it."""
    content = _plain(content)
    return {
        "format": _format(kind),
        "version": VERSION,
        "digest": digest_of(content),
        "content": content,
    }


def _plain(value: Any) -> Any:
    """The same with Python's numbers in place of NumPy's, which other formats save as arrays."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def opened(kind: str, state: Any) -> dict[str, Any]:
    """Return the content of a state; raise ValueError if it does not vouch for it."""
    check_fields("the state", state, ("format", "version", "digest", "content"))
    if not isinstance(state["format"], str) or state["format"] != _format(kind):
        raise damaged("format", f"{_format(kind)!r}", state["format"])
    version = whole("version", state["version"], 0)
    if version != VERSION:
        raise ValueError(
            f"the saved audit has version {version}; this oraudit reads version {VERSION} only"
        )
    if not isinstance(state["content"], Mapping):
        raise damaged("content", "a dictionary", state["content"])
    digest = digest_of(state["content"])
    if not isinstance(state["digest"], str) or state["digest"] != digest:
        raise damaged("digest", f"that of its content, {digest[:12]}...", state["digest"])
    return dict(state["content"])


def _format(kind: str) -> str:
    return f"oraudit {kind}"


def damaged(where: str, allowed: str, got: Any) -> ValueError:
    shown = " ".join(repr(got).split())
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return ValueError(f"the saved audit is damaged: {where} must be {allowed}, got {shown}")


# ---------------------------------------------------------------------------------------- digest


def digest_of(content: Any) -> str:
    """Return the SHA-256 of lists, dictionaries, words, numbers and arrays, whatever saves them."""
    digest = Digest()
    try:
        digest.add(content)
    except RecursionError:
        raise ValueError("the saved audit is damaged: it is nested without end") from None
    return digest.hex()


class Digest:
    """Adds up values so that no two of them read alike."""

    def __init__(self) -> None:
        self._sum = sha256()

    def hex(self) -> str:
        return self._sum.hexdigest()

    def _say(self, kind: str, content: bytes) -> None:
        self._sum.update(f"{kind}{len(content)}:".encode())
        self._sum.update(content)

    def add(self, value: Any) -> None:
        """Add a value and all that is in it."""
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            if array.dtype.kind not in "biuf":
                raise damaged("an array", "of numbers", array.dtype)
            self._say("array", f"{array.dtype.str}{np.shape(value)}".encode())
            self._say("bytes", array.tobytes())
        elif isinstance(value, Mapping):
            self._say("keys", str(len(value)).encode())
            for key in sorted(value, key=repr):
                if not isinstance(key, str | int):
                    raise damaged("each key", "a word or a number", key)
                self.add(key)
                self.add(value[key])
        elif isinstance(value, list | tuple):
            self._say("list", str(len(value)).encode())
            for each in value:
                self.add(each)
        elif isinstance(value, str):
            self._say("word", value.encode(errors="surrogatepass"))
        elif value is None or isinstance(value, bool):
            self._say("truth", str(value).encode())
        elif isinstance(value, int):
            self._say("whole", hex(value).encode())
        elif isinstance(value, float):
            self._say("real", value.hex().encode())
        else:
            raise damaged("each part", "a list, a dictionary, a word, a number or an array", value)


# ----------------------------------------------------------------------------------------- parts


def check_fields(where: str, value: Any, names: Sequence[str]) -> None:
    """Refuse what is no dictionary with these keys, no more and no fewer."""
    if not isinstance(value, Mapping):
        raise damaged(where, f"a dictionary with {', '.join(names)}", value)
    if missing := [name for name in names if name not in value]:
        raise ValueError(f"the saved audit is damaged: {where} must have {missing[0]!r}, got none")
    if more := [name for name in value if name not in names]:
        raise damaged(f"a key of {where}", f"one of {', '.join(names)}", more[0])


def rows(where: str, value: Any, least: int = 0, most: int | None = None) -> Sequence[Any]:
    """Return a list with ``least`` to ``most`` entries; with ``least`` if ``most`` is not given."""
    most = least if most is None else most
    if not isinstance(value, list | tuple):
        raise damaged(where, "a list", value)
    if not least <= len(value) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(
            f"the saved audit is damaged: {where} must have {wanted} entries, got {len(value)}"
        )
    return value


def words(where: str, value: Any) -> list[str]:
    """Return a list of different words."""
    value = rows(where, value, 0, MOST_STEPS)
    for each in value:
        if not isinstance(each, str):
            raise damaged(f"each of {where}", "a word", each)
    if len(set(value)) < len(value):
        raise damaged(where, "names that all differ", value)
    return list(value)


def whole(where: str, value: Any, low: int, high: int = 2**62) -> int:
    """Return a whole number in a range."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise damaged(where, "a whole number", value)
    if not low <= value <= high:
        raise damaged(
            where, f"in [{low}, {high}]", int(value) if -high <= value <= high else "more"
        )
    return int(value)


def number(
    where: str, value: Any, low: float = -inf, high: float = inf, *, or_nan: bool = False
) -> float:
    """Return a number in a range; infinite or NaN only where that is allowed."""
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise damaged(where, "a number", value)
    if isinstance(value, int) and abs(value) > 2**62:
        raise damaged(where, "a number below 2^62", "more")
    if isnan(value):
        if not or_nan:
            raise damaged(where, "a number", value)
    elif not low <= value <= high or (abs(value) == inf and not or_nan):
        raise damaged(where, f"a number in [{low:g}, {high:g}]", value)
    return float(value)


def reals(
    where: str,
    value: Any,
    shape: tuple[int, ...] | None = None,
    *,
    low: float = -inf,
    kinds: str = "f",
) -> None:
    """Refuse what is no array of numbers with this shape; NaN is allowed, as trainings have it."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        kind = "whole" if kinds == "i" else "real"
        got = value.dtype if isinstance(value, np.ndarray) else value
        raise damaged(where, f"an array of {kind} numbers", got)
    if shape is not None and value.shape != shape:
        raise damaged(where, f"of shape {shape}", value.shape)
    if low > -inf and bool((value < low).any()):
        raise damaged(where, f"at least {low:g}", float(value[value < low].flat[0]))


def optional_number(where: str, value: Any) -> None:
    if value is not None:
        number(where, value, or_nan=True)


def check_steps(where: str, value: Any, steps: int) -> int:
    """Refuse what are no steps of the training, each after the one before; return how many."""
    before = 0
    for step in rows(where, value, 0, steps):
        if whole(f"each of {where}", step, 1, steps) <= before:
            raise damaged(where, "steps that grow", value)
        before = step
    return len(value)


# ---------------------------------------------------------------------------------------- record


def check_record(state: Any, names: Sequence[str]) -> int:
    """Refuse the state of a :class:`Record` that cannot be; return how many steps it has.

    ``names`` are those of the tensors that this audit has.
    """
    parts = ("names", "noise", "batches", "around", "looks", "events", "told")
    check_fields("the record", state, parts)
    check_names(words("names", state["names"]), names)
    told = rows("told", state["told"], 0, MOST_STEPS)
    for place, each in enumerate(told, 1):
        where = f"step {place} of told"
        check_fields(where, each, _names_of(Told))
        number(f"the clip of {where}", each["clip"], 0)
        number(f"the sigma of {where}", each["sigma"], 0)
        if each["rate"] is not None:
            number(f"the rate of {where}", each["rate"], 0, 1)
    steps = len(told)
    _check_noise(state["noise"], steps)
    _check_batches(state["batches"], steps)
    _check_around(state["around"], steps)
    for place, each in enumerate(rows("looks", state["looks"], 0, MOST_STEPS), 1):
        where = f"look {place}"
        check_fields(where, each, _names_of(Look))
        whole(f"the step of {where}", each["step"], 1, steps + 1)
        number(f"the error of {where}", each["error"], 0, or_nan=True)
        number(f"the tolerance of {where}", each["tolerance"], 0)
        number(f"the largest of {where}", each["largest"], 0, or_nan=True)
        check_causes(f"the causes of {where}", each["causes"])
    for place, each in enumerate(rows("events", state["events"], 0, MOST_STEPS), 1):
        where = f"event {place}"
        check_event(where, each, steps)
    return steps


def check_names(saved: Sequence[str], names: Sequence[str]) -> None:
    """Refuse the state of an audit of other tensors."""
    if list(saved) != list(names):
        raise ValueError(
            f"the saved audit is of the tensors {_short(saved)}, and this one of {_short(names)}"
        )


def _short(names: Sequence[str]) -> str:
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "") or "none"


def check_event(where: str, value: Any, steps: int) -> None:
    """Refuse what is no event of so many steps or of the one under way."""
    check_fields(where, value, _names_of(Event))
    if value["kind"] not in get_args(Kind):
        raise damaged(f"the kind of {where}", "one that is known", value["kind"])
    if value["step"] is not None:
        whole(f"the step of {where}", value["step"], 1, steps + 1)
    if not isinstance(value["what"], str):
        raise damaged(f"the words of {where}", "words", value["what"])
    optional_number(f"the number of {where}", value["number"])


def check_causes(where: str, value: Any) -> None:
    """Refuse what does not explain a sum: words, and how far one example moves it."""
    if not isinstance(value, Mapping):
        raise damaged(where, "a dictionary", value)
    for cause, size in value.items():
        if not isinstance(cause, str):
            raise damaged(f"each of {where}", "a word", cause)
        optional_number(f"each of {where}", size)


def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _check_noise(state: Any, steps: int) -> None:
    check_fields("noise", state, ("sizes", "units", "kept"))
    sizes = [
        whole("each of the noise's sizes", size, 0, 2**48)
        for size in rows("the noise's sizes", state["sizes"], 0, MOST_STEPS)
    ]
    # A step under way may have noise, and is not told yet.
    units = rows("the noise's units", state["units"], steps, steps + 1)
    for unit in units:
        if number("each of the noise's units", unit, 0, or_nan=True) == 0:
            raise damaged("each of the noise's units", "more than 0", unit)
    kept = rows("the noise that is kept", state["kept"], len(units))
    if kept and not sizes:
        raise ValueError("the saved audit is damaged: the noise must have sizes, got none")
    if not kept:
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
    for place, numbers in enumerate(kept, 1):
        where = f"the noise of step {place}"
        for (name, shape), array in zip(
            shapes.items(), rows(where, numbers, len(shapes)), strict=True
        ):
            low = 0 if name in never_negative else -inf
            reals(f"the {name} in {where}", array, shape, low=low)


def _check_batches(state: Any, steps: int) -> None:
    check_fields("batches", state, ("sizes", "fingerprints"))
    sizes = rows("the batches' sizes", state["sizes"], steps)
    prints = rows("the batches' fingerprints", state["fingerprints"], steps)
    for size, its_prints in zip(sizes, prints, strict=True):
        if size is not None:
            whole("each of the batches' sizes", size, 0)
        if its_prints is not None:
            if size is None:
                raise damaged("a batch with fingerprints", "of a known size", size)
            where = "the fingerprints of a batch"
            reals(where, its_prints, (int(size),), kinds="i")
            if its_prints.dtype != np.int64:
                raise damaged(where, "of 64 bits", its_prints.dtype)


def _check_around(state: Any, steps: int) -> None:
    for place, step in enumerate(rows("around", state, steps), 1):
        where = f"step {place} of around"
        if not isinstance(step, Mapping):
            raise damaged(where, "a dictionary", step)
        for name, value in step.items():
            if name not in NAMES:
                raise damaged(f"a key of {where}", "one that is known", name)
            number(f"the {name} in {where}", value, or_nan=True)


def check_canaries(state: Any, n: int, weights: int, steps: int) -> None:
    """Refuse what ``n`` canaries on so many weights do not leave after so many steps."""
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
    # A step under way may have its scores, and is not told yet.
    times = whole("the steps of canaries", state["steps"], steps, steps + 1)
    for rate in rows("the rates of canaries", state["rates"], times):
        number("each of the rates of canaries", rate, 0, 1)
    for sigma in rows("the sigmas of canaries", state["sigmas"], times):
        number("each of the sigmas of canaries", sigma, 0)
    if not isinstance(state["whole"], bool):
        raise damaged("whether canaries are whole", "true or false", state["whole"])


def _check_same(what: str, saved: int, here: int) -> None:
    if saved != here:
        raise ValueError(f"the saved audit is of {saved} {what}; it must be of {here}, as this one")
