"""Packages that only real trainings need."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(*packages: str) -> Iterator[None]:
    """Say what to install if one of these packages, which only some need, is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"real trainings need {' and '.join(packages)}, and there is no {error.name}: "
            "make torch, or pip install '.[torch]', in the repository",
            name=error.name,
        ) from None
