"""The error of a file that cannot be used as evidence."""

__all__ = ["AS_CSV", "UnusableFile", "one_line"]

#: The advice for files that are no UTF-8 text.
AS_CSV = "save it as CSV in UTF-8, with the names of its columns"


class UnusableFile(ValueError):
    """A file that cannot be used as evidence; the message names the file, its line and column."""


def one_line(error: BaseException) -> str:
    """Return the message of somebody else's error in one line, and not too long."""
    return " ".join(str(error).split())[:200]
