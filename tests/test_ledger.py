"""The ledger: every check rejects variants that are a little wrong; what the page and words say.

The verdicts themselves are computed by the page ``book/paper-check.ipynb`` alone, which fails if
one of them is not as expected.
"""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args
from unittest.mock import Mock

import nbformat
import numpy as np
import pytest
from scipy import stats

import ledger
from ledger import CORRECTED, FAILS, HOLDS, IMPLEMENTED, Finding
from ledger.__main__ import main
from ledger.claims.gaps import _success_laws
from ledger.machine import entries
from ledger.machine.comparisons import at_most, equal, first_least, near, same_answers, tends
from ledger.machine.findings import all_of, each
from ledger.machine.mutants import replaced, varied
from ledger.machine.tiles import places_of
from orabook.studies import stop_or_oppose_law
from oralib import adaptive_failure_probability, epsilon_lower_bound, p
from oralib.bounds import Anytime

ROOT = Path(__file__).parent.parent
LEDGER = ledger.claims()


def test_every_item_is_there_once():
    numbers = [claim.number for claim in LEDGER]
    rows = enumerate(entries._ROWS, 1)
    assert numbers == [number for number, label in rows if not label.startswith("gone:")]
    assert {claim.kind for claim in LEDGER} == set(get_args(entries.Kind))
    assert all(claim.label.startswith("ours:") == (claim.sort == ledger.OURS) for claim in LEDGER)
    places = " ".join(claim.place for claim in LEDGER if claim.sort != ledger.OURS)
    figures = re.findall(r"Figures? (\d)(?: and (\d))?", places)
    assert {n for pair in figures for n in pair if n} == set("123456789")


def test_how_many_of_each():
    assert Counter((claim.sort, claim.expected) for claim in LEDGER) == {
        (ledger.STATEMENT, HOLDS): 44,
        (ledger.STATEMENT, CORRECTED): 15,
        (ledger.STATEMENT, FAILS): 1,
        (ledger.DEFINITION, IMPLEMENTED): 23,
        (ledger.OURS, HOLDS): 31,
    }


@pytest.mark.slow  # the chapter on claims says the same, and is executed in any case
@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.label)
def test_all_mutants_are_rejected_or_excused(claim):
    """They are mutants of the version that is accepted, which is not checked again."""
    better = {CORRECTED: claim.corrected, FAILS: claim.control}.get(claim.expected, {})
    accepted = {**claim.stated, **better}
    for mutant in claim.mutants:
        parts = {**accepted, mutant.part: mutant.change(accepted[mutant.part])}
        assert claim.check(**parts).holds == bool(mutant.excuse), mutant.name
    assert not all(m.excuse for m in claim.mutants), "a check that rejects nothing says nothing"


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        ("20", {"share": 0.3}),
        ("4", {"privacy_level": 0.99}),
        ("36", {"privacy_level": 1.05}),
        ("47", {"efficacy": 0.7}),
        ("49", {"factor": 0.89 / 0.97}),
        ("52", {"lower": 1.01}),
        ("53", {"share": 0.992}),
        ("21", {"rate": 0.303}),
        ("28", {"certainty": 0.996}),
        ("58", {"limit": 0.501}),
        ("30", {"dominated": "given R", "success": 1.0001}),
        ("35", {"accuracies": ("1/2", "0.6", "0.99"), "limit": 0.001}),
        ("57", {"power": 0.4995}),
        ("98", {"reciprocal": 1.001}),
    ],
)
def test_false_variants_that_an_earlier_ledger_let_pass(number, changed):
    assert not ledger.find(number).check(**changed).holds


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.label)
def test_a_word_in_no_version_is_refused(claim):
    for part in (part for part, value in claim.stated.items() if isinstance(value, str)):
        with pytest.raises(ValueError, match=f"{part} must be one of .*, got {part}='nonsense'"):
            claim.check(**{part: "nonsense"})


def test_claims_are_explained_in_the_book():
    anchors = {}
    for claim in LEDGER:
        assert claim.statement.endswith((".", ")"))
        assert bool(claim.correction) == (claim.corrected is not None)
        assert "<=" not in claim.statement + claim.correction, "≤ reads better"
        for target in (claim.explained, *(place.target for place in places_of(claim))):
            page, _, anchor = target.partition("#")
            if page not in anchors:
                cells = nbformat.read(ROOT / "book" / f"{page}.ipynb", 4).cells
                text = "\n".join(cell.source for cell in cells)
                pairs = re.findall(r"^:label: (.+)|^\((.+)\)=", text, re.MULTILINE)
                anchors[page] = {name for pair in pairs for name in pair}
            assert anchor in anchors[page], claim.label


# --------------------------------------------------- examples that the texts of the ledger name


def test_guesses_that_match_the_parity_are_not_independent():
    law = _success_laws(3)["matching the parity"]
    assert law[1, 1, 1] == pytest.approx(1 / 4)
    assert law[0, 0, 1] + law[0, 1, 0] + law[1, 0, 0] == pytest.approx(3 / 4)


def test_stop_or_oppose_is_dominated_and_fails():
    law = stop_or_oppose_law(4.0, 1000)
    assert law.sum() == pytest.approx(1)
    v, r = np.indices(law.shape)
    assert not law[v > r].any()
    exceeds = epsilon_lower_bound(np.minimum(v, r), r) > 4.0
    fails = adaptive_failure_probability(4.0, 1000, 0.05) / 2
    assert law[exceeds].sum() == pytest.approx(fails)
    sizes = enumerate(law.sum(axis=0))
    fair = sum(weight * stats.binom.sf(np.arange(1000), n, p(4.0)) for n, weight in sizes)
    tails = law.sum(axis=1)[::-1].cumsum()[::-1][1:]
    assert (tails <= fair + 1e-12).all()


def test_anytime_bound_leaves_what_its_row_says():
    def unused(epsilon, beta, n):
        worst = adaptive_failure_probability(epsilon, n, beta, rule=Anytime())
        return round(100 * (1 - worst / beta))

    short = [unused(e, b, 10_000) for e in (0.0, 1.0, 3.0) for b in (0.05, 0.3)]
    remark = ledger.find("ours:anytime-bound").remark
    assert f"{min(short)}% to {max(short)}% of β" in remark
    assert f"only {unused(3.5, 0.35, 200_000)}%" in remark


# --------------------------------------------------------------- what the words of checks mean


def test_words_of_checks():
    for compare in (equal, at_most):
        assert compare([("a", 1.0, 1.0), ("b", float("inf"), float("inf"))]).holds
        for cases in ([], [("a", 1.1, 1.0)], [("a", float("nan"), 1.0)]):
            assert not compare(cases).holds
    assert tends([1.0, 0.1, 0.01], 0.0, 0.05).holds
    assert not tends([1.0, 0.1, 0.2], 0.0, 0.5).holds
    assert not tends([float("inf"), float("inf")], 0.0, 0.5).holds
    assert same_answers({"a": (True, True)}).holds
    assert not same_answers({"a": (True, False)}).holds
    assert not same_answers({}).holds
    assert near([("a", 1.0, 0.1, 1.2)]).holds
    assert not near([("a", 1.0, 0.1, 1.5)]).holds
    assert not near([("a", 1.0, 0.1, 1.2), ("b", float("nan"), 0.1, 1.2)]).holds


def test_long_findings_are_cut_and_counted():
    three = all_of(*(Finding(True, word) for word in "abc"))
    assert three.evidence == "a; b; c"
    assert all_of(three, Finding(True, "d"), three).evidence == "a; b; c; 4 more such results"
    assert all_of(three, Finding(False, "no")) == Finding(False, "no")


def test_ties_up_to_rounding_take_the_first():
    third = 0.1 + 0.2  # a little more than 0.3
    assert (first_least([0.5, third, 0.3]), first_least([0.5, 0.3, third])) == (1, 1)
    assert first_least([0.3, 0.3 - 1e-9]) == 1
    for cases in ([("a", 0.0, third), ("b", 0.0, 0.3)], [("a", 0.0, 0.3), ("b", 0.0, third)]):
        assert at_most(cases).evidence.endswith("(a)")
    assert near([("a", 0.3, 1.0, 0.0), ("b", third, 1.0, 0.0)]).evidence.endswith("(a)")


def test_a_row_is_a_check_and_its_decorators(monkeypatch):
    """Docstring and defaults are the claim; numbers without mutants are varied on both sides."""
    monkeypatch.setattr(entries, "_LEDGER", {})
    monkeypatch.setattr(entries, "_ROWS", ["lem:other", "lem:toy", "x"])

    @entries.statement("lem:toy", "Lemmas A.4 and B.2", "closed form")
    @entries.correction("It is two.", c=2.0)
    @entries.mutants(replaced("word", other="b"))
    @each(equal)
    def check(c=1.0, word="a", limit=0.0):
        """The constant
        is one.
        """
        yield "c", c, 2.0 if word == "a" else 3.0

    (claim,) = entries.claims()
    words = (claim.number, claim.statement, claim.kind)
    assert words == (2, "The constant is one.", "closed form")
    assert claim.stated == {"c": 1.0, "word": "a", "limit": 0.0}
    assert claim.explained == "A-guessing-based-auditing#paper-lemma-a-4"
    assert [m.name for m in claim.mutants] == ["c 3% up", "c 3% down", "word: other"]
    verdict = claim.verdict(mutants=True)
    assert (verdict.verdict, len(verdict.rejected), verdict.as_expected) == (CORRECTED, 3, True)
    with pytest.raises(ValueError, match="label must be new in the ledger, got lem:toy"):
        entries.ours("lem:toy", "This book")(check)
    with pytest.raises(ValueError, match=r"label must be a line of .*rows\.txt, got lem:new"):
        entries.ours("lem:new", "This book")(check)
    with pytest.raises(ValueError, match="must change one of c, got d"):
        entries.ours("x", "")(entries.mutants(varied("d"))(lambda c=1.0: equal([])))


# ------------------------------------------------------------------------ claims of our own


def toy(number, sort=ledger.STATEMENT, value=1.0):
    """A claim that c is a number, which is checked at once."""
    words = (f"toy:{number}", sort, "Section 5", "exact enumeration", "c is one.")
    expected = IMPLEMENTED if sort == ledger.DEFINITION else HOLDS
    parts = (lambda c: equal([("c", c, 1.0)]), {"c": value}, "05-efficacy#x", expected)
    return ledger.Claim(number, *words, *parts, mutants=varied("c"))


TWO = toy(2, value=2.0)
CORRECT = replace(TWO, corrected={"c": 1.0}, correction="It is one.", expected=CORRECTED)
WRONG = replace(TWO, number=3, label="toy:3", control={"c": 1.0}, expected=FAILS)
WEAKER = varied("c", down="weaker")
LENIENT = replace(toy(4), check=lambda c: Finding(c <= 1, "sure"), mutants=WEAKER)
TOYS = [toy(1, ledger.DEFINITION), CORRECT, WRONG, LENIENT, toy(5, ledger.OURS)]


def test_verdicts_follow_from_the_check():
    for claim in TOYS:
        verdict = claim.verdict(mutants=True)
        assert (verdict.verdict, verdict.as_expected) == (claim.expected, True), claim.label
    assert CORRECT.verdict().evidence == "the two sides differ: 2 and 1 (c)"
    assert replace(CORRECT, corrected={"c": 1.5}).verdict().verdict == FAILS
    assert replace(CORRECT, stated={"c": 1.0}).verdict().verdict == HOLDS


def test_a_simulation_says_how_fine_it_can_tell(capsys, monkeypatch):
    """The least change in percent that is rejected both up and down, or where it is not weaker."""
    blurred = replace(toy(1), kind="Monte Carlo", check=lambda c: near([("c", 1.001, 0.01, c)]))
    lenient = replace(LENIENT, kind="Monte Carlo")
    assert blurred.verdict(mutants=True).finest == {"c": 5.0}  # four standard errors of 1%
    assert lenient.verdict(mutants=True).finest == {"c": 1.0}
    assert not toy(1).verdict(mutants=True).finest
    monkeypatch.setattr(ledger, "claims", lambda: [blurred])
    main(["--mutants"])
    assert "smallest changes that are rejected: c 5%" in capsys.readouterr().out
    html = ledger.Page([blurred.verdict(mutants=True)])._repr_html_()
    assert "smallest changes that are rejected: c 5%." in html


@pytest.mark.parametrize(
    "blunt",
    [
        replace(toy(1), check=lambda c: Finding(True, "sure")),  # cannot say no
        replace(WRONG, check=lambda c: Finding(False, "never")),  # cannot say yes
        replace(toy(1), mutants=varied("c", up="because", down="because")),  # needs no excuse
        replace(toy(1), expected=FAILS),
    ],
)
def test_what_is_not_as_expected(blunt, capsys, monkeypatch):
    assert not blunt.verdict(mutants=True).as_expected
    monkeypatch.setattr(ledger, "claims", lambda: [blunt])
    assert main(["--mutants"]) == 1
    assert "NOT AS EXPECTED" in capsys.readouterr().out


def test_command(capsys, monkeypatch):
    monkeypatch.setattr(ledger, "claims", lambda: TOYS)
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert "corrected: It is one. (the two sides agree to within 10⁻⁹ in the one case" in printed
    assert "variants" not in printed
    counted = "3 statements: 1 holds, 1 holds with a correction, 1 fails as stated; 1 definition "
    assert f"\n{counted}implemented; 1 claim of this book: 1 holds; as expected\n" in printed
    assert main(["--only", "5", "--only", "toy:1"]) == 0
    assert "\n  5  holds" in capsys.readouterr().out
    assert main(["--mutants"]) == 0
    printed = capsys.readouterr().out
    assert "rejects 1 of 2 variants\n     passes: c 3% down (weaker)" in printed
    counted = "10 variants: 9 rejected, 1 pass for a reason that their claims give, 0 missed"
    assert printed.endswith(f"\n{counted}\n")
    assert main(["--only", "toys:1"]) == 2
    assert "did you mean toy:" in capsys.readouterr().err
    monkeypatch.setattr("ledger.claims", Mock(side_effect=KeyboardInterrupt))
    assert main([]) == 130


def test_claims_are_found_by_label_or_number():
    assert ledger.find(5) is ledger.find("5") is ledger.find("def:ora-efficacy")
    for name in (0, -1, None, 2.5, "there is none such"):
        with pytest.raises(ValueError, match=r"name must be the label of a claim, or a number"):
            ledger.find(name)


def test_page_is_a_table_with_links_and_filters():
    page = ledger.Page([claim.verdict(mutants=True) for claim in TOYS])
    html = page._repr_html_()
    # What fails or is corrected comes first, also on paper; definitions come last.
    assert re.findall(r'<tr id="claim-(\d)"', html) == list("32451")
    assert '<td class="corrected">holds with a correction</td>' in html
    assert '<td class="score">1 of 2</td>' in html
    assert "<p>Accepted variants: c 3% down (weaker).</p>" in html
    assert re.sub(r"<details>.*?</details>", "", html).count("3%") == 0
    assert "<" not in re.sub(r"<[^<>]+>", "", html)
    frame = page.frame
    assert frame.query("as_expected and kind == 'claim of this book'").index.tolist() == [5]
    assert frame.loc[4, "variants_rejected"] == frame.loc[4, "variants_passed"] == 1


def test_tiles_have_numbers_of_the_paper():
    numbers = (1, 11, 26, 45, 64, 66, 69, 72, 84)
    verdicts = [verdict_of(ledger.find(number)) for number in numbers]
    tiles = ledger.Page(verdicts[::-1]).tiles()
    labels = {row: [place.label for place, _ in tiles] for row, tiles in tiles.rows.items()}
    assert labels == {
        "2": ["2.1", "Alg. 1"],
        "5": ["5.1", "Fig. 1", "Fig. 5", "§5.1"],
        "C": ["C.1", "C.7"],
        "E": ["E.5", "§E.3.2"],
        "ours": ["Worst case of full feedback"],
    }
    html = tiles._repr_html_()
    rows = ["Section 2", "Section 5", "Appendix C", "Appendix E", "This book&#x27;s own"]
    assert re.findall("<dt>(.*)</dt>", html) == rows


def test_tiles_lead_to_statements_and_name_them():
    tiles = ledger.Page([verdict_of(ledger.find(64))]).tiles()
    tile = re.search("<a .*</a>", tiles._repr_html_())[0]
    assert 'href="E-adaptive-auditing.html#paper-proposition-e-5"' in tile
    assert 'title="Proposition E.5, fails as stated: Adaptive ORA is valid."' in tile
    assert 'aria-label="E.5, Proposition E.5: fails as stated"' in tile
    assert tile.endswith('<span aria-hidden="true">✗ </span>E.5</a>')


def test_every_claim_has_a_tile():
    tiles = ledger.Page([verdict_of(claim) for claim in LEDGER]).tiles()
    assert "".join(tiles.rows) == "23456ABCDEours"
    numbers = [verdict.claim.number for row in tiles.rows.values() for _, verdict in row]
    assert sorted(set(numbers)) == [claim.number for claim in LEDGER]
    appendix = [place.label for place, _ in tiles.rows["A"]]
    assert appendix[:5] == ["A.1", "A.2", "A.3", "A.4", "A.5"]
    assert appendix[-2:] == ["A.18", "Alg. 2"]


def verdict_of(claim):
    """The expected verdict, without a check."""
    return ledger.Verdict(claim, claim.expected, "", "", True)
