"""Run cases with their seeds, each in a process that has one thread, and keep what was said."""

import importlib
import importlib.util
import multiprocessing
import os
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from tqdm import tqdm

from .case import Case, Run, Tool

__all__ = ["Job", "can_run", "run", "run_all"]

#: A case by name, the tool and the seed.
Job = tuple[str, Tool, int]

#: The packages that a way needs and whose versions are told.
_PACKAGES = {
    "Opacus": ("opacus", "torch"),
    "PyTorch": ("torch",),
    "JAX": ("jax",),
    "NumPy": ("numpy",),
}


def can_run(case: Case) -> bool:
    """Whether the packages that a case needs are there."""
    return all(importlib.util.find_spec(name) is not None for name in case.needs)


def run(case: Case, tool: Tool, seed: int) -> Run:
    """Run one case with one tool and one seed."""
    began = time.process_time()
    side = ""
    words = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = case.result(tool, seed)
        status = result.status
        if result.findings:
            side = result.findings[0].side
            words = result.findings[0].text
    except Exception as error:
        status = "error"
        words = f"{type(error).__name__}: {error}".partition("\n")[0]
        if os.environ.get("ZOO_TRACEBACK"):
            traceback.print_exc()
    return Run(
        case.name, tool, seed, status, side, words, _versions(case), time.process_time() - began
    )


def run_all(jobs: Sequence[Job], processes: int = 1) -> Iterator[Run]:
    """Run all jobs; what they say comes in the order of the jobs."""
    if processes == 1:
        _one_thread()
        yield from tqdm(map(_run_job, jobs), total=len(jobs), smoothing=0)
        return
    # Processes are spawned, as threads of PyTorch do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_one_thread) as pool:
        yield from tqdm(pool.imap(_run_job, jobs), total=len(jobs), smoothing=0)


def _run_job(job: Job) -> Run:
    from .cases import CASES

    name, tool, seed = job
    (case,) = (case for case in CASES if case.name == name)
    return run(case, tool, seed)


def _one_thread() -> None:
    """Let this process run on one core, whatever was set before it began."""
    import torch

    torch.set_num_threads(1)


def _versions(case: Case) -> str:
    found = []
    for name in _PACKAGES[case.way]:
        try:
            number = version(name)
        except PackageNotFoundError:
            # A folder on the path, which nobody installed.
            number = str(importlib.import_module(name).__version__)
        found.append(f"{name} {number.partition('+')[0]}")
    return ", ".join(found)
