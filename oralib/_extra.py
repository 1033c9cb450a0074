"""Packages that only real trainings need."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(*packages: str) -> Iterator[None]:
    """Say what to install if one of these optional packages is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"real trainings need {' and '.join(packages)}, and {error.name} is not installed: "
            "make torch, or pip install '.[torch]', in the repository",
            name=error.name,
        ) from None
