"""Plans in files: under a digest, so that a change is seen."""

import json
import os
from dataclasses import asdict
from hashlib import sha256
from math import isnan
from typing import Any, Self

from oralib import _check

#: The format of plan.json.
FORMAT = 2

_KINDS: dict[str, type["Saved"]] = {}


class Saved:
    """What every kind of plan, a dataclass, does with its digest and its file."""

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls

    @property
    def digest(self) -> str:
        """Twelve digits that change with whatever the plan fixes or forecasts."""
        return sha256(json.dumps(self._fields()).encode()).hexdigest()[:12]

    @property
    def note(self) -> str:
        """What a report says about the plan of its audit."""
        return f"claim, side and number of guesses were fixed in a plan, digest {self.digest}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan into a JSON file, for ``oralib audit --plan``."""
        kind = {"format": FORMAT, "kind": type(self).__name__}
        text = json.dumps(
            {**kind, **self._fields(), "digest": self.digest}, indent=1, allow_nan=False
        )
        _check.path("path", path).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The plan in a file by :meth:`save`; a ValueError if somebody has changed it."""
        plan = load_plan(path)
        if not isinstance(plan, cls):
            kinds = f"{cls.__name__}, got {path}, which is a {type(plan).__name__}"
            raise ValueError(f"path must be the file of a plan of the kind {kinds}")
        return plan

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Self:
        return cls(**fields)

    def _fields(self) -> Any:
        return _without_nan(asdict(self))  # type: ignore[call-overload]


def load_plan(path: str | os.PathLike[str]) -> Any:
    """The plan of either kind in a file by ``save``."""
    try:
        fields = dict(json.loads(_check.path("path", path).read_text(encoding="utf-8")))
        if (number := fields.pop("format")) != FORMAT:
            raise ValueError(f"its format is {number!r}, and this oralib reads {FORMAT}")
        digest = fields.pop("digest")
        plan = _KINDS[fields.pop("kind")]._of(fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"path must be a file by oralib plan, got {path}: {error}") from None
    if plan.digest != digest:
        raise ValueError(f"path must be a plan as it was saved, got {path}, which was changed")
    return plan


def _without_nan(fields: Any) -> Any:
    """The same with None for what was not simulated, which is nan: JSON does not have it."""
    if isinstance(fields, dict):
        return {name: _without_nan(value) for name, value in fields.items()}
    return None if isinstance(fields, float) and isnan(fields) else fields
