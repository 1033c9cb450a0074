"""A fixture for pytest, in every project that has this package: :func:`watch`.

>>> def test_training_is_private(watch):  # doctest: +SKIP
...     train(epochs=1)
...     watch.check()
"""

from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["watch"]


@pytest.fixture
def watch() -> Iterator[Any]:
    """The audits of all that the test makes private with Opacus; it has to make something so."""
    from oraudit.ways.opacus.watch import watch as watched

    with watched() as audits:
        yield audits
