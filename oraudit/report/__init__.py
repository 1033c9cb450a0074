"""The report of an audit: from what was seen to a verdict, and to every way of writing it down."""

from oraudit.report.alarm import NotAsTold, alarms
from oraudit.report.facts import EXIT
from oraudit.report.judging import judge, judge_counts, refused
from oraudit.report.result import Result

__all__ = ["EXIT", "NotAsTold", "Result", "alarms", "judge", "judge_counts", "refused"]
