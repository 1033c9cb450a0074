"""Files of scores or guesses from strangers: every cell is understood, or an error says why not.

A file is CSV in UTF-8 with cells between commas, semicolons or tabs, gzipped or not; or Parquet.
Columns are found by their names, in any order: ``score`` and ``included``, or ``guess`` and
``truth``, and ``id`` if there is one, in which no name may occur twice. Others are ignored. Nothing
of a file is ever run, and limits hold before memory is taken: a file of a hostile stranger costs
seconds, not the machine.
"""

from hashlib import sha256
from pathlib import Path

from oraudit.scores.content import bytes_of, unpacked
from oraudit.scores.csv_table import read_csv
from oraudit.scores.parquet_table import read_parquet
from oraudit.scores.rows import ScoreFile
from oraudit.scores.unusable import UnusableFile

__all__ = ["ScoreFile", "UnusableFile", "read_scores"]

_PARQUET = b"PAR1"


def read_scores(path: Path) -> ScoreFile:
    """Read the scores or guesses in a file; raise :class:`UnusableFile` with what is wrong."""
    content = bytes_of(path)
    digest = sha256(content).hexdigest()
    content = unpacked(path, content)
    read = read_parquet if content.startswith(_PARQUET) else read_csv
    return read(path, content).finished(digest)
