"""The ledger: every verdict is computed and as expected, and every check can say no."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
from scipy import stats

from oralib import (
    LocalRandomizedResponse,
    adaptive_failure_probability,
    claims,
    epsilon_lower_bound,
    p,
)
from oralib.__main__ import main
from oralib.claims.auditing import stop_or_oppose
from oralib.claims.gaps import _success_laws
from oralib.claims.ledger import (
    Finding,
    at_most,
    equal,
    near,
    replaced,
    same_answers,
    shifted,
    tends,
    varied,
)
from oralib.claims.ledger import claim as enter
from oralib.claims.page import typeset

ROOT = Path(__file__).parent.parent
LEDGER = claims.ledger()


def label(claim):
    return claim.label


def test_every_item_is_there_once():
    assert [claim.number for claim in LEDGER] == list(range(1, len(LEDGER) + 1))
    assert len({claim.label for claim in LEDGER}) == len(LEDGER)
    assert all(claim.label.startswith("ours:") == (claim.sort == claims.OURS) for claim in LEDGER)


@pytest.mark.parametrize("claim", LEDGER, ids=label)
def test_verdict_is_as_expected_and_all_mutants_are_rejected_or_excused(claim):
    found = claim.verdict(mutants=True)
    said = (found.evidence, found.evidence_of_correction)
    assert found.verdict == claim.expected, said
    assert not found.missed, f"passes: {[mutant.name for mutant in found.missed]}"
    stale = [mutant.name for mutant in found.needlessly_excused]
    assert not stale, f"rejected against its excuse: {stale}"
    assert found.as_expected
    assert found.rejected, "a check that rejects nothing says nothing"
    assert found.evidence


@pytest.mark.parametrize("claim", LEDGER, ids=label)
def test_numbers_are_varied_on_both_sides(claim):
    """Every constant of a statement has mutants above and below it."""
    for part, value in claim.stated.items():
        parts = {mutant.part for mutant in claim.mutants}
        moved = [m.change(1.0) for m in claim.mutants if m.part == part and "%" in m.name]
        if isinstance(value, float) and value not in (0.0, float("inf")):
            assert part in parts, f"{claim.label}: {part} is never varied"
            if moved:
                assert min(moved) < 1 < max(moved), f"{claim.label}: {part}"


def test_how_many_of_each():
    statements = Counter(claim.expected for claim in LEDGER if claim.sort == claims.STATEMENT)
    assert statements == {claims.HOLDS: 44, claims.CORRECTED: 15, claims.FAILS: 1}
    definitions = [claim.expected for claim in LEDGER if claim.sort == claims.DEFINITION]
    assert set(definitions) == {claims.IMPLEMENTED}
    assert len(definitions) == 23
    ours = [claim.expected for claim in LEDGER if claim.sort == claims.OURS]
    assert set(ours) == {claims.HOLDS}
    assert len(ours) == 16


# Variants that an earlier ledger let pass: (claim, part, value).
FORMER_GAPS = [
    ("28", "numbers", (2,)),
    ("53", "share", 0.51),
    ("20", "share", 0.3),
    ("24", "tolerance", 0.03),
    ("4", "level", 0.99),
    ("15", "mechanism", lambda e: LocalRandomizedResponse(0.97 * e)),
    ("36", "level", 1.05),
    ("47", "efficacy", 0.7),
    ("49", "factor", 0.89 / 0.97),
    ("51", "success", 0.505),
    ("52", "lower", 1.01),
]


@pytest.mark.parametrize(("number", "part", "value"), FORMER_GAPS)
def test_false_variants_that_once_passed_are_rejected(number, part, value):
    claim = claims.find(number)
    assert not claim.check(**{**claim.stated, part: value}).holds


@pytest.mark.parametrize("claim", LEDGER, ids=label)
def test_claims_are_explained_in_the_book(claim):
    assert claim.statement.endswith((".", ")"))
    assert bool(claim.correction) == (claim.corrected is not None)
    assert "<=" not in claim.statement + claim.correction, "≤ reads better"
    page, _, anchor = claim.explained.partition("#")
    notebook = nbformat.read(ROOT / "book" / f"{page}.ipynb", 4)
    text = "\n".join(cell.source for cell in notebook.cells)
    figures = [
        cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in notebook.cells
    ]
    assert f":label: {anchor}\n" in text or f"({anchor})=" in text or anchor in figures, (
        f"{claim.label}: there is no {anchor} in {page}"
    )


def test_every_claim_belongs_to_a_part():
    """The tiles of the book group the claims by module."""
    modules = {part.__name__ for part in claims.PARTS.values()}
    assert {claim.check.__module__ for claim in LEDGER} == modules


def test_every_numbered_figure_of_the_paper_has_a_row():
    places = " ".join(c.place for c in LEDGER if c.sort != claims.OURS)
    listed = re.findall(r"Figures? (\d)(?: and (\d))?", places)
    assert {n for pair in listed for n in pair if n} == set("123456789")


# --------------------------------------------------- examples that the texts of the ledger name


def test_guesses_that_match_the_parity_are_not_independent():
    law = _success_laws(3)["matching the parity"]
    assert law[1, 1, 1] == pytest.approx(1 / 4)
    assert law[0, 0, 1] + law[0, 1, 0] + law[1, 0, 0] == pytest.approx(3 / 4)


def test_stop_or_oppose_is_dominated_on_the_whole_and_fails():
    law = stop_or_oppose(4.0, 1000, 0.05)
    assert law.sum() == pytest.approx(1)
    v, r = np.indices(law.shape)
    assert not law[v > r].any()
    played = np.random.default_rng(1).random((4000, 1000)) < p(4.0)
    right, taken = played.cumsum(axis=1), np.arange(1, 1001)
    crossed = (epsilon_lower_bound(right, taken) > 4.0).any(axis=1).mean()
    fails = adaptive_failure_probability(4.0, 1000, 0.05) / 2
    assert law[epsilon_lower_bound(np.minimum(v, r), r) > 4.0].sum() == pytest.approx(fails)
    assert crossed / 2 == pytest.approx(fails, abs=0.015)
    assert round(fails, 3) == 0.080
    weight = law.sum(axis=0)
    fair = sum(w * stats.binom.sf(np.arange(1000), n, p(4.0)) for n, w in enumerate(weight))
    tails = law.sum(axis=1)[::-1].cumsum()[::-1][1:]
    assert (tails <= fair + 1e-12).all()


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
    lenient = replace(claims.find("1"), check=lambda **parts: Finding(True, "sure"))
    found = lenient.verdict(mutants=True)
    assert found.verdict == claims.IMPLEMENTED
    assert len(found.missed) == len(lenient.mutants)
    assert not found.as_expected


def test_a_check_that_cannot_say_yes_is_not_as_expected():
    stern = replace(claims.find("64"), check=lambda **parts: Finding(False, "never"))
    found = stern.verdict(mutants=True)
    assert found.verdict == claims.FAILS
    assert not found.accepted
    assert not found.as_expected


def test_an_excuse_without_need_is_not_as_expected():
    claim = claims.find("3")
    excused = tuple(replace(mutant, excuse="because") for mutant in claim.mutants)
    found = replace(claim, mutants=excused).verdict(mutants=True)
    assert found.needlessly_excused == excused
    assert not found.as_expected


def test_a_false_claim_changes_the_verdict():
    claim = claims.find("58")
    false = replace(claim, stated={**claim.stated, "factor": 0.49})
    assert false.verdict().verdict == claims.FAILS
    claim = claims.find("66")
    right = replace(claim, stated={**claim.stated, **claim.corrected})
    assert right.verdict().verdict == claims.HOLDS
    assert replace(claim, corrected={"power": 1.01}).verdict().verdict == claims.FAILS


def test_mutants_change_one_part_a_little():
    up, down = varied("c")
    assert (up.part, up.change(2.0), down.change(2.0)) == ("c", 2.06, 1.94)
    up, down = shifted("c", 0.5, down="weaker")
    assert (up.change(0.0), down.change(0.0), up.excuse, down.excuse) == (0.5, -0.5, "", "weaker")
    (other,) = replaced("c", some_word="word")
    assert (other.name, other.change("x")) == ("c: some word", "word")


def test_parts_that_do_not_exist_are_noticed():
    with pytest.raises(ValueError, match="has no part d"):
        enter(999, "x", claims.OURS, "", "", "", "", stated={"c": 1.0}, mutants=[varied("d")])(None)


# ------------------------------------------------------------------------------ command line


def test_command_prints_one_claim(capsys):
    assert main(["claims", "--only", "prop:adaptive-ora-is-valid"]) == 0
    printed = capsys.readouterr().out
    assert "64  fails as stated" in printed
    assert "0.3214 exceeds 0.05" in printed
    assert printed.endswith("1 statement: 1 fails as stated; as expected\n")


def test_command_prints_every_claim_that_is_asked_for(capsys):
    assert main(["claims", "--only", "5", "--only", "3", "--only", "5"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("\n  5  ") > printed.index("  3  ")
    assert printed.endswith("2 definitions implemented; as expected\n")


def test_command_prints_the_whole_table(capsys, monkeypatch):
    quick = [claims.find(number) for number in ("3", "8", "64")]
    monkeypatch.setattr(claims, "ledger", lambda: quick)
    assert main(["claims"]) == 0
    printed = capsys.readouterr().out
    summary = "2 statements: 1 holds with a correction, 1 fails as stated; 1 definition implemented"
    assert summary in printed
    assert "corrected: It is minus that sign" in printed
    assert "variants" not in printed


def test_command_tries_mutants(capsys, monkeypatch):
    quick = [claims.find(number) for number in ("3", "13")]
    monkeypatch.setattr(claims, "ledger", lambda: quick)
    assert main(["claims", "--mutants"]) == 0
    printed = capsys.readouterr().out
    assert "rejects 4 of 4 variants" in printed
    assert "passes: level 1% down (a weaker statement, true as well)" in printed
    assert printed.endswith(
        "7 variants: 6 rejected, 1 pass for a reason that their claims give, 0 missed\n"
    )


def test_command_says_no_by_its_exit_status(capsys, monkeypatch):
    claim = claims.find("3")
    wrong = replace(claim, expected=claims.FAILS)
    monkeypatch.setattr(claims, "ledger", lambda: [wrong])
    assert main(["claims"]) == 1
    assert "NOT AS EXPECTED: fails as stated" in capsys.readouterr().out
    blunt = replace(claim, check=lambda **parts: Finding(True, "sure"))
    monkeypatch.setattr(claims, "ledger", lambda: [blunt])
    assert main(["claims"]) == 0
    assert main(["claims", "--mutants"]) == 1
    assert "should be rejected: rate 3% up" in capsys.readouterr().out


def test_command_names_what_is_near(capsys):
    assert main(["claims", "--only", "prop:adaptive-ora-is-vald"]) == 2
    assert "did you mean prop:adaptive-ora-is-valid" in capsys.readouterr().err


def test_command_can_be_interrupted(capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(claims, "ledger", interrupt)
    assert main(["claims"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_page_is_a_table_with_links_and_filters():
    numbers = ("3", "8", "13", "64", "95")
    page = claims.Page([claims.find(number).verdict(mutants=True) for number in numbers])
    html = page._repr_html_()
    assert html.count("<tr") == 6
    assert html.count("<td") == 5 * html.count('<th scope="col">') == 25
    assert '<td class="corrected">holds with a correction</td>' in html
    assert '<td class="score">2 of 3</td>' in html
    assert html.count('type="radio"') == html.count("<label for=") == 6
    for mark in ("implemented", "corrected", "fails", "holds ours"):
        assert f'class="row-{mark}"' in html
    assert "<b>level 1% down</b> passes: a weaker statement, true as well" in html
    assert "<" not in re.sub(r"<[^<>]+>", "", html)


def test_places_without_a_number_of_the_paper_are_linked():
    """The others are linked by the book, as everywhere, unless the page goes beyond the paper."""

    def place(**changes):
        claim = replace(claims.find("3"), **changes)
        html = claims.Page([claim.verdict()])._repr_html_()
        return re.search(r"<td>\d+</td><td>(.*?)</td>", html)[1]

    link = '<a href="{}.html#x">{}</a>'
    chapter, beyond = "05-efficacy#x", "exact-bound#x"
    assert place(place="Section 5", explained=chapter) == "Section 5<br>" + link.format(
        "05-efficacy", "Chapter 5"
    )
    assert place(place="Figure 9", explained="E-adaptive-auditing#x").endswith(
        link.format("E-adaptive-auditing", "Appendix E")
    )
    assert place(place="Theorems 5.1 and C.1", explained=chapter) == "Theorems 5.1 and C.1"
    assert place(place="Algorithm 1", explained=chapter) == "Algorithm 1"
    assert place(place="Lemma A.7", explained=beyond) == "Lemma A.7<br>" + link.format(
        "exact-bound", "Exact bound"
    )


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("accuracy 0.485: -0.06002 towards 0", "accuracy 0.485: −0.06002 towards 0"),
        ("Clopper-Pearson, k-th, 10⁻⁹", "Clopper–Pearson, k-th, 10⁻⁹"),
        ("β = 1e-280, to 5e-05", "β = 10⁻²⁸⁰, to 5 · 10⁻⁵"),
        ("LRR n=1: -inf against 0.75", "LRR n = 1: −∞ against 0.75"),
        ("r = 100000, s.e. 0.00001", "r = 100,000, s.e. 0.00001"),
        ("v >= 1 and v <= r", "v ≥ 1 and v ≤ r"),
    ],
)
def test_texts_have_the_signs_of_a_book(plain, shown):
    assert typeset(plain) == shown


def test_verdicts_as_a_data_frame():
    verdicts = [claims.find("1").verdict(mutants=True), claims.find("96").verdict()]
    frame = claims.Page(verdicts).frame
    assert frame.index.tolist() == [1, 96]
    assert frame.query("kind == 'claim of this book'").index.tolist() == [96]
    assert frame["as_expected"].all()
    assert frame.loc[1, "variants_rejected"] == len(verdicts[0].rejected) > 0


def test_what_the_anytime_bound_leaves_is_as_its_row_says():
    def unused(epsilon, beta, n):
        worst = adaptive_failure_probability(epsilon, n, beta, bound="anytime")
        return round(100 * (1 - worst / beta))

    short = [unused(e, b, 10_000) for e in (0.0, 1.0, 3.0) for b in (0.05, 0.3)]
    remark = claims.find("ours:anytime-bound").remark
    assert f"{min(short)}% to {max(short)}% of β" in remark
    assert f"only {unused(3.5, 0.35, 200_000)}%" in remark


def test_a_claim_is_found_by_its_number_and_nothing_else():
    assert claims.find(5) is claims.find("5")
    for name in (0, -1, None, 2.5, "there is none such"):
        with pytest.raises((TypeError, ValueError), match=r"(name|label) must"):
            claims.find(name)
    for call in (claims.Page, claims.score):
        with pytest.raises(TypeError, match=r"verdicts must be like find\(\"1\"\).verdict"):
            call([claims.find(1)])
