"""The one decorator of every compiled kernel, and a kernel cache that is never stale."""

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba

#: Compile a kernel on its first call.
#:
#: - ``cache=True``: a new process loads the machine code instead of compiling for seconds.
#: - ``nogil=True``: blocks of trials run on several cores from plain Python threads.
#: - ``error_model="numpy"``: a division by zero is inf or nan, as in the formulas, no exception.
#:
#: ``fastmath`` stays off: kernels rely on infinities and on the order of additions.
jit: Any = partial(numba.njit, cache=True, nogil=True, error_model="numpy")


def _forget_stale_kernels(package: Path) -> None:
    """Delete cached machine code if any source file of the package has changed.

    Numba looks only at the file that defines a kernel, not at the files of the kernels it calls,
    and would go on using the old code of the latter.
    """
    cache = package / "__pycache__"
    stamp = cache / "kernels.sha256"
    digest = sha256(
        b"".join(source.read_bytes() for source in sorted(package.glob("*.py")))
    ).hexdigest()
    try:
        if not stamp.exists() or stamp.read_text() != digest:
            for compiled in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
                compiled.unlink(missing_ok=True)
            cache.mkdir(exist_ok=True)
            stamp.write_text(digest)
    except OSError:
        pass  # an unwritable installation: its sources do not change, and Numba caches elsewhere


_forget_stale_kernels(Path(__file__).parent)
