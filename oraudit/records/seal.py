"""The seal of a saved audit: a format, a version and a digest that vouch for what is there.

A checkpoint may be cut short, edited, or of another training. So before anything of it is used, the
digest must be that of what is there.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from oraudit.records.values import check_fields, damaged, whole

__all__ = ["VERSION", "Digest", "digest_of", "opened", "sealed"]

#: The version of the saved format, raised by whoever changes what is saved.
VERSION = 1


def sealed(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of an audit of some kind, with what vouches for it."""
    content = _plain(content)
    return {
        "format": _format(kind),
        "version": VERSION,
        "digest": digest_of(content),
        "content": content,
    }


def _plain(value: Any) -> Any:
    """Return a value with Python's numbers for NumPy's, which other formats save as arrays."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def opened(kind: str, state: Any) -> dict[str, Any]:
    """Return the content of a state; raise ValueError if it does not vouch for it."""
    check_fields("the state", state, ("format", "version", "digest", "content"))
    if not isinstance(state["format"], str) or state["format"] != _format(kind):
        raise damaged("format", f"{_format(kind)!r}", state["format"])
    version = whole("version", state["version"], 0)
    if version != VERSION:
        raise ValueError(
            f"the saved audit has version {version}; this oraudit reads version {VERSION} only"
        )
    if not isinstance(state["content"], Mapping):
        raise damaged("content", "a dictionary", state["content"])
    digest = digest_of(state["content"])
    if not isinstance(state["digest"], str) or state["digest"] != digest:
        raise damaged("digest", f"that of its content, {digest[:12]}...", state["digest"])
    return dict(state["content"])


def _format(kind: str) -> str:
    return f"oraudit {kind}"


def digest_of(content: Any) -> str:
    """Return the SHA-256 of lists, dictionaries, words, numbers and arrays, whatever saves them."""
    digest = Digest()
    try:
        digest.add(content)
    except RecursionError:
        raise ValueError("the saved audit is damaged: it is nested without end") from None
    return digest.hex()


class Digest:
    """Adds up values so that no two of them read alike."""

    def __init__(self) -> None:
        self._sum = sha256()

    def hex(self) -> str:
        return self._sum.hexdigest()

    def _say(self, kind: str, content: bytes) -> None:
        self._sum.update(f"{kind}{len(content)}:".encode())
        self._sum.update(content)

    def add(self, value: Any) -> None:
        """Add a value and all that is in it."""
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value)
            if array.dtype.kind not in "biuf":
                raise damaged("an array", "of numbers", array.dtype)
            self._say("array", f"{array.dtype.str}{np.shape(value)}".encode())
            self._say("bytes", array.tobytes())
        elif isinstance(value, Mapping):
            self._say("keys", str(len(value)).encode())
            for key in sorted(value, key=repr):
                if not isinstance(key, str | int):
                    raise damaged("each key", "a word or a number", key)
                self.add(key)
                self.add(value[key])
        elif isinstance(value, list | tuple):
            self._say("list", str(len(value)).encode())
            for part in value:
                self.add(part)
        elif isinstance(value, str):
            self._say("word", value.encode(errors="surrogatepass"))
        elif value is None or isinstance(value, bool):
            self._say("truth", str(value).encode())
        elif isinstance(value, int):
            self._say("whole", hex(value).encode())
        elif isinstance(value, float):
            self._say("real", value.hex().encode())
        else:
            raise damaged("each part", "a list, a dictionary, a word, a number or an array", value)
