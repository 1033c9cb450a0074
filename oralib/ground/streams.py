"""Random streams keyed by what they are for, and trials played on all cores.

A stream depends on the seed and on its key alone: not on the number of threads, not on the other
points of a grid, not on the order of calls.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
from tqdm import tqdm

from oralib.ground import arguments
from oralib.ground.types import Array

__all__ = ["BLOCK", "play", "stream"]

#: Trials that share one stream: few enough to keep every core busy, enough to pay for a stream.
BLOCK = 32

#: Seconds after which :func:`play` shows its progress on a terminal.
_SILENCE = 2


def stream(seed: int, *key: object) -> np.random.Generator:
    """Return the random stream of a seed and a key: ``stream(7, "one-run", n, mechanism)``."""
    digest = sha256("|".join([str(seed), *map(_name, key)]).encode()).digest()
    return np.random.Generator(np.random.SFC64(np.frombuffer(digest, dtype="<u4")))


def _name(part: object) -> str:
    """Return the name of a part of a key: its repr, or its class if the repr has an address."""
    name = repr(str(part) if isinstance(part, str) else part)  # as str also NumPy's strings
    kind = type(part)
    return f"{kind.__module__}.{kind.__qualname__}" if " at 0x" in name else name


def play(
    block: Callable[[int, np.random.Generator], tuple[Array, ...]],
    trials: int,
    seed: int,
    *key: object,
    largest: int = BLOCK,
    single_thread: bool = False,
) -> tuple[Array, ...]:
    """Play independent trials in blocks, on as many threads as Numba is set to use, or on one.

    ``block(size, stream)`` plays ``size`` trials, at most ``largest``, and returns arrays of that
    length. They are joined in order: the first trials are the same however many are requested.
    """
    import numba  # here, because it is slow to import

    trials = arguments.integer("trials", trials, 1, 10**8)
    seed = arguments.seed(seed)
    sizes = [min(largest, trials - start) for start in range(0, trials, largest)]
    streams = (stream(seed, *key, index) for index in range(len(sizes)))
    # Never in the thread of the caller: Ctrl-C there would wait for the end of a kernel, and Numba
    # would turn it into a SystemError.
    threads = 1 if single_thread else min(numba.get_num_threads(), len(sizes))
    pool = ThreadPoolExecutor(threads)
    parts: list[Any] = []
    try:
        tasks = zip(sizes, streams, strict=True)
        waiting = deque(pool.submit(block, *task) for task in islice(tasks, 4 * threads))
        with tqdm(total=trials, unit="trial", disable=None, leave=False, delay=_SILENCE) as bar:
            while waiting:
                first = waiting.popleft()
                while not wait([first], timeout=_SILENCE).done:
                    bar.refresh()
                parts.append(first.result())
                bar.update(sizes[len(parts) - 1])
                # Queue only as many blocks as keep all threads busy.
                waiting.extend(pool.submit(block, *task) for task in islice(tasks, 1))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
