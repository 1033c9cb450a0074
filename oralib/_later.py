"""Modules of SciPy that are imported when something of them is first used.

They take longer to import than all of oralib, and most of its functions need none of them.
"""

from importlib import import_module
from typing import Any


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


interpolate: Any = _Later("scipy.interpolate")
optimize: Any = _Later("scipy.optimize")
special: Any = _Later("scipy.special")
stats: Any = _Later("scipy.stats")
