"""What all tests share."""

import os
from importlib.util import find_spec

from book._ext import committed

# Chapters with real trainings are compared with their outputs by `make check` alone, and only where
# what they need is there.
collect_ignore = [str(path) for path in committed.chapters()]
if not os.environ.get("ORALIB_REQUIRE_TORCH"):
    collect_ignore += [str(p) for p in committed.BOOK.glob("*.ipynb") if committed.extras(p)]
if find_spec("torch") is None or find_spec("opacus") is None:
    collect_ignore.append("oralib/trainings/_opacus.py")
# It runs in an environment of its own.
collect_ignore.append("book/tf_privacy.py")
