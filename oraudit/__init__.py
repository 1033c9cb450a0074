"""Audits of real training runs: is what ran what the accountant was told?

>>> import oraudit
>>> audit = oraudit.Audit(examples=600)
>>> audit.result().status
'cannot tell'
"""

from oraudit.report import Result
from oraudit.ways.loop import Audit

__all__ = ["Audit", "Result"]
