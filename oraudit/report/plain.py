"""Dataclasses as lists, words and numbers of JSON, and back, with every type and size proved."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["NotPlain", "as_plain", "from_plain"]

#: The most characters of a text, and the most items of a list, that are read.
MOST_CHARACTERS = 100_000
MOST_ITEMS = 10_000

#: Numbers that JSON does not have.
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class NotPlain(ValueError):
    """What is wrong with a value, and where."""


def as_plain(value: Any) -> Any:
    """A value in what JSON has.

    >>> as_plain((1.5, float("inf"), {0.5: 0.9}))
    [1.5, 'inf', [[0.5, 0.9]]]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return [[as_plain(key), as_plain(value[key])] for key in sorted(value)]
    if isinstance(value, tuple | list):
        return [as_plain(each) for each in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    number = float(value)
    if math.isfinite(number):
        return number
    return "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """A value of this type from what :func:`as_plain` made of it; NotPlain if it is none.

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
    if not fine:
        shown = repr(value)
        raise NotPlain(f"{where} is {shown[:60]}; it must be {allowed}")
    return value


def _single(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
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
    (other,) = (each for each in get_args(kind) if each is not NoneType)
    return None if value is None else from_plain(other, value, where)


def _tuple(kind: Any, value: Any, where: str) -> tuple[Any, ...]:
    kinds = get_args(kind)
    _checked(value, where, isinstance(value, list), "a list")
    if kinds[-1] is Ellipsis:
        _checked(len(value), f"the length of {where}", len(value) <= MOST_ITEMS, "smaller")
        kinds = kinds[:1] * len(value)
    _checked(len(value), f"the length of {where}", len(value) == len(kinds), str(len(kinds)))
    return tuple(
        from_plain(kind, each, f"{where}[{place}]")
        for place, (kind, each) in enumerate(zip(kinds, value, strict=True))
    )


def _mapping(kinds: tuple[Any, Any], value: Any, where: str) -> dict[Any, Any]:
    _checked(value, where, isinstance(value, list), "a list of pairs")
    _checked(len(value), f"the length of {where}", len(value) <= MOST_ITEMS, "smaller")
    found = {}
    for place, pair in enumerate(value):
        name = f"{where}[{place}]"
        _checked(pair, name, isinstance(pair, list) and len(pair) == 2, "a pair")
        found[from_plain(kinds[0], pair[0], name)] = from_plain(kinds[1], pair[1], name)
    _checked(value, where, len(found) == len(value), "without the same key twice")
    return found


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    _checked(value, where, isinstance(value, dict), f"a {kind.__name__}")
    hints = get_type_hints(kind)
    needed = {each.name for each in fields(kind) if _has_no_default(each)}
    names = set(value)
    if not needed <= names <= set(hints):
        odd = sorted((needed - names) | (names - set(hints)))
        raise NotPlain(f"{where} lacks, or should not have, {', '.join(odd)[:60]}")
    parts = {name: from_plain(hints[name], each, f"{where}.{name}") for name, each in value.items()}
    try:
        return kind(**parts)
    except ValueError as error:
        raise NotPlain(f"{where} is no {kind.__name__}: {error}") from None


def _has_no_default(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
