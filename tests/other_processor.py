"""Some chapters as another processor would compute them: ``make other-processor``.

Processors differ in the order in which they add, and so in the last bits. Here BLAS and NumPy take
the code for the oldest processors, Numba compiles for any, and one thread plays all games. The
chapters must show what was committed.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy._core._multiarray_umath as umath

ROOT = Path(__file__).parent.parent
CHAPTERS = (
    "03-problem-setting",
    "04-the-gaps",
    "05-efficacy",
    "B-gaps-in-detail",
    "09-exact-bound",
)


def main() -> int:
    on_arm = platform.machine().lower() in ("aarch64", "arm64")
    dispatched = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    other = {
        "OPENBLAS_CORETYPE": "ARMV8" if on_arm else "PRESCOTT",
        "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(ROOT / "_build" / "other-processor"),
        "NUMBA_NUM_THREADS": "1",
    }
    print(*(f"{name}={value!r}" for name, value in other.items()), sep="\n", flush=True)
    line = ["pytest", "--nbval", "-q", "--numprocesses", "auto", "--dist", "loadscope"]
    line += ["--nbval-kernel-startup-timeout", "600"]  # everything is compiled, by slow code
    chapters = [str(ROOT / "book" / f"{name}.ipynb") for name in CHAPTERS]
    words = [sys.executable, "-m", *line, *chapters]
    return subprocess.run(words, env={**os.environ, **other}).returncode


if __name__ == "__main__":
    sys.exit(main())
