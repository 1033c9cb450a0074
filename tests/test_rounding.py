"""What is shown does not hang on the last bits, which differ from processor to processor.

The tables of all mechanisms are changed in the last bits at random, more than any processor would.
Then zeros must still be zeros, equals equals, and the chapters that show exact tables must show
the same.
"""

import ast
import re
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import nbformat
import numpy as np
import pytest
from zoo import SMALL, ZOO

import oralib
from ledger.cases.games import classic_law, full_knowledge_law
from orabook import tables
from orabook.prose import expressions
from orabook.studies import SampledChannel
from oralib.ground.rounding import ROUNDING, first_largest, largest_first, log_ratio, snap

BOOK = Path(__file__).parent.parent / "book"


def shake(monkeypatch):
    """From now on every table is off by about 1e-14 of each entry, up or down at random."""
    rng, build = np.random.default_rng(0), oralib.Channel.__post_init__

    def build_and_shake(self):
        build(self)
        noise = 1 + 1e-14 * rng.choice([-1.0, 1.0], self.table.shape)
        object.__setattr__(self, "table", self.table * noise)

    monkeypatch.setattr(oralib.Channel, "__post_init__", build_and_shake)


def notions(table):
    """All numbers of a table that people see."""
    sampled = SampledChannel.of(table)
    laws = [
        oralib.games.one_run_law(table, guesser)
        for guesser in (oralib.ThresholdGuesser(), oralib.ThresholdGuesser(1.0))
    ]
    laws += [oralib.games.one_run_law(table, oralib.TopGuesser(k)) for k in range(1, table.n + 1)]
    laws.append(oralib.games.adaptive_law(table, oralib.ThresholdGuesser(1.0)))
    laws.append(full_knowledge_law(table, oralib.ThresholdGuesser(1.0)))
    base = np.ones(table.n)
    laws.append(classic_law(table, oralib.ThresholdGuesser(), 2, base=base))
    level = table.epsilon if np.isfinite(table.epsilon) else 1.0
    return [
        *(table.epsilon, table.ddp, table.ac_ddp, table.ae_ac_ddp, table.delta(level)),
        *(table.optimal_efficacy(k) for k in range(1, table.n + 1)),
        *(table.privacy_loss, table.guess_accuracy, table.total_variation),
        *(table.full_knowledge_loss, table.conditional_loss(0, np.zeros(table.n), 0)),
        *(sampled.epsilon, sampled.ddp, sampled.ac_ddp, sampled.ae_ac_ddp(1)),
        *(sampled.privacy_loss, sampled.guess_accuracy, *laws),
    ]


def as_shown(values):
    return [tables.number(x) for x in np.unique(values).tolist()]


def test_numbers_of_tables_survive_shaken_bits(monkeypatch):
    exact = {member: notions(oralib.channel(ZOO[member[0]][0], member[1])) for member in SMALL}
    shake(monkeypatch)
    for (name, n), numbers in exact.items():
        off = notions(oralib.channel(ZOO[name][0], n))
        for one, other in zip(map(np.ravel, off), map(np.ravel, numbers), strict=True):
            assert as_shown(one) == as_shown(other), (name, n)
            assert np.array_equal(one == 0, other == 0), (name, n)
            equal = np.isclose(other[:, None], other, rtol=1e-9, atol=0)
            assert one.size > 300 or np.array_equal(one[:, None] == one, equal), (name, n)


def test_ties_are_broken_by_order():
    sizes = np.array([[1.0, 1 + 1e-15, 0.5], [0.1 + 0.2, np.inf, 0.3], [np.inf, np.inf, 0.0]])
    assert largest_first(sizes).tolist() == [[0, 1, 2], [1, 0, 2], [0, 1, 2]]
    assert largest_first(np.array([1.0, 1 + 3 * ROUNDING])).tolist() == [1, 0]
    assert first_largest([np.nan, 1.0, 1 + 1e-15]) == 1
    assert oralib.TopGuesser(1).guess(np.array([0.3, -0.1 - 0.2])).tolist() == [-1, 0]


def test_what_is_not_rounding_stays():
    values = np.array([1e-300, 1e-14, 2e-14, 0.5 + 1e-9, -np.inf, np.inf, np.nan, 1 / 3])
    assert np.array_equal(snap(values), values, equal_nan=True)
    assert snap([]).shape == (0,)
    assert log_ratio(1.0, 1 + 1e-15) == 0 < log_ratio(1 + 1e-11, 1.0)
    assert np.isnan(log_ratio(0.0, 0.0))


def run(name):
    """What a chapter shows: tables, results and numbers in prose, each with the code behind it.

    Cells that play games at random take long and have no table of a mechanism: they are left out,
    and with them all that needs their names.
    """
    names, lost, shown = {"__name__": "__main__"}, set(), []
    for cell in nbformat.read(BOOK / f"{name}.ipynb", 4).cells:
        if cell.cell_type == "markdown":
            for expression in expressions(cell.source):
                if not used(expression) & lost:
                    shown.append((expression, repr(eval(expression, names))))
        elif not SET_UP.search(cell.source) and (
            PLAYS.search(cell.source) or used(cell.source) & lost
        ):
            lost |= used(cell.source, stored=True)
        else:
            shown += executed(cell, names)
    return shown


def used(code, stored=False):
    """The names that a piece of code uses, or only those that it gives a value or changes."""
    nodes = list(ast.walk(ast.parse(code)))
    given = [node for node in nodes if not stored or isinstance(getattr(node, "ctx", 0), ast.Store)]
    found = {node.id for node in given if isinstance(node, ast.Name)}
    found |= {n.value.id for n in given if isinstance(getattr(n, "value", 0), ast.Name)}
    return found | {node.name for node in nodes if isinstance(node, ast.FunctionDef) and stored}


def executed(cell, names):
    """Run a cell as a kernel does; what it shows, if it shows a text."""
    *body, last = ast.parse(cell.source).body
    committed = [output for output in cell.outputs if "text/plain" in output.get("data", {})]
    if not isinstance(last, ast.Expr):
        body, last = [*body, last], None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is None:
        return []
    with redirect_stdout(StringIO()) as printed:
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    text = printed.getvalue().rstrip("\n") if shown is None else repr(shown)
    return [(cell.source, text) for _ in committed]


SET_UP = re.compile(r"^seed: int|^import oralib", re.MULTILINE)
PLAYS = re.compile(r"\btrials\b|\*\*game\b|experiments\.|one_run\(|range\(200\)|crossing")


@pytest.mark.parametrize(
    ("name", "least"),
    [
        *(("02-preliminaries", 12), ("03-problem-setting", 8), ("04-the-gaps", 10)),
        *(("05-efficacy", 12), ("B-gaps-in-detail", 10), ("C-efficacy-in-detail", 13)),
    ],
)
def test_exact_chapters_show_the_same(monkeypatch, name, least):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as in a kernel
        exact = run(name)
        shake(monkeypatch)
        assert run(name) == exact
    assert len(exact) >= least
