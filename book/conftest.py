"""Chapters with real trainings are compared with their outputs only where PyTorch is installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import committed

collect_ignore = (
    [path.name for path in committed.BOOK.glob("*.ipynb") if committed.needs_torch(path)]
    if committed.is_missing()
    else []
)
