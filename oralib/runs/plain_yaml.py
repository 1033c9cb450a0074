"""YAML without its traps: what is read is what a reader sees.

Aliases, keys that are given twice or are no words, tags, deep nesting and large files are refused.
So is a value that YAML reads in a way of its own: ``010`` (eight), ``1:30`` (ninety), ``yes``
(true), ``2020-01-01`` (a date). Every error names the line and the key.
"""

import re
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

#: Grids are small: one of 10,000 points has some 500 kB.
LARGEST_FILE = 1_000_000

#: Grids are flat: key, parameter, list, and a list in it.
DEEPEST = 8

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf")
_EXPONENT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}


def read_yaml(path: Path) -> Any:
    """The content of a file: dictionaries with words as keys, lists, numbers, words, true, false.

    A number such as ``1e4`` or ``5e-4``, which YAML takes for a word, is a number.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} must be a file")
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise ValueError(f"{path} must have at most {LARGEST_FILE:,} bytes")
    try:
        loader = _Loader(data.decode("utf-8-sig"))
        node = loader.get_single_node()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path} is not a text in UTF-8 (line {line})") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not a YAML file: {' '.join(str(error).split())}") from None
    except (OverflowError, ValueError) as error:  # of signs that there are not
        raise ValueError(f"{path} is not a YAML file: {error}") from None
    except _Refused as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        return None if node is None else _content(node, "")
    except _Refused as error:
        raise ValueError(f"{path}: {error}") from None


class _Refused(Exception):
    """YAML, but not of the plain kind."""

    def __init__(self, mark: Any, key: str, text: str) -> None:
        place = f"line {mark.line + 1}" + (f", {key}" if key else "")
        super().__init__(" ".join(f"{place}: {text}".split()))


class _Loader(yaml.SafeLoader):
    """Makes a tree of nodes, and nothing of them."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._keys: list[str] = []

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse what would have to be expanded, before anything is."""
        event = self.peek_event()
        word = index.value if isinstance(index, yaml.ScalarNode) else ""
        self._keys.append(word)
        try:
            key = _joined(self._keys)
            if isinstance(event, yaml.AliasEvent):
                text = f"*{event.anchor} is an alias, which a grid cannot have; write it out"
                raise _Refused(event.start_mark, key, text)
            if len(self._keys) > DEEPEST:
                text = f"there are more than {DEEPEST} levels, which a grid cannot have"
                raise _Refused(event.start_mark, key, text)
            return super().compose_node(parent, index)
        finally:
            self._keys.pop()


def _joined(keys: list[str]) -> str:
    return ": ".join(key for key in keys if key)


def _content(node: Any, key: str) -> Any:
    """What a node stands for; ``key`` is the way to it."""
    kind = node.tag.removeprefix(_PREFIX)
    if isinstance(node, yaml.MappingNode) and kind == "map":
        return _mapping(node, key)
    if isinstance(node, yaml.SequenceNode) and kind == "seq":
        return [_content(entry, key) for entry in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, kind, key)
    raise _Refused(node.start_mark, key, f"{node.tag} is a tag, which a grid cannot have")


def _mapping(node: Any, key: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for name, value in node.value:
        if not isinstance(name, yaml.ScalarNode) or name.tag != f"{_PREFIX}str":
            shown = name.value if isinstance(name, yaml.ScalarNode) else "a list or mapping"
            raise _Refused(name.start_mark, key, f"a key must be a word, got {shown}")
        word = name.value
        if word in content:
            text = f"{word} is given twice, first in line {lines[word]}"
            raise _Refused(name.start_mark, key, text)
        lines[word] = name.start_mark.line + 1
        content[word] = _content(value, _joined([key, word]))
    return content


def _scalar(node: Any, kind: str, key: str) -> Any:
    """A value that means what it looks like."""
    text = node.value
    if kind == "str":
        bare = node.style is None and _EXPONENT.fullmatch(text) is not None
        return float(text) if bare and isfinite(float(text)) else text
    if kind == "null":
        return None
    if kind == "bool" and text in _BOOLEANS:
        return _BOOLEANS[text]
    try:
        if kind == "int" and _INTEGER.fullmatch(text):
            return int(text)
        if kind == "float" and _FLOAT.fullmatch(text):
            return float(text.replace(".inf", "inf"))
    except ValueError:  # an integer of more than 4300 digits
        raise _Refused(node.start_mark, key, f"{text[:20]}... has too many digits") from None
    if kind in ("int", "float", "bool", "timestamp"):
        meaning = {"bool": "true or false", "timestamp": "a date"}.get(kind, "another number")
        said = f'{text} is read by YAML as {meaning}; write it plainly, or "{text}" for a word'
        raise _Refused(node.start_mark, key, said)
    raise _Refused(node.start_mark, key, f"{text} has a tag or is a sign that a grid cannot have")
