"""Packages that only some users need, such as PyTorch."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed"]


@contextmanager
def needed(*packages: str) -> Iterator[None]:
    """Name the packages to install if one of them is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"this needs {' and '.join(packages)}, and {error.name} is not installed: "
            f"pip install {' '.join(packages)}",
            name=error.name,
        ) from None
