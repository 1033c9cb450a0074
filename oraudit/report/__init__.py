"""From what was seen to a verdict, and to every way of writing it down."""

from oraudit.report.alarm import NotAsTold, alarms
from oraudit.report.result import EXIT, Result, judge, judge_counts, refused

__all__ = ["EXIT", "NotAsTold", "Result", "alarms", "judge", "judge_counts", "refused"]
