"""Measure every ratio in one run, side by side, after a warm-up, and print one table."""

import logging
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
import numba
import numpy as np
from tqdm import tqdm

import oralib
from benchmarks import peers, reference
from orabook.studies import simulate_training
from oralib import accounting

#: With this word everything is measured once, on small problems: only to see that it runs.
SMALL = "--small"

DELTA = 1e-5
POINT = oralib.DpSgd(n=8000, d=1000, steps=100, sample_rate=0.1, sigma=2.422402)


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The best time of several runs, or of one if the measurement is to be small."""
    times = []
    for _ in range(1 if SMALL in sys.argv else repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def one_bound(v: int, r: int, n: int, repeats: int) -> tuple[float, float]:
    plain = seconds(lambda: reference.epsilon_lower_bound(v, r, DELTA, n), repeats)
    fast = seconds(lambda: oralib.epsilon_lower_bound(v, r, delta=DELTA, n=n), 20 * repeats)
    return plain, fast


def large_bound() -> tuple[float, float]:
    return one_bound(7 * 10**5, 10**6, 10**6, 1)


def many_bounds() -> tuple[float, float]:
    """Per count; the loop is measured on two of the 10,000, one small and one of median size."""
    rng = np.random.default_rng(0)
    r = rng.integers(1, 5001, size=10_000)
    v = np.round(r * rng.uniform(0.5, 1, size=10_000)).astype(int)
    fast = seconds(lambda: oralib.epsilon_lower_bound(v, r, delta=DELTA, n=5000), 3) / v.size

    def loops() -> None:
        for quantile in (0.1, 0.5):
            i = np.argsort(v)[int(quantile * v.size)]
            reference.epsilon_lower_bound(
                int(v[i]), int(r[i]), DELTA, 5000, p_value=reference.p_value_loop
            )

    return seconds(loops, 1) / 2, fast


def hopping() -> tuple[float, float]:
    point = oralib.DpSgd(n=32_000, sigma=2.422402)
    plain = seconds(lambda: reference.simulate_hopping(point, 300, 2, 1), 2) / 2
    fast = seconds(lambda: oralib.simulate_hopping(point, 300, trials=64, seed=1), 3) / 64
    return plain, fast


def calibration() -> tuple[float, float]:
    """The noise of DP-SGD, against the calibration of dp-accounting with all its orders."""
    plain = seconds(lambda: reference.noise_multiplier(2.0, 1e-5, 100, 0.1), 2)

    def fast() -> float:
        accounting._noise_multiplier.cache_clear()
        accounting._spent.cache_clear()
        return oralib.noise_multiplier(2.0, 1e-5, 100, 0.1)

    return plain, seconds(fast, 2)


def command(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def imports() -> tuple[float, float]:
    """A process that imports oralib, against one that imports what it is made of."""
    plain = seconds(lambda: command("-c", "import numba, scipy.stats"), 3)
    return plain, seconds(lambda: command("-c", "import oralib"), 3)


def small_run() -> tuple[float, float]:
    """A run of a chapter that does nothing, with its page and record, against plain papermill."""
    with TemporaryDirectory() as folder:
        cell = nbformat.v4.new_code_cell("x: int = 1  # x", metadata={"tags": ["parameters"]})
        last = nbformat.v4.new_code_cell("from orabook import results\nresults.record(x=x)")
        path = Path(folder) / "small.ipynb"
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(
            nbformat.v4.new_notebook(cells=[cell, last], metadata={"kernelspec": kernel}), path
        )
        files = str(path), str(Path(folder) / "out.ipynb")
        plain = seconds(lambda: command("-m", "papermill", *files), 3)
        out = ("--out", str(Path(folder) / "run"), "--force")
        return plain, seconds(lambda: command("-m", "orabook", "run", files[0], *out), 3)


def threads() -> tuple[float, float]:
    """One thread against two, with the same numbers."""
    results, times = [], []
    most = numba.get_num_threads()
    for count in (1, min(2, most)):
        numba.set_num_threads(count)
        results.append(oralib.simulate_dpsgd(POINT, 100, trials=6400, seed=1).v)
        times.append(
            seconds(lambda: oralib.simulate_dpsgd(POINT, 100, trials=6400, seed=1), 3) / 6400
        )
    numba.set_num_threads(most)
    if not np.array_equal(*results):
        raise RuntimeError("the number of threads has changed the numbers")
    return times[0], times[1]


def trial(play: Callable[..., object]) -> tuple[float, float]:
    """A trial of DP-SGD, against one with NumPy that draws each batch."""
    plain = seconds(lambda: reference.simulate_dpsgd(POINT, 100, 10, 1), 3) / 10
    return plain, seconds(lambda: play(POINT, 100, trials=512, seed=1), 5) / 512


COMPARISONS: list[tuple[str, float, Callable[[], tuple[float, float]]]] = [
    ("(ε, δ) bound at v, r, n = 75, 100, 1000", 100, lambda: one_bound(75, 100, 1000, 5)),
    ("(ε, δ) bound at v, r, n = 700 000, 10⁶, 10⁶", 1000, large_bound),
    ("(ε, δ) bounds of 10 000 counts, against a loop", 200, many_bounds),
    (
        "f-DP bound at v, r, n = 700, 1000, 5000",
        100,
        lambda: (
            seconds(lambda: reference.epsilon_lower_bound_fdp(700, 1000, 5000, DELTA), 2),
            seconds(lambda: oralib.epsilon_lower_bound_fdp(700, 1000, n=5000, delta=DELTA), 50),
        ),
    ),
    (
        "worst case W_n of full feedback, n = 1000",
        20,
        lambda: (
            seconds(lambda: reference.adaptive_failure_probability(1.0, 1000, 0.05), 1),
            seconds(lambda: oralib.adaptive_failure_probability(1.0, 1000, 0.05), 5),
        ),
    ),
    ("DP-SGD trial, n = 8000, collapsed", 150, lambda: trial(oralib.simulate_dpsgd)),
    ("DP-SGD trial, n = 8000, step by step", 10, lambda: trial(simulate_training)),
    ("DP-SGD trial, n = 32 000, hopping", 20, hopping),
    ("noise multiplier, against dp-accounting alone", 2.5, calibration),
    ("import, against Numba and scipy.stats", 1.4, imports),
    ("run of a small chapter, against papermill", 1.2, small_run),
    ("one thread against two, the same numbers", 1.7, threads),
]


#: What takes seconds even once.
SLOW = (large_bound, many_bounds, calibration, imports, small_run)


def large_point() -> oralib.DpSgd:
    n = 10**4 if SMALL in sys.argv else 10**8
    return oralib.DpSgd(n, d=n // 100, sigma=2.422402)


def largest() -> str:
    """Peak memory and time of one audit of many elements, in a process of its own."""
    point, start = large_point(), perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--largest", *sys.argv[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    return (
        f"  n = {point.n:,}, d = {point.d:,}: {perf_counter() - start:.1f} s with start-up, "
        f"{int(done.stdout) / 2**20:.2f} GiB of memory at most"
    )


def main() -> None:
    if "--largest" in sys.argv:
        oralib.simulate_dpsgd(large_point(), 100, trials=2, seed=1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(peak // 1024 if sys.platform == "darwin" else peak)  # in KiB
        return
    logging.getLogger("absl").setLevel(logging.ERROR)  # the accountant names orders that it omits
    # Warm up: compile or load every kernel.
    oralib.epsilon_lower_bound([7], [8], delta=DELTA, n=8)
    oralib.epsilon_lower_bound_fdp(7, 8, delta=DELTA, n=8)
    oralib.adaptive_failure_probability(1.0, 10)
    oralib.simulate_dpsgd(POINT, 100, trials=64, seed=1)
    simulate_training(POINT, 100, trials=64, seed=1)
    oralib.simulate_hopping(POINT, 100, trials=2, seed=1)
    rows = [
        (name, target, *measure())
        for name, target, measure in tqdm(COMPARISONS, disable=None, leave=False)
        if SMALL not in sys.argv or measure not in SLOW
    ]
    width = max(len(name) for name, *_ in rows)
    print(f"{'':{width}}  {'plain':>10}  {'oralib':>10}  {'ratio':>8}  {'aim':>6}")
    for name, target, plain, fast in rows:
        print(
            f"{name:{width}}  {plain * 1e6:8.0f}µs  {fast * 1e6:8.1f}µs  "
            f"{plain / fast:7.1f}x  {target:5g}x{'' if plain / fast >= target else '  missed'}"
        )
    if SMALL not in sys.argv:
        print("\nBeside other packages, on the same counts:")
        print("\n".join(peers.compared(seconds)))
    print("\nA large DP-SGD trial:")
    print(largest())


if __name__ == "__main__":
    main()
