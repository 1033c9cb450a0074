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
    """Audit all that the test makes private with Opacus; it has to make something private."""
    from oraudit.ways.opacus.watch import watch as watch_trainings

    with watch_trainings() as audits:
        yield audits
