"""The ledger: every verdict is computed and as expected, and every check can say no."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from oralib import claims
from oralib.__main__ import main
from oralib.claims.ledger import Finding, at_most, equal, near, same_answers, tends

ROOT = Path(__file__).parent.parent
LEDGER = claims.ledger()


def label(claim):
    return claim.label


def test_every_item_is_there_once():
    assert [claim.number for claim in LEDGER] == list(range(1, 85))
    assert len({claim.label for claim in LEDGER}) == 84
    assert sum(not claim.label.startswith("ours:") for claim in LEDGER) == 74


@pytest.mark.parametrize("claim", LEDGER, ids=label)
def test_verdict_is_as_expected_and_the_broken_version_is_rejected(claim):
    found = claim.verdict()
    assert found.verdict == claim.expected, (found.evidence, found.evidence_of_correction)
    assert found.can_tell
    broken = claim.check(claim.broken)
    assert not broken.holds, broken.evidence
    assert found.evidence


def test_how_many_of_each():
    paper = Counter(claim.expected for claim in LEDGER if claim.number <= 74)
    assert paper == {claims.HOLDS: 58, claims.CORRECTED: 15, claims.FAILS: 1}


@pytest.mark.parametrize("claim", LEDGER, ids=label)
def test_claims_are_explained_in_the_book(claim):
    assert claim.statement.endswith((".", ")"))
    assert bool(claim.correction) == (claim.corrected is not None)
    page, _, anchor = claim.explained.partition("#")
    notebook = nbformat.read(ROOT / "book" / f"{page}.ipynb", 4)
    text = "\n".join(cell.source for cell in notebook.cells)
    figures = [
        cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in notebook.cells
    ]
    assert f":label: {anchor}\n" in text or f"({anchor})=" in text or anchor in figures, (
        f"{claim.label}: there is no {anchor} in {page}"
    )


# --------------------------------------------------------------- what the words of checks mean


def test_words_of_checks():
    assert equal([("a", 1.0, 1.0), ("b", float("inf"), float("inf"))]).holds
    assert not equal([("a", 1.0, 1.1)]).holds
    assert not equal([]).holds
    assert not equal([("a", float("nan"), 1.0)]).holds
    assert at_most([("a", 1.0, 1.0)]).holds
    assert not at_most([("a", 1.1, 1.0)]).holds
    assert not at_most([]).holds
    assert not at_most([("a", float("nan"), 1.0)]).holds
    assert tends([1.0, 0.1, 0.01], 0.0, 0.05).holds
    assert not tends([1.0, 0.1, 0.2], 0.0, 0.5).holds
    assert not tends([float("inf"), float("inf")], 0.0, 0.5).holds
    assert same_answers({"a": (True, True)}).holds
    assert not same_answers({"a": (True, False)}).holds
    assert not same_answers({}).holds
    assert near([("a", 1.0, 0.1, 1.2)]).holds
    assert not near([("a", 1.0, 0.1, 1.5)]).holds


def test_a_check_that_cannot_say_no_is_not_as_expected():
    lenient = replace(claims.find("1"), check=lambda version: Finding(True, "sure"))
    found = lenient.verdict()
    assert found.verdict == claims.HOLDS
    assert not found.can_tell
    assert not found.as_expected


def test_a_check_that_cannot_say_yes_is_not_as_expected():
    stern = replace(claims.find("64"), check=lambda version: Finding(False, "never"))
    found = stern.verdict()
    assert found.verdict == claims.FAILS
    assert not found.as_expected


def test_a_false_claim_changes_the_verdict():
    claim = claims.find("58")
    assert replace(claim, stated=claim.broken).verdict().verdict == claims.FAILS
    claim = claims.find("66")
    assert replace(claim, stated=claim.corrected).verdict().verdict == claims.HOLDS
    assert replace(claim, corrected=claim.broken).verdict().verdict == claims.FAILS


# ------------------------------------------------------------------------------ command line


def test_command_prints_one_claim(capsys):
    assert main(["claims", "--only", "prop:adaptive-ora-is-valid"]) == 0
    printed = capsys.readouterr().out
    assert "64  fails as stated" in printed
    assert "0.3214 exceeds 0.05" in printed
    assert printed.endswith("1 claim: 1 fails as stated; as expected\n")


def test_command_prints_the_whole_table(capsys, monkeypatch):
    quick = [claims.find(number) for number in ("3", "8", "64")]
    monkeypatch.setattr(claims, "ledger", lambda: quick)
    assert main(["claims"]) == 0
    printed = capsys.readouterr().out
    assert "3 claims: 1 holds, 1 holds with a correction, 1 fails as stated" in printed
    assert "corrected: It is minus that sign" in printed


def test_command_says_no_by_its_exit_status(capsys, monkeypatch):
    wrong = replace(claims.find("3"), expected=claims.FAILS)
    monkeypatch.setattr(claims, "ledger", lambda: [wrong])
    assert main(["claims"]) == 1
    assert "NOT AS EXPECTED: fails as stated" in capsys.readouterr().out


def test_command_names_what_is_near(capsys):
    assert main(["claims", "--only", "prop:adaptive-ora-is-vald"]) == 2
    assert "did you mean prop:adaptive-ora-is-valid" in capsys.readouterr().err


def test_command_can_be_interrupted(capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(claims, "ledger", interrupt)
    assert main(["claims"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_page_is_a_table_with_links():
    page = claims.Page([claims.find("8").verdict(), claims.find("64").verdict()])
    html = page._repr_html_()
    assert html.count("<tr") == 3
    assert 'href="corrections.html#prop-corr-sign"' in html
    assert '<td class="corrected">holds with a correction</td>' in html
    assert re.search(r"&gt;|&lt;", html) or "<=" not in html
