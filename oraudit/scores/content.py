"""The bytes of a file of scores, unpacked; other kinds of files are refused by their beginnings."""

import gzip
import stat
import zlib
from io import BytesIO
from pathlib import Path

from oraudit.scores import limits
from oraudit.scores.unusable import AS_CSV, UnusableFile, one_line

__all__ = ["bytes_of", "unpacked"]

_GZIP = b"\x1f\x8b"

#: The kinds of files that are refused, by their beginnings.
_OTHER_KINDS = {
    b"PK\x03\x04": "an Excel or zip file",
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80\x02": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x03": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x04": "a pickle, which is never read, as that runs what is in it",
    b"\x80\x05": "a pickle, which is never read, as that runs what is in it",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"{": "a JSON file",
    b"[": "a JSON file",
}


def bytes_of(path: Path) -> bytes:
    """Return the bytes of an ordinary file that is not too large."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnusableFile(f"{path} is a folder; give a file")
        if not stat.S_ISREG(mode):  # reading a named pipe or a device may never end
            raise UnusableFile(f"{path} is a pipe or a device; give an ordinary file")
        with path.open("rb") as file:
            content = file.read(limits.MOST_BYTES + 1)
    except OSError as error:
        raise UnusableFile(f"{path} cannot be read: {error.strerror or error}") from None
    except UnusableFile:
        raise
    except ValueError as error:  # a null byte in the path
        raise UnusableFile(f"{path} cannot be read: {error}") from None
    if len(content) > limits.MOST_BYTES:
        raise UnusableFile(
            f"{path} has more than {limits.MOST_BYTES:,} bytes, the most that are read"
        )
    return content


def unpacked(path: Path, content: bytes) -> bytes:
    """Return what is in a gzipped file, never more than the limit; or the bytes as they are."""
    if content.startswith(_GZIP):
        try:
            content = gzip.GzipFile(fileobj=BytesIO(content)).read(limits.MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UnusableFile(f"{path} is a damaged gzip file: {one_line(error)}") from None
        if len(content) > limits.MOST_BYTES:
            raise UnusableFile(
                f"{path} unpacks to more than {limits.MOST_BYTES:,} bytes, the most that are read"
            )
        if content.startswith(_GZIP):
            raise UnusableFile(f"{path} is gzipped twice; unpack it once")
    start = content[:100].lstrip()
    for beginning, kind in _OTHER_KINDS.items():
        if start.startswith(beginning):
            raise UnusableFile(f"{path} is {kind}; {AS_CSV}")
    return content
