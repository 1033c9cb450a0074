"""Fixtures of several files."""

import pytest
from notebooks import run_points_here


@pytest.fixture
def workers_at_home(monkeypatch):
    """The points of sweeps are run here, one by one: for tests to which Dask does not matter."""
    run_points_here(monkeypatch)
