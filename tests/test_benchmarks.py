"""The plain implementations that oralib is measured against compute the same things."""

import pytest
from test_dpsgd import same_law

import oralib
from benchmarks import __main__ as measured
from benchmarks import peers, reference
from oralib.bounds import Gaussian


def test_bounds():
    for v, r, n in (700, 1000, 5000), (60, 80, 100), (10, 10, 10), (5, 9, 9):
        expected = oralib.epsilon_lower_bound(v, r, delta=1e-5, n=n)
        assert reference.epsilon_lower_bound(v, r, 1e-5, n) == pytest.approx(expected, abs=1e-9)
        by_brentq = reference.epsilon_lower_bound_brentq(v, r, 1e-5, n)
        assert by_brentq == pytest.approx(expected, abs=1e-9)
        twin = reference.epsilon_lower_bound_twin(v, r, 1e-5, n)
        assert twin == pytest.approx(expected, abs=1e-9)
        chance = oralib.p_value(v, r, 0.3, delta=1e-4, n=n)
        assert reference.p_value_loop(v, r, 0.3, 1e-4, n) == pytest.approx(chance)
        expected = oralib.bounds.Gaussian().lower_bound(v, r, n=n, delta=1e-5)
        assert reference.epsilon_lower_bound_fdp(v, r, n, 1e-5) == pytest.approx(expected, abs=1e-5)


def test_worst_case():
    expected = oralib.adaptive_failure_probability(0.7, 200, 0.05)
    assert reference.adaptive_failure_probability(0.7, 200, 0.05) == pytest.approx(expected)
    assert reference.adaptive_failure_probability_twin(0.7, 200, 0.05) == pytest.approx(expected)


def test_dpsgd():
    point = oralib.DpSgd(n=18, d=6, steps=3, sample_rate=0.4, sigma=0.7)
    plain = reference.simulate_dpsgd(point, 5, 5000, seed=1)
    ours = oralib.simulate_dpsgd(point, 5, trials=20_000, seed=1).v
    assert same_law(plain, ours)
    assert same_law(reference.simulate_sums(point, 5, 20_000, seed=1), ours)


def test_hopping():
    point = oralib.DpSgd(n=60, d=20, steps=4, sample_rate=0.4, sigma=0.7)
    plain = reference.simulate_hopping(point, 9, 1000, seed=1)
    assert same_law(plain, oralib.simulate_hopping(point, 9, trials=5000, seed=1).v)


@pytest.mark.slow
def test_noise_multiplier():
    expected = oralib.noise_multiplier(3.0, 1e-5, 10, 0.2)
    assert reference.noise_multiplier(3.0, 1e-5, 10, 0.2) == pytest.approx(expected, abs=2e-6)


def test_the_tables(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", measured.SMALL])
    before = measured.PAGE.read_text()
    measured.main()
    out = capsys.readouterr().out
    assert measured.machine() in out
    for _, rows in measured.TABLES:
        assert all(f"| {row.task} | " in out for row in rows if row.measure not in measured.SLOW)
    assert measured.PAGE.read_text() == before


def test_the_book_shows_what_is_measured():
    page = measured.PAGE.read_text()
    tasks = [f"{row.task} | {row.other}" for _, rows in measured.TABLES for row in rows]
    assert [task for task in tasks if f"| {task} | " not in page] == []
    assert "{include} data/benchmarks.md" in (measured.BOOK / "times.md").read_text()


def test_times_have_two_digits_and_a_unit():
    times = (1.23e-4, 0.0294, 0.9999, 20.3, 1234.0)
    assert [measured.time(x) for x in times] == ["120 µs", "29 ms", "1 s", "20 s", "1,200 s"]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "package", "theirs", "rule", "counts"), peers.PEERS)
def test_other_packages(name, package, theirs, rule, counts):
    """Their bounds are ours, up to their own accuracy."""
    pytest.importorskip(package)
    for count in counts[:3]:
        expected, ours = theirs(*count)(), peers.ours(rule, *count)
        close = 2e-5 if rule == Gaussian() else 2e-6
        if package == "privacy_guard":
            close = 0.05
        assert ours == pytest.approx(expected, abs=close)
