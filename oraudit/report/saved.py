"""The report as a file for machines, with a digest that shows changes.

The file has the format's version and a digest of everything else. A file that was cut, damaged or
edited is refused, and so is a file whose parts contradict each other. A digest is no signature:
whoever makes a new file can make its digest, too.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from oraudit.canaries.counted import Counted
from oraudit.findings import FAILED, PASSED, Finding, Status
from oraudit.report.facts import EXIT, Facts, Number, Row
from oraudit.report.plain import NotPlain, as_plain, from_plain

__all__ = ["FORMAT", "VERSION", "digest", "read", "read_text", "written"]

#: The name of the format, in each file.
FORMAT = "oraudit report"

#: The version of the format, to raise when a part is added or changes its meaning.
VERSION = 1

#: The largest file to read, in bytes.
LARGEST = 8_000_000

#: What is saved of a result.
Saved: TypeAlias = tuple[Facts, tuple[Finding, ...], Counted | None]

#: The types of the parts of a file other than format, version and digest.
_PARTS: dict[str, Any] = {
    "status": Status,
    "exit": int,
    "headline": str,
    "tone": str,
    "rows": tuple[Row, ...],
    "looked": str,
    "findable": str,
    "unlooked": str,
    "estimate": str,
    "card": tuple[tuple[str, str], ...],
    "numbers": tuple[Number, ...],
    "findings": tuple[Finding, ...],
    "counts": Counted | None,
    "text": str,
}


def written(facts: Facts, findings: tuple[Finding, ...], counts: Counted | None) -> str:
    """Return the text of a file."""
    not_in_facts = {"exit": EXIT[facts.status], "findings": findings, "counts": counts}
    parts = {
        name: as_plain(not_in_facts[name] if name in not_in_facts else getattr(facts, name))
        for name in _PARTS
    }
    document = {"format": FORMAT, "version": VERSION, **parts}
    document["digest"] = digest(document)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def digest(document: dict[str, Any]) -> str:
    """Return the digest of a document without its part "digest"."""
    rest = {name: part for name, part in document.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


# ------------------------------------------------------------------------------------------- read


def read(path: Path) -> Saved:
    """Read a folder or a file; raise ValueError with one line unless :func:`written` made it."""
    if path.is_dir():
        path = path / "report.json"
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    try:
        if len(content) > LARGEST:
            raise NotPlain(f"it has more than {LARGEST:,} bytes")
        return read_text(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{path} is not a report that oraudit wrote: {reason}") from None


def read_text(text: str) -> Saved:
    """Read the text of a file; raise NotPlain unless :func:`written` made it."""
    return _checked(_document(text))


def _document(text: str) -> dict[str, Any]:
    document = json.loads(
        text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole
    )
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NotPlain(f"its format is not {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise NotPlain(f"its version is {version!r:.40}; this oraudit reads version {VERSION}")
    expected = {"format", "version", "digest", *_PARTS}
    if set(document) != expected:
        differing = ", ".join(sorted(set(document) ^ expected))
        raise NotPlain(f"it lacks, or should not have, {differing[:60]}")
    if document["digest"] != digest(document):
        raise NotPlain("its digest is of another content: it was changed, or cut")
    return document


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise NotPlain("a name stands in it twice")
    return document


def _no_constant(word: str) -> Any:
    raise NotPlain(f"{word} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise NotPlain("a whole number is too long")
    return int(digits)


def _checked(document: dict[str, Any]) -> Saved:
    """Return the parts of a document; NotPlain if one of them contradicts another."""
    parts = {name: from_plain(kind, document[name], name) for name, kind in _PARTS.items()}
    facts = Facts(
        status=parts["status"],
        headline=parts["headline"],
        rows=parts["rows"],
        looked=parts["looked"],
        findable=parts["findable"],
        unlooked=parts["unlooked"],
        estimate=parts["estimate"],
        card=parts["card"],
        numbers=parts["numbers"],
    )
    computed = {"text": facts.text, "tone": facts.tone, "exit": EXIT[facts.status]}
    for name, value in computed.items():
        if parts[name] != value:
            raise NotPlain(f"its {name} is not that of its other parts")
    findings: tuple[Finding, ...] = parts["findings"]
    accused = any(finding.status == FAILED for finding in findings)
    if facts.status == PASSED and accused:
        raise NotPlain("it has passed with a finding that fails")
    if facts.status == FAILED and not accused:
        raise NotPlain("it has failed without a finding that fails")
    counts: Counted | None = parts["counts"]
    if counts is not None:
        _check_counts(counts)
    return facts, findings, counts


def _check_counts(counts: Counted) -> None:
    """Raise NotPlain for counts that no audit can have."""
    if counts.canaries < 1:
        raise NotPlain("its canaries cannot be")
    if not 0 < counts.beta < 1:
        raise NotPlain("its beta cannot be")
    bound = counts.bound
    if not 0 <= bound.right <= bound.guesses <= counts.canaries:
        raise NotPlain("its right guesses of the bound cannot be")
    if not 0 <= bound.epsilon <= bound.largest:
        raise NotPlain("its bound cannot be")
    if not 0 <= bound.delta < 1:
        raise NotPlain("its δ cannot be")
    test = counts.test
    if test is None:
        return
    if not 0 <= test.right <= test.guesses <= counts.canaries:
        raise NotPlain("its right guesses of the test cannot be")
    if test.need is not None and not 0 < test.need <= test.guesses:
        raise NotPlain("its number of guesses that refutes cannot be")
    refuted = test.need is not None and test.right >= test.need
    if test.refuted != refuted:
        raise NotPlain("its verdict of the counts cannot be")
    if not all(0 <= power <= 1 for power in test.power.values()):
        raise NotPlain("its power cannot be")
