"""The report as a file for machines, which vouches for itself.

It has the format's version and a digest of all the rest, so that a file that was cut, damaged or
edited is refused, as is one whose parts contradict each other. A digest is no signature: whoever
makes a file anew can make its digest, too.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oraudit.canaries.counted import Counted
from oraudit.findings import FAILED, PASSED, Finding, Status
from oraudit.report.facts import Facts, Number, Row
from oraudit.report.plain import NotPlain, as_plain, from_plain
from oraudit.report.result import EXIT, Result

__all__ = ["FORMAT", "VERSION", "digest", "read", "read_text", "written"]

FORMAT = "oraudit report"

#: Of the format; what is added to it, or means something else, is a new version.
VERSION = 1

#: The largest file that is read, in bytes.
LARGEST = 8_000_000

#: The parts of a file, with their types.
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


def written(result: Result) -> str:
    """The text of the file."""
    facts = result.facts
    said = {
        "exit": result.exit,
        "tone": facts.tone,
        "findings": result.findings,
        "counts": result.counts,
        "text": facts.text,
    }
    parts = {name: as_plain(said.get(name, getattr(facts, name, None))) for name in _PARTS}
    document = {"format": FORMAT, "version": VERSION, **parts}
    document["digest"] = digest(document)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def digest(document: dict[str, Any]) -> str:
    rest = {name: part for name, part in document.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


# ------------------------------------------------------------------------------------------- read


def read(path: Path) -> Result:
    """The result in a folder or a file; ValueError with one line if it is not what was written."""
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


def read_text(text: str) -> Result:
    """The result in the text of a file."""
    return _result(_document(text))


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
        odd = ", ".join(sorted(set(document) ^ expected))
        raise NotPlain(f"it lacks, or should not have, {odd[:60]}")
    if document["digest"] != digest(document):
        raise NotPlain("its digest is of another content: it was changed, or cut")
    return document


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotPlain("a name stands in it twice")
    return found


def _no_constant(word: str) -> Any:
    raise NotPlain(f"{word} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise NotPlain("a whole number is too long")
    return int(digits)


def _result(document: dict[str, Any]) -> Result:
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
    result = Result(facts.status, parts["findings"], facts, parts["counts"])
    same = {"text": facts.text, "tone": facts.tone, "exit": EXIT[facts.status]}
    for name, value in same.items():
        if parts[name] != value:
            raise NotPlain(f"its {name} is not that of its other parts")
    accused = any(finding.status == FAILED for finding in result.findings)
    if facts.status == PASSED and accused:
        raise NotPlain("it has passed with a finding that fails")
    if facts.status == FAILED and not accused:
        raise NotPlain("it has failed without a finding that fails")
    if result.counts is not None:
        _prove(result.counts)
    return result


def _prove(counts: Counted) -> None:
    """Whether counts can be counts at all."""
    _need(counts.canaries >= 1, "canaries")
    _need(0 < counts.beta < 1, "beta")
    bound = counts.bound
    _need(0 <= bound.right <= bound.guesses <= counts.canaries, "right guesses of the bound")
    _need(0 <= bound.epsilon <= bound.largest, "bound")
    _need(0 <= bound.delta < 1, "δ")
    test = counts.test
    if test is None:
        return
    _need(0 <= test.right <= test.guesses <= counts.canaries, "right guesses of the test")
    _need(test.need is None or 0 < test.need <= test.guesses, "number of guesses that refutes")
    enough = test.need is not None and test.right >= test.need
    _need(test.refuted == enough, "verdict of the counts")
    _need(all(0 <= power <= 1 for power in test.power.values()), "power")


def _need(fine: bool, what: str) -> None:
    if not fine:
        raise NotPlain(f"its {what} cannot be")
