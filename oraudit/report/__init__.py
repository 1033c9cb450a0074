"""From what was seen to a verdict and its text."""

from oraudit.report.alarm import NotAsTold, alarms
from oraudit.report.result import EXIT, Result, judge

__all__ = ["EXIT", "NotAsTold", "Result", "alarms", "judge"]
