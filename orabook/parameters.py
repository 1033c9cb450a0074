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


def _range(
    check: Callable[..., Any],
    low: float,
    high: float = arguments.LARGEST_COUNT,
    *,
    many: bool = False,
) -> Callable[[str, Any], Any]:
    one = partial(check, low=low, high=high)
    return partial(_list_of, one) if many else one


_integer, _integers = (
    partial(_range, arguments.integer),
    partial(_range, arguments.integer, many=True),
)
_real, _reals = partial(_range, arguments.real), partial(_range, arguments.real, many=True)

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
    plain = int | float | str | list | tuple | dict | None  # what papermill may have put there
    for name, value in () if namespace.get("_parameters_checked") else namespace.items():
        known = name in (*names, "In", "Out") or name.startswith("_")  # like IPython's own names
        if not known and isinstance(value, plain):
            hint = did_you_mean(name, names, "its parameters:")
            raise ValueError(
                f"{name} is not a parameter of this chapter, got {name}={value!r}{hint}"
            )
    for name in names:
        if name not in PARAMETERS:
            raise ValueError(
                f"{name} is not among the parameters that chapters share and this can check, "
                f"{', '.join(PARAMETERS)}; a notebook with others checks its own, without this call"
            )
    values = {name: PARAMETERS[name](name, namespace[name]) for name in names}
    for name, (least, most) in limits.items():
        value = values[name]
        entries = value if isinstance(value, list) else [value]
        if min(entries) < least or max(entries) > most:
            allowed = f"[{least:g}, {most:g}] in this chapter"
            raise ValueError(f"{name} must lie in {allowed}, got {name}={value}")
    namespace.update(values)
    namespace["_parameters_checked"] = True


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
            less = n // d * d // per
            more = less + d // per
            advice = f"add -p {name}={less} or -p {name}={more}"
            raise ValueError(
                f"{name} must give every coordinate equally many elements once there are more "
                f"elements than coordinates, got {name}={entry}: n={n} elements with d={d}; "
                + (f"give {less} or {more} instead" if isinstance(value, list) else advice)
            )


def did_you_mean(name: str, known: Iterable[str], words: str) -> str:
    """For the end of an error message: the known name that is nearest, and all of them.

    >>> did_you_mean("epslion", ["epsilon", "trials"], "its parameters:")
    '; did you mean epsilon? (its parameters: epsilon, trials)'
    """
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return (f"; did you mean {close[0]}?" if close else "") + f" ({words} {', '.join(names)})"
