"""Dataclasses as lists, words and numbers of JSON, and back, with every type and size proved."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["NotPlain", "as_plain", "from_plain"]

#: The longest text to read, in characters, and the longest list, in items.
MOST_CHARACTERS = 100_000
MOST_ITEMS = 10_000

#: The numbers that JSON does not have, by their names in a file.
_NAMED = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class NotPlain(ValueError):
    """A value that is not of its type; the message names its place in the document."""


def as_plain(value: Any) -> Any:
    """Return a value as lists, words and numbers of JSON.

    >>> as_plain((1.5, float("inf"), {0.5: 0.9}))
    [1.5, 'inf', [[0.5, 0.9]]]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return [[as_plain(key), as_plain(value[key])] for key in sorted(value)]
    if isinstance(value, tuple | list):
        return [as_plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    number = float(value)
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return "nan"
    return "inf" if number > 0 else "-inf"


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """Return the value of a type that :func:`as_plain` made plain; NotPlain if there is none.

    >>> from_plain(tuple[float, ...], [1.5, "inf"], "noise")
    (1.5, inf)
    >>> from_plain(int, "3", "steps")
    Traceback (most recent call last):
    oraudit.report.plain.NotPlain: steps is '3'; it must be int
    """
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union(kind, value, where)
    if origin is Literal:
        return _checked(value, where, value in get_args(kind), f"one of {get_args(kind)}")
    if origin is tuple:
        return _tuple(kind, value, where)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(get_args(kind), value, where)
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    return _single(kind, value, where)


def _checked(value: Any, where: str, fine: bool, allowed: str) -> Any:
    """Return a value if it is fine; else raise NotPlain."""
    if not fine:
        raise NotPlain(f"{where} is {repr(value)[:60]}; it must be {allowed}")
    return value


def _single(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(_checked(value, where, number and abs(value) < 1e308, "a number"))
    fine = type(value) is kind
    if fine and kind is str:
        fine = len(value) <= MOST_CHARACTERS
    if fine and kind is int:
        fine = abs(value) < 2**63
    return _checked(value, where, fine, kind.__name__)


def _union(kind: Any, value: Any, where: str) -> Any:
    (inner,) = (part for part in get_args(kind) if part is not NoneType)
    return None if value is None else from_plain(inner, value, where)


def _tuple(kind: Any, value: Any, where: str) -> tuple[Any, ...]:
    kinds = get_args(kind)
    _checked(value, where, isinstance(value, list), "a list")
    if kinds[-1] is Ellipsis:
        _checked(len(value), f"the length of {where}", len(value) <= MOST_ITEMS, "smaller")
        kinds = kinds[:1] * len(value)
    _checked(len(value), f"the length of {where}", len(value) == len(kinds), str(len(kinds)))
    return tuple(
        from_plain(kind, item, f"{where}[{place}]")
        for place, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _mapping(kinds: tuple[Any, Any], value: Any, where: str) -> dict[Any, Any]:
    _checked(value, where, isinstance(value, list), "a list of pairs")
    _checked(len(value), f"the length of {where}", len(value) <= MOST_ITEMS, "smaller")
    mapping = {}
    for place, pair in enumerate(value):
        name = f"{where}[{place}]"
        _checked(pair, name, isinstance(pair, list) and len(pair) == 2, "a pair")
        mapping[from_plain(kinds[0], pair[0], name)] = from_plain(kinds[1], pair[1], name)
    _checked(value, where, len(mapping) == len(value), "without the same key twice")
    return mapping


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    _checked(value, where, isinstance(value, dict), f"a {kind.__name__}")
    hints = get_type_hints(kind)
    required = {field.name for field in fields(kind) if _has_no_default(field)}
    names = set(value)
    if not required <= names <= set(hints):
        differing = sorted((required - names) | (names - set(hints)))
        raise NotPlain(f"{where} lacks, or should not have, {', '.join(differing)[:60]}")
    parts = {name: from_plain(hints[name], part, f"{where}.{name}") for name, part in value.items()}
    try:
        return kind(**parts)
    except ValueError as error:
        raise NotPlain(f"{where} is no {kind.__name__}: {error}") from None


def _has_no_default(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
