"""Fixtures of several files, and how many examples Hypothesis tries."""

import pytest
from hypothesis import settings
from notebooks import run_points_here

# `pytest --hypothesis-profile more` tries more of them.
settings.register_profile("few", deadline=None, max_examples=40)
settings.register_profile("more", deadline=None, max_examples=300)
settings.load_profile("few")


@pytest.fixture
def workers_at_home(monkeypatch):
    """The points of sweeps are run here, one by one: for tests to which Dask does not matter."""
    run_points_here(monkeypatch)
