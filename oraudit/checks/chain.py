"""The audit stood on the whole chain, at every step.

Exact: methods of the private optimizer that somebody replaced after the audit was attached, fewer
steps of the optimizer than private ones, and errors of the audit itself. Nothing can be told then.
"""

from oraudit.findings import Finding
from oraudit.records import Seen

__all__ = ["check"]

NAME = "chain"


def check(seen: Seen) -> list[Finding]:
    findings = []
    if replaced := seen.of_kind("replaced"):
        names = ", ".join(dict.fromkeys(event.what for event in replaced))
        text = f"{names} of the optimizer was replaced after the audit was attached"
        findings.append(Finding(NAME, text, "side unknown", undecided=True))
    for event in seen.of_kind("unwatched"):
        text = f"the audit did not see every step: {event.what}"
        findings.append(Finding(NAME, text, "side unknown", step=event.step, undecided=True))
    return findings
