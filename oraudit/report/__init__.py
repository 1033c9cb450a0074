"""The report of an audit: the verdict on what was seen, and all formats that it is written in."""

from oraudit.report.alarm import NotAsTold, alarms
from oraudit.report.facts import EXIT
from oraudit.report.judging import judge, judge_counts, refused
from oraudit.report.result import Result

__all__ = ["EXIT", "NotAsTold", "Result", "alarms", "judge", "judge_counts", "refused"]
