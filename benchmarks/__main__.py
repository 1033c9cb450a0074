"""Measure everything in one run, side by side, after a warm-up, and write the tables of the book.

``make bench`` prints the tables and writes ``book/data/benchmarks.md``, which the page *How long it
takes* shows. With ``--small`` everything is measured once, on small problems, and only printed.
"""

import logging
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import nbformat
import numba
import numpy as np
from tqdm import tqdm

import oralib
from benchmarks import peers, reference
from benchmarks.reference import simulate_training
from benchmarks.words import time, two_digits
from orabook.place import BOOK
from oralib.dpsgd import accounting

SMALL = "--small"

#: The tables that the page *How long it takes* of the book shows.
PAGE = BOOK / "data" / "benchmarks.md"

#: The δ of all bounds.
DELTA = 1e-5

#: The training that audits of DP-SGD play.
POINT = oralib.DpSgd(n=8000, d=1000, steps=100, sample_rate=0.1, sigma=2.422402)


class Row(NamedTuple):
    """A task, the code it is compared with, the least ratio that we want, and the measurement.

    The measurement returns the seconds of the other code and of ours.
    """

    task: str
    other: str
    aim: float
    measure: Callable[[], tuple[float, float]]


def is_small() -> bool:
    """True if everything is to be measured once, on small problems."""
    return SMALL in sys.argv


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The best time of several runs, or of one if the measurement is to be small."""
    times = []
    for _ in range(1 if is_small() else repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


# ------------------------------------------------------------------------------------------ bounds


def one_bound(theirs: Callable[..., float], counts: Sequence[int], repeats: int) -> tuple:
    """Measure a single bound."""
    v, r, n = (x // 1000 for x in counts) if is_small() and counts[1] > 10**5 else counts
    plain = seconds(lambda: theirs(v, r, DELTA, n), repeats)
    return plain, seconds(lambda: oralib.epsilon_lower_bound(v, r, delta=DELTA, n=n), 20 * repeats)


def ten_thousand() -> tuple[np.ndarray, np.ndarray]:
    """Random counts: right guesses, and guesses."""
    rng = np.random.default_rng(0)
    r = rng.integers(1, 500 if is_small() else 5001, size=10_000)
    return np.round(r * rng.uniform(0.5, 1, size=10_000)).astype(int), r


def many_bounds(theirs: Callable[..., float], quantiles: Sequence[float]) -> tuple:
    """Measure many bounds, per count; theirs on some of them, at quantiles of the right guesses."""
    v, r = ten_thousand()
    fast = seconds(lambda: oralib.epsilon_lower_bound(v, r, delta=DELTA, n=5000), 3) / v.size
    chosen = np.argsort(v)[[int(x * v.size) for x in quantiles]]

    def some() -> None:
        for i in chosen.tolist():
            theirs(int(v[i]), int(r[i]), DELTA, 5000)

    return seconds(some, 1) / len(quantiles), fast


def loops(v: int, r: int, delta: float, n: int) -> float:
    """The bound by a loop over its terms."""
    return reference.epsilon_lower_bound(v, r, delta, n, p_value=reference.p_value_loop)


def fdp_bound() -> tuple:
    """Measure a single f-DP bound."""
    plain = seconds(lambda: reference.epsilon_lower_bound_fdp(700, 1000, 5000, DELTA), 20)
    fast = seconds(lambda: oralib.bounds.Gaussian().lower_bound(700, 1000, n=5000, delta=DELTA), 50)
    return plain, fast


def many_fdp_bounds() -> tuple:
    """Measure 1000 f-DP bounds, per count; theirs on the first 50 of them."""
    rng = np.random.default_rng(0)
    r = rng.integers(100, 5001, size=50 if is_small() else 1000)
    v = np.round(r * rng.uniform(0.5, 1, size=r.size)).astype(int)

    def some() -> None:
        for x, y in zip(v[:50].tolist(), r[:50].tolist(), strict=True):
            reference.epsilon_lower_bound_fdp(x, y, 5000, DELTA)

    fast = seconds(lambda: oralib.bounds.Gaussian().lower_bound(v, r, n=5000, delta=DELTA), 3)
    return seconds(some, 2) / 50, fast / r.size


def one_by_one() -> tuple:
    """Measure many bounds of ours, per count: 200 of them one by one, and all at once."""
    v, r = ten_thousand()
    fast = seconds(lambda: oralib.epsilon_lower_bound(v, r, delta=DELTA, n=5000), 3) / v.size

    def some() -> None:
        for x, y in zip(v[:200].tolist(), r[:200].tolist(), strict=True):
            oralib.epsilon_lower_bound(x, y, delta=DELTA, n=5000)

    return seconds(some, 2) / 200, fast


def worst_case(theirs: Callable[..., float], repeats: int) -> tuple:
    """Measure the worst case of full feedback."""
    n = 100 if is_small() else 1000
    plain = seconds(lambda: theirs(1.0, n, 0.05), repeats)
    return plain, seconds(lambda: oralib.adaptive_failure_probability(1.0, n, 0.05), 10)


# ------------------------------------------------------------------------------------------ audits


def trial(theirs: Callable[..., object], trials: int, play: Callable[..., object]) -> tuple:
    """Measure audits of DP-SGD, per audit."""
    plain = seconds(lambda: theirs(POINT, 100, trials, 1), 3) / trials
    return plain, seconds(lambda: play(POINT, 100, trials=512, seed=1), 5) / 512


def hopping() -> tuple:
    """Measure audits with canaries that hop, per audit."""
    point = oralib.DpSgd(n=32_000, sigma=2.422402)
    plain = seconds(lambda: reference.simulate_hopping(point, 300, 2, 1), 2) / 2
    return plain, seconds(lambda: oralib.simulate_hopping(point, 300, trials=64, seed=1), 3) / 64


def threads() -> tuple:
    """Measure audits by two processes of one thread, and by two threads of one process, in turn."""
    trials = 512 if is_small() else 12_800
    times = []
    play = partial(oralib.simulate_dpsgd, POINT, 100, seed=1)
    all_threads = numba.get_num_threads()
    with ProcessPoolExecutor(2, get_context("spawn"), numba.set_num_threads, (1,)) as pool:

        def by_processes(trials: int) -> None:
            for half in [pool.submit(play, trials=trials // 2) for _ in range(2)]:
                half.result()

        by_processes(512)  # they start, and load their kernels
        numba.set_num_threads(1)
        by_one_thread = play(trials=512).v
        numba.set_num_threads(min(2, all_threads))
        if not np.array_equal(by_one_thread, play(trials=512).v):
            raise RuntimeError("the number of threads has changed the numbers")
        for _ in range(1 if is_small() else 5):
            plain = seconds(lambda: by_processes(trials), 1)
            times.append((plain, seconds(lambda: play(trials=trials), 1)))
    numba.set_num_threads(all_threads)
    plain, fast = np.min(times, axis=0) / trials
    return float(plain), float(fast)


# ------------------------------------------------------------------------------------- other tools


def calibration() -> tuple:
    """Measure dp-accounting's calibration with all its orders, and ours, which uses it."""
    plain = seconds(lambda: reference.noise_multiplier(2.0, 1e-5, 100, 0.1), 2)

    def fast() -> float:
        accounting._noise_multiplier.cache_clear()
        accounting._spent.cache_clear()
        return oralib.noise_multiplier(2.0, 1e-5, 100, 0.1)

    return plain, seconds(fast, 2)


def command(*arguments: str) -> None:
    """Run Python with these arguments."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def processor_seconds(script: str) -> float:
    """Measure a new process, in seconds of the processor; it finds no machine code of ours."""
    measure = "import resource; used = resource.getrusage(resource.RUSAGE_SELF)"
    code = f"{script}\n{measure}\nprint(used.ru_utime + used.ru_stime)"
    with TemporaryDirectory() as empty:
        env = {**os.environ, "NUMBA_CACHE_DIR": empty}
        line = [sys.executable, "-c", code]
        return float(subprocess.check_output(line, env=env, text=True))


def processes(*scripts: str) -> tuple:
    """Measure new processes in turn, and take the best of several of each."""
    rounds = [[processor_seconds(script) for script in scripts] for _ in range(_rounds())]
    return tuple(np.min(rounds, axis=0).tolist())


def _rounds() -> int:
    """The number of rounds in which processes take turns."""
    return 1 if is_small() else 5


def imports() -> tuple:
    """Measure imports."""
    return processes("import scipy.stats", "import oralib")


#: A bound by the quantile of a beta distribution, without oralib.
_QUANTILE = """import scipy.stats, scipy.special
scipy.special.logit(scipy.stats.beta.ppf(0.05, 160, 51))"""


def first_bound() -> tuple:
    """Measure the first bound of a new process."""
    return processes(_QUANTILE, "import oralib\noralib.epsilon_lower_bound(160, 210)")


def small_run() -> tuple:
    """Measure a chapter that does nothing: executed, recorded, and made into a page."""
    with TemporaryDirectory() as folder:
        cell = nbformat.v4.new_code_cell("x: int = 1  # x", metadata={"tags": ["parameters"]})
        last = nbformat.v4.new_code_cell("from orabook import results\nresults.record(x=x)")
        path = str(Path(folder) / "small.ipynb")
        out = str(Path(folder) / "out.ipynb")
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(
            nbformat.v4.new_notebook(cells=[cell, last], metadata={"kernelspec": kernel}), path
        )

        def plain() -> None:
            command("-m", "papermill", path, out)
            command("-m", "nbconvert", "--to", "html", out)

        run = ("-m", "orabook", "run", path, "--out", str(Path(folder) / "run"), "--force")
        return seconds(plain, 2), seconds(lambda: command(*run), 2)


# ------------------------------------------------------------------------------------------ tables

#: Right guesses, guesses and elements of a common audit, and of a large one.
COUNTS = (75, 100, 1000)
LARGE = (7 * 10**5, 10**6, 10**6)

#: The quantiles of the right guesses at which a slow bound is measured, in place of all counts.
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)

#: Tasks against the same algorithm, as a researcher would write it with NumPy and SciPy.
SAME = (
    # A single count is computed in plain Python here, too, so that it waits for no compiler.
    Row(
        "(ε, δ) bound of 75 right of 100 guesses, 1000 elements",
        "the same steps of Newton's method, tails by `bdtrc`",
        1,
        lambda: one_bound(reference.epsilon_lower_bound_twin, COUNTS, 20),
    ),
    Row(
        "(ε, δ) bound of 700,000 right of a million guesses",
        "the same steps of Newton's method, tails by `bdtrc`",
        0.2,
        lambda: one_bound(reference.epsilon_lower_bound_twin, LARGE, 10),
    ),
    Row(
        "each of 10,000 (ε, δ) bounds",
        "the same steps of Newton's method, tails by `bdtrc`, one by one",
        15,
        lambda: many_bounds(reference.epsilon_lower_bound_twin, QUANTILES),
    ),
    # For one count ours is plain Python and a solver of SciPy for many, so it is slower; for a
    # thousand it is 2.5 to 3.5 times as fast, by processor.
    Row(
        "f-DP bound of 700 right of 1000 guesses, 5000 elements",
        "the same recursion, μ and ε by `brentq`",
        0.1,
        fdp_bound,
    ),
    Row("each of 1000 f-DP bounds", "the same recursion, one by one", 2, many_fdp_bounds),
    Row(
        "worst case of full feedback, 1000 elements",
        "the same walk, an array operation of NumPy a step, and the counts by `binom.isf`",
        20,
        lambda: worst_case(reference.adaptive_failure_probability_twin, 5),
    ),
    Row(
        "audit of DP-SGD, 8000 elements, by the law of its sums",
        "the same law in NumPy, arrays of 100 trials",
        3,
        lambda: trial(reference.simulate_sums, 100, oralib.simulate_dpsgd),
    ),
    # Both draw a number for each element and step: a compiler does not help more.
    Row(
        "the same, step by step",
        "an array operation of NumPy for each batch",
        6,
        lambda: trial(reference.simulate_dpsgd, 10, simulate_training),
    ),
    Row(
        "audit of DP-SGD, 32,000 elements that hop",
        "array operations in each step",
        20,
        hopping,
    ),
)

#: Tasks against code that is correct and simple, and does more work than it must.
NAIVE = (
    Row(
        "(ε, δ) bound of 75 right of 100 guesses",
        "all windows at once, `brentq`",
        2,
        lambda: one_bound(reference.epsilon_lower_bound_brentq, COUNTS, 20),
    ),
    Row(
        "(ε, δ) bound of 75 right of 100 guesses, by 40 bisections",
        "all windows at once, 40 bisections",
        5,
        lambda: one_bound(reference.epsilon_lower_bound, COUNTS, 5),
    ),
    Row(
        "(ε, δ) bound of 700,000 right of a million guesses, all windows",
        "all windows at once, `brentq`",
        50,
        lambda: one_bound(reference.epsilon_lower_bound_brentq, LARGE, 1),
    ),
    Row(
        "each of 10,000 (ε, δ) bounds, all windows",
        "all windows at once, `brentq`, one by one",
        50,
        lambda: many_bounds(reference.epsilon_lower_bound_brentq, QUANTILES),
    ),
    Row(
        "each of 10,000 (ε, δ) bounds, by a loop over its terms",
        "a loop over all windows, 40 bisections, one by one",
        200,
        lambda: many_bounds(loops, (0.1, 0.5)),
    ),
    Row(
        "worst case of full feedback, 1000 elements, all tails",
        "all tails at each step of the walk, nothing cut off",
        200,
        lambda: worst_case(reference.adaptive_failure_probability, 2),
    ),
    Row(
        "audit of DP-SGD, 8000 elements, drawing each batch",
        "drawing each batch; ours draws from the law of the sums",
        100,
        lambda: trial(reference.simulate_dpsgd, 10, oralib.simulate_dpsgd),
    ),
)

#: Tasks against other tools. Where we use them, and do more, the aim is not to be much slower.
TOOLS = (
    Row("import, processor time", "`import scipy.stats`", 1.2, imports),
    Row(
        "first bound of a new process, 160 right of 210, processor time",
        "`import scipy.stats`, and the same bound by `beta.ppf`",
        1 / 1.5,
        first_bound,
    ),
    Row("each of 10,000 (ε, δ) bounds, at once", "ours, one by one", 10, one_by_one),
    Row("noise multiplier", "dp-accounting's calibration with all its orders", 2.5, calibration),
    # Ours checks parameters, records where its numbers are from, and typesets the page as the book,
    # of which Sphinx takes half the time. No more than twice as long is enough.
    Row("run of a small chapter", "papermill, then nbconvert", 0.5, small_run),
    # How much a second core is worth differs between machines, but not between the two.
    Row("audit of DP-SGD, 8000 elements, by two threads", "ours, by two processes", 0.85, threads),
)

TABLES = (
    ("The same algorithm in NumPy and SciPy", SAME),
    ("Another, simpler algorithm in NumPy and SciPy", NAIVE),
    ("Other tools, and other ways to use ours", TOOLS),
)

#: Measurements that take seconds even once, and have no small size.
SLOW = (small_run,)


def measured(rows: Sequence[Row]) -> list[tuple[Row, float, float]]:
    """Measure tasks: each with the seconds of the other code, and of ours."""
    if is_small():
        rows = [row for row in rows if row.measure not in SLOW]
    return [(row, *row.measure()) for row in tqdm(rows, disable=None, leave=False)]


def alone() -> Iterator[tuple[str, float, float]]:
    """Measure tasks with nothing to compare: name, seconds of a process, and its memory in GiB."""
    n = 10**4 if is_small() else 10**8
    point = f"oralib.DpSgd({n}, d={n // 100}, sigma=2.422402)"
    audit = f"import oralib; oralib.simulate_dpsgd({point}, 100, trials=2, seed=1)"
    yield f"two audits of DP-SGD with {n:,} elements", *_process("-c", audit)
    for n in (1000,) if is_small() else (10**6,):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "scores.csv"
            rng = np.random.default_rng(0)
            included = rng.random(n) < 0.5
            scores = rng.normal(size=n) + 0.1 * included
            lines = (f"{x!r},{coin:d}\n" for x, coin in zip(scores.tolist(), included, strict=True))
            with path.open("w") as file:
                file.write("score,included\n")
                file.writelines(lines)
            arguments = ("-m", "oraudit", "scores", str(path), "--training", "0.993727,0.1,100")
            yield f"`oraudit scores` of a CSV file with {n:,} scores", *_process(*arguments)


#: Run by a small process, since a child's memory begins with that of its parent.
_WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _process(*arguments: str) -> tuple[float, float]:
    """Measure Python with these arguments: seconds, and the largest memory in GiB."""
    watch = [sys.executable, "-c", _WATCH, *arguments]
    duration, memory = subprocess.check_output(watch, text=True).split()
    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return float(duration), int(memory) * unit_bytes / 2**30


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compared(rows: Sequence[tuple[Row, float, float]]) -> str:
    """The table of measured tasks."""
    cells = [
        (row.task, row.other, time(plain), time(fast), two_digits(plain / fast))
        for row, plain, fast in rows
    ]
    return table(("task", "compared with", "its time", "oralib", "ratio"), cells)


def machine() -> str:
    """The machine and its packages, without names and dates."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "pandas")
    )
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, {packages}"
    )


def main() -> None:
    """Measure all tasks, print their tables, and write them into the book."""
    logging.getLogger("absl").setLevel(logging.ERROR)  # the accountant names orders that it omits
    # Warm up: compile or load every kernel.
    oralib.epsilon_lower_bound([6, 7], 8, delta=DELTA, n=8)
    oralib.bounds.Gaussian().lower_bound([6, 7], 8, delta=DELTA, n=8)
    oralib.adaptive_failure_probability(1.0, 10)
    oralib.simulate_dpsgd(POINT, 100, trials=64, seed=1)
    simulate_training(POINT, 100, trials=64, seed=1)
    oralib.simulate_hopping(POINT, 100, trials=2, seed=1)
    parts: list[str] = []
    missed: list[str] = []

    def say(part: str) -> None:
        print(part, end="\n\n", flush=True)
        parts.append(part)

    say(f"Measured on: {machine()}.")
    for title, rows in TABLES:
        results = measured(rows)
        say(f"### {title}")
        say(compared(results))
        for row, plain, fast in results:
            if plain / fast < row.aim:
                missed.append(f"missed: {row.task}, {plain / fast:.2f} instead of {row.aim:g}")
    of_peers = [] if is_small() else list(peers.compared(seconds))
    if of_peers:
        say("### Bounds of other packages, from the same counts")
        head = ("bound", "counts", "package", "it takes", "oralib", "ratio", "largest difference")
        say(table(head, of_peers))
    say("### Large tasks, with the start of Python, and nothing to compare with")
    cells = [(task, time(duration), f"{two_digits(gib)} GiB") for task, duration, gib in alone()]
    say(table(("task", "time", "memory at most"), cells))
    if not is_small():
        PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print("\n".join(missed))


if __name__ == "__main__":
    main()
