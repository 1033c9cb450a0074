"""The zoo of trainings: every case runs, an audit says what is true of it, and the table counts."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("opacus")

from witness import __main__ as command
from witness import planted_table, table
from witness.case import HONEST, Case, Run, is_right
from witness.cases import CASES
from witness.runs import can_run, run, run_all
from witness.unseen import MOST, UNSEEN

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

TABLE = Path(__file__).parents[1] / "book" / "data" / "witness.csv"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_audit_says_what_is_true(case):
    if not can_run(case):
        pytest.skip(f"needs {', '.join(case.needs)}")
    said = []
    for tool in case.tools:
        said.append(run(case, tool, 1))
        assert said[-1].status != "error", said
        if is_right(case.truth, said[-1]):
            return
    assert case.name in UNSEEN, said


def test_cases_are_enough_and_told_apart():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert sum(case.truth == HONEST for case in CASES) >= 30
    assert set(UNSEEN) <= set(names)
    assert len(UNSEEN) <= MOST


def test_table_is_of_these_cases():
    with TABLE.open(encoding="utf-8") as file:
        rows = [
            tuple(row[name] for name in ("case", "tool", "truth")) for row in csv.DictReader(file)
        ]
    assert rows == [(case.name, tool, case.truth) for case in CASES for tool in case.tools]


def test_planted_table_says_what_was_judged():
    """Only what is said now is written again, by a command."""
    pytest.importorskip("jax")
    lines = planted_table.PAGE.read_text(encoding="utf-8").splitlines()
    now = dict.fromkeys([*planted_table.BUGS, *planted_table.HONEST], "")
    again = planted_table.page(now).splitlines()
    assert len(planted_table.BUGS) == 20
    assert [line.split(" | ")[:3] for line in lines] == [line.split(" | ")[:3] for line in again]


# ------------------------------------------------------------------------------------- the promises

BUG = Case("a bug", "some", "NumPy", "less private", ("the cause",), lambda seed: None)
FINE = Case("fine", "honest", "NumPy", HONEST, (), lambda seed: None)
SEEN = Run("a bug", "witness", 1, "failed", "less private", "it is the cause", "numpy 2", 0.1)
PASSED = Run("fine", "witness", 1, "passed", "", "", "numpy 2", 0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "passed", "side": "", "words": ""}, "not seen in every run"),
        ({"status": "passed", "side": "safer"}, "on the wrong side"),
        ({"status": "error"}, "ended in an error"),
        ({"words": "a symptom"}, "0 of 1 bugs are named"),
    ],
)
def test_broken_promise_is_told(change, words):
    assert not table.broken_promises(table.table([BUG, FINE], [SEEN, PASSED]))
    broken = table.broken_promises(table.table([BUG], [replace(SEEN, **change)]))
    assert any(words in sentence for sentence in broken), broken


def test_accused_honest_run_breaks_a_promise():
    rows = table.table([FINE], [PASSED, replace(PASSED, seed=2, status="failed")])
    (broken,) = table.broken_promises(rows)
    assert "1 of 2 runs failed" in broken


def test_deleted_noise_may_never_pass():
    deleted = replace(BUG, source="the noise is deleted", truth="may be post-processing")
    passed = [replace(SEEN, status="passed", side="")]
    broken = table.broken_promises(table.table([deleted], passed))
    assert any("noise is deleted, and 1 runs pass" in sentence for sentence in broken)


def test_parts_join_to_one_table(tmp_path):
    for name, runs in (("one.csv", [PASSED]), ("two.csv", [SEEN])):
        table.write_runs(tmp_path / name, runs)
    runs = [run for name in ("one.csv", "two.csv") for run in table.read_runs(tmp_path / name)]
    assert table.table([BUG, FINE], runs) == table.table([BUG, FINE], [SEEN, PASSED])


@pytest.mark.slow
def test_processes_change_nothing():
    jobs = [
        (name, "witness", seed) for name in ("a loop: small", "a loop: no noise") for seed in (1, 2)
    ]
    alone, together = (
        [replace(each, seconds=0.0) for each in run_all(jobs, processes)] for processes in (1, 2)
    )
    assert alone == together


def test_command_writes_parts_and_tables(tmp_path, capsys):
    part = tmp_path / "part.csv"
    some = ["--only", "a loop: small|a loop: no noise", "--seeds", "1", "--honest", "1"]
    assert command.main([*some, "--processes", "1", "--part", str(part)]) == 0
    assert command.main(["--join", str(part), "--data", str(tmp_path)]) == 0
    assert "less private" in (tmp_path / "witness.csv").read_text()
    assert "of such trainings fail" in (tmp_path / "witness.md").read_text()
