"""The limits of files of scores, which hold before memory is taken."""

__all__ = ["LONGEST_CELL", "LONGEST_LINE", "MOST_BYTES", "MOST_COLUMNS", "MOST_ROWS"]

#: The largest file, and the most that a gzipped or Parquet file may unpack to, in bytes.
MOST_BYTES = 128 * 2**20

#: The largest number of canaries. A training with one on each weight has some hundred thousand.
MOST_ROWS = 2_000_000

#: The largest number of columns.
MOST_COLUMNS = 1_000

#: The longest line of a CSV file, in characters.
LONGEST_LINE = 100_000

#: The longest number or name of a canary, in characters.
LONGEST_CELL = 1_000
