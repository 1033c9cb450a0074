"""From what was seen to a verdict and its text."""

from oraudit.report.result import EXIT, Result, judge

__all__ = ["EXIT", "Result", "judge"]
