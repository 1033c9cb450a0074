"""Fixtures of several files."""

import contextlib

import pytest


@pytest.fixture
def workers_at_home(monkeypatch):
    """The points of sweeps are run here, one by one: for tests to which Dask does not matter."""
    from oralib.runs import cluster, sweep

    @contextlib.contextmanager
    def connected(workers, scheduler=None):
        yield None

    def ended(client, calls):
        for i, call in calls.items():
            yield i, sweep.run_point(*call)

    monkeypatch.setattr(cluster, "connected", connected)
    monkeypatch.setattr(sweep, "_ended", ended)
    for name in sweep._THREADS:  # which a worker sets, here for this process
        monkeypatch.setenv(name, "1")
