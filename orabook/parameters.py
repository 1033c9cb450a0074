"""The parameters of the book's chapters: what each means, its type and its range.

A chapter declares its parameters in a cell tagged ``parameters``, one ``name: type = value`` per
line, which papermill can override, and checks them in the next cell, before any work::

    parameters.check(globals())
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from difflib import get_close_matches
from functools import partial
from typing import Any

from oralib.ground import arguments

__all__ = ["PARAMETERS", "at_most", "check", "did_you_mean", "evenly"]


def _list_of(convert: Callable[[str, Any], Any], name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise TypeError(f"{name} must be a list with at least one entry, got {name}={value!r}")
    entries = [convert(f"{name}[{place}]", entry) for place, entry in enumerate(value)]
    if len(set(entries)) < len(entries):
        raise ValueError(f"{name} must hold no number twice, got {name}={value!r}")
    return entries


def _integer(low: int, high: int = arguments.LARGEST_COUNT) -> Callable[[str, Any], Any]:
    return partial(arguments.integer, low=low, high=high)


def _integers(low: int, high: int) -> Callable[[str, Any], Any]:
    return partial(_list_of, _integer(low, high))


def _real(low: float, high: float) -> Callable[[str, Any], Any]:
    return partial(arguments.real, low=low, high=high)


def _reals(low: float, high: float) -> Callable[[str, Any], Any]:
    return partial(_list_of, _real(low, high))


#: Every parameter that a chapter may have, and what checks and converts it. Within these ranges a
#: chapter works, or refuses in its first cells; they exclude only what no chapter is made for.
PARAMETERS: Mapping[str, Callable[[str, Any], Any]] = {
    "beta": _real(1e-9, 0.999),  # how often a bound may fail
    "d": _integer(1, 10**6),  # number of coordinates of the model
    "delta": _real(1e-12, 0.5),  # δ of (ε, δ)-differential privacy
    "epsilon": _real(0.1, 30),  # privacy level ε, in nats
    "epsilons": _reals(0.1, 30),  # several privacy levels ε, in nats
    "fractions": _reals(1e-6, 1),  # fractions k/n of elements guessed
    "k": _integer(1, 10**6),  # number of guesses
    "n": _integer(1, 10**7),  # number of elements
    "p": _real(0.001, 0.999),  # how often All-or-Nothing releases its input
    "ratio": _real(0.001, 1000),  # number n/d of elements per coordinate
    "ratios": _reals(0.001, 1000),  # numbers n/d of elements per coordinate
    "sample_rate": _real(1e-6, 1),  # how likely an element is in a batch
    "seed": _integer(0),  # seed of all random numbers
    "sets": _integer(1, 10**4),  # number of sets of Count-in-Sets
    "sizes": _integers(1, 1000),  # sizes s of the sets of Count-in-Sets
    "steps": _integer(1, 10**5),  # number of steps of DP-SGD
    "tau": _real(1e-6, 1000),  # threshold on the privacy loss, in nats
    "trials": _integer(2, 10**6),  # number of independent audits of each point
}


def check(namespace: MutableMapping[str, Any], **limits: tuple[float, float]) -> None:
    """Check and convert a chapter's parameters in place.

    They are those of its variables, ``globals()``, that were declared with a type. Any other plain
    value counts as a parameter that the chapter does not have, unless the chapter has already run
    there. The limits are the smallest and the largest value that this chapter can take.

    >>> space = {"__annotations__": {"epsilon": float, "trials": int}, "epsilon": 2, "trials": 1e4}
    >>> check(space)
    >>> space["epsilon"], space["trials"]
    (2.0, 10000)
    """
    names = list(namespace.get("__annotations__", {}))
    if not namespace.get("_parameters_checked"):
        _refuse_others(namespace, names)
    for name in names:
        if name not in PARAMETERS:
            raise ValueError(
                f"{name} is not among the parameters that chapters share and this can check, "
                f"{', '.join(PARAMETERS)}; a notebook with others checks its own, without this call"
            )
    values = {name: PARAMETERS[name](name, namespace[name]) for name in names}
    for name, (smallest, largest) in limits.items():
        value = values[name]
        entries = value if isinstance(value, list) else [value]
        if min(entries) < smallest or max(entries) > largest:
            raise ValueError(
                f"{name} must lie in [{smallest:g}, {largest:g}] in this chapter, "
                f"got {name}={value}"
            )
    namespace.update(values)
    namespace["_parameters_checked"] = True


def _refuse_others(namespace: Mapping[str, Any], names: list[str]) -> None:
    """Refuse plain values under other names: papermill may have put them there."""
    plain = int | float | str | list | tuple | dict | None
    for name, value in namespace.items():
        is_of_ipython = name in ("In", "Out") or name.startswith("_")
        if name in names or is_of_ipython or not isinstance(value, plain):
            continue
        hint = did_you_mean(name, names, "its parameters:")
        raise ValueError(f"{name} is not a parameter of this chapter, got {name}={value!r}{hint}")


def at_most(name: str, value: int, limit_name: str, limit: int) -> None:
    """Refuse a parameter that is too large for the others, before any work."""
    if value > limit:
        raise ValueError(
            f"{name} must be at most {limit_name} = {limit}, got {name}={value}; "
            f"add -p {name}={limit}"
        )


def evenly(name: str, value: float | list[float], d: int, *, per: int = 1) -> None:
    """Refuse elements that d coordinates cannot share evenly, before any work.

    There are ``value`` times ``per`` of them: a ratio n/d has ``per=d``. Up to d may be alone.
    """
    for entry in value if isinstance(value, list) else [value]:
        n = max(1, round(entry * per))
        if n > d and n % d:
            smaller = n // d * d // per
            larger = smaller + d // per
            if isinstance(value, list):
                advice = f"give {smaller} or {larger} instead"
            else:
                advice = f"add -p {name}={smaller} or -p {name}={larger}"
            raise ValueError(
                f"{name} must give every coordinate equally many elements once there are more "
                f"elements than coordinates, got {name}={entry}: n={n} elements with d={d}; "
                f"{advice}"
            )


def did_you_mean(name: str, allowed: Iterable[str], introduction: str) -> str:
    """The end of an error message: the allowed name that is nearest, and all of them.

    >>> did_you_mean("epslion", ["epsilon", "trials"], "its parameters:")
    '; did you mean epsilon? (its parameters: epsilon, trials)'
    """
    names = list(allowed)
    listing = f"({introduction} {', '.join(names)})"
    nearest = get_close_matches(name, names, n=1)
    return f"; did you mean {nearest[0]}? {listing}" if nearest else f" {listing}"
