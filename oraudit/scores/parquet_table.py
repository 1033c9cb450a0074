"""Tables in Parquet, if pyarrow is there."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from oraudit.scores import limits
from oraudit.scores.names import KNOWN, checked
from oraudit.scores.rows import Rows
from oraudit.scores.unusable import UnusableFile, one_line

__all__ = ["read_parquet"]

#: The number of rows that are read at a time.
_BATCH = 1_000


def read_parquet(path: Path, content: bytes) -> Rows:
    """Read the columns of a Parquet file that are known, a part of its rows at a time."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise UnusableFile(
            f"{path} is a Parquet file, which needs a package: pip install pyarrow"
        ) from None

    def from_arrow(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # it raises errors of many kinds
            raise UnusableFile(
                f"{path} is not a readable Parquet file: {one_line(error)}"
            ) from None

    file = from_arrow(lambda: parquet.ParquetFile(BytesIO(content)))
    metadata = file.metadata
    if metadata.num_rows > limits.MOST_ROWS:
        raise UnusableFile(
            f"{path} has more than {limits.MOST_ROWS:,} canaries, the most that are read"
        )
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if size > limits.MOST_BYTES:
        raise UnusableFile(
            f"{path} unpacks to more than {limits.MOST_BYTES:,} bytes, the most that are read"
        )
    written = from_arrow(lambda: list(file.schema_arrow.names))
    names = checked(path, written)
    columns = [name for name, lower in zip(written, names, strict=True) if lower in KNOWN]
    rows = Rows(path, [name.strip().lower() for name in columns], "row")
    number = 0
    batches = from_arrow(lambda: file.iter_batches(batch_size=_BATCH, columns=columns))
    while True:
        batch = from_arrow(lambda: next(batches, None))
        if batch is None:
            return rows
        for cells in zip(*from_arrow(batch.to_pydict).values(), strict=True):
            number += 1
            rows.add(number, ["" if cell is None else str(cell) for cell in cells])
