"""A chapter run with other parameters shows nothing of its own setting without saying so."""

import json
import shutil

import nbformat
import pytest
from reruns import kept, outputs

from orabook import place
from orabook.extensions import stored_outputs

#: Small sizes that stay, a change of the privacy level, and a change of all the rest.
RUNS = {
    "01-introduction": ({"trials": 5}, {"epsilon": 0.2}, {"beta": 0.1}),
    "02-preliminaries": ({"trials": 50}, {"epsilon": 3}, {"k": 80, "delta": 1e-3, "beta": 0.1}),
    "03-problem-setting": ({"trials": 5}, {"epsilon": 3}, {"p": 0.7, "beta": 0.1}),
    "04-the-gaps": ({}, {"epsilon": 1}, {"n": 3, "p": 0.4}),
    "05-efficacy": (
        {"trials": 5},
        {"epsilon": 1},
        {"n": 3000, "d": 600, "steps": 50, "p": 0.4, "delta": 1e-6, "beta": 0.1},
    ),
    "06-dp-sgd": (
        {"trials": 20, "ratios": [1, 2, 5]},
        {"epsilon": 4},
        {
            **{"d": 400, "k": 40, "steps": 50, "delta": 1e-6, "beta": 0.1, "tau": 1.5},
            "ratios": [0.5, 1, 3],
        },
    ),
    "07-conclusions": ({"trials": 5}, {"epsilon": 1}, {"n": 3, "beta": 0.1}),
    "A-guessing-based-auditing": ({"trials": 20}, {"epsilon": 2}, {"n": 6, "beta": 0.1}),
    "B-gaps-in-detail": ({"trials": 5}, {"epsilon": 1}, {"n": 6, "p": 0.4, "beta": 0.1}),
    "C-efficacy-in-detail": (
        {"trials": 5},
        {"epsilon": 2, "epsilons": [0.7, 1.5, 3]},
        {"n": 5000, "p": 0.4, "beta": 0.1},
    ),
    "D-dp-sgd-in-detail": (
        {"trials": 5},
        {"epsilons": [1.5, 3]},
        {"n": 2400, "d": 400, "k": 40, "delta": 1e-6},
    ),
    "E-adaptive-auditing": (
        {"trials": 5},
        {"epsilon": 2},
        {"n": 600, "sets": 60, "sizes": [2, 3, 4], "beta": 0.1},
    ),
    "12-a-leak-that-one-run-cannot-see": ({"trials": 4}, {"beta": 0.1}, {"trials": 6, "seed": 8}),
    "auditing-a-real-training": ({}, {"epsilon": 3}, {"n": 500, "delta": 1e-6, "beta": 0.1}),
    "09-exact-bound": ({}, {"delta": 1e-6}, {"n": 30_000, "beta": 0.1}),
    "08-how-much-can-one-run-show": (
        {"trials": 3, "steps": 50},
        {"epsilon": 4},
        {"d": 200, "steps": 40, "delta": 1e-6, "sample_rate": 0.2},
    ),
    "questions": (
        {"trials": 100},
        {"epsilon": 3},
        {"n": 1000, "k": 100, "delta": 1e-6, "beta": 0.1},
    ),
    "running": (
        {"trials": 5},
        {"epsilon": 4},
        {"d": 400, "k": 40, "steps": 50, "ratio": 4, "delta": 1e-6, "beta": 0.1},
    ),
    "10-feedback": (
        {"trials": 3, "ratios": [1, 5]},
        {"epsilon": 2, "epsilons": [1.5, 3]},
        {"n": 600, "d": 600, "beta": 0.1},
    ),
    "11-what-an-assumption-buys": ({}, {"n": 800}, {"k": 80, "delta": 1e-6, "beta": 0.1}),
}

#: What stays, by words of its source: how the page labels it, and why it stays. The label stands in
#: the output, in its caption, or in the paragraph of a number.
KEPT: dict[str, list[tuple[str, str, str]]] = {
    "01-introduction": [
        ("drawings.one_run_game()", "A one-run audit: many coins", "a drawing of the game"),
    ],
    "02-preliminaries": [
        ("figures.outputs(count)", "A count without noise", "a mechanism without parameters"),
        ("oralib.p(levels_tried)", "privacy level ε</th>", "levels in the table's first column"),
        ("lambda D: D", "all eight guesses are right", "a mechanism without parameters"),
        ("audit(*play)", "two groups of four people", "a mechanism without parameters"),
        ('shares["exact"]', "probabilities of $(V, R)$", "the game above"),
        ("oralib.p(1.0)", "If the promise of 1 is kept", "a level that is named"),
        ('"refuted" if', "The claim of 1", "a condition"),
        ('"would have refuted it"', "The claim of 1", "a condition"),
    ],
    "03-problem-setting": [
        ("epsilon_estimate(2, 5)", "2 right guesses out of 5", "an example"),
        ("lower_bound(1, 2, beta=0.99)", "1 right guess out of 2", "an example"),
        ("left_out:.3f", "An abstention shows nothing", "who guesses has seen the data"),
    ],
    "04-the-gaps": [
        ("drawings.three_gaps()", "Three reasons why a guesser", "a drawing"),
        ("nas_bounds = ", "over all $k$ up to 200", "depends on k alone"),
        ('"Name and Shame": (sizes, nas_bounds)', "With few guesses", "depends on k alone"),
        ("ends = experiments.summarise(played)", "at $p = \\frac14$", "the game of the web page"),
        ("channel(oralib.Count(), ", "three elements to", "sizes that the paragraph names"),
    ],
    "05-efficacy": [
        ('losses[f"others {others}"]', "for the first person", "a count of three coins"),
        ('rules = {"as printed"', "= \\frac34", "randomized response at this accuracy"),
        ("kinds.insert(0", "Here are the accuracies", "two households"),
        ("@ kinds[", "most exposed person", "two households"),
        ("k=[k for _, k in rows]", "Making fewer guesses closes", "most rows have no parameter"),
        ('"exactly two"', "Name and Shame with $k = 2$", "a mechanism without parameters"),
        ('some["95% bound', "95% bound on ε", "an example"),
        ('curves_of(sweep, "x", "efficacy")', "½, blind guessing", "always ½"),
        ("def cis_2", "of 8,000 elements", "an example"),
        ("figures.stacked(curves", "Name and Shame", "exposes one element in every run"),
        ("np.array([3, 1])", "for the first element", "losses in the exercise"),
        ("smallest.optimal_efficacy", "with probability 0.9 on", "the mechanism it describes"),
    ],
    "06-dp-sgd": [
        ("of_six", "With six elements", "an example without parameters"),
        ("quoted[", "the paper's setting", "audits that the paper quotes"),
        ("cost[", "in the paper's setting", "the same audits"),
        ("½, blind guessing", "½, blind guessing", "a level that belongs to every setting"),
        ("story", "In this set of four elements", "an example without parameters"),
        ("LARGEST_CERTIFIED_N", "takes too long", "a limit of the library"),
        ('f"{few:,}"', "audits each", "the number of trials, at most 2,000"),
        ("at('", "in the paper's setting", "committed audits"),
        ("audits_of[", "the paper's main experiment", "committed audits"),
        ("view = explored", "at ε = 2", "a committed table"),
        ("beyond[", "in the paper's setting", "committed audits"),
        ("at_sliders[", "at $\\varepsilon=2$", "committed audits"),
        ("explored['", "On these sliders", "committed audits"),
    ],
    "07-conclusions": [
        ("int(unaided.index[", "Among the powers of two", "the same for every β that we tried"),
    ],
    "A-guessing-based-auditing": [
        ('{"this audit": (wrong, here)', "LRR with $\\varepsilon=4$", "an example"),
        ("marginal_failure", "The 95% bound fails", "the same example"),
        ("oralib.bounds.clopper_pearson_lower(1, 2, 0.99)", "$\\beta=0.99$", "an example"),
        ("lasting_price(1, 0.", "nats at $\\beta=0.1$", "two values of β that are named"),
    ],
    "B-gaps-in-detail": [],
    "C-efficacy-in-detail": [
        ("levels, erased = ", "Mechanisms with the same privacy level", "ε is on the axis"),
        ("success_given_others", "On Count with four elements", "no parameter"),
        ("many = np.unique(", "Name and Shame", "a mechanism without parameters"),
        ("2 * np.sqrt(2) - 2", "It depends only slightly on", "the least over all ε"),
    ],
    "D-dp-sgd-in-detail": [
        ("count[", "Exact computation agrees", "a theorem at small sizes"),
        ("best_set", "shows this limit", "a theorem, without parameters"),
        ("twice", "Sets of $2\\log_2n$ elements", "the same"),
        ("best_on_count(", "for two and three", "the same"),
        ("studies.run_dpsgd", "four coordinates", "an example of eight elements"),
    ],
    "E-adaptive-auditing": [
        ("guess_certain).sum", "Exact tables agree", "a theorem at small sizes"),
        ("means.iloc[-1", "For sets of ten", "the same"),
    ],
    "12-a-leak-that-one-run-cannot-see": [
        ("what Opacus divides by", "what Opacus divides by", "a formula of Opacus and its noise"),
        ("opacus", "with Opacus", "a version"),
        ("pytorch", "and PyTorch", "a version"),
        ("the midpoint", "the midpoint", "a threshold on the weights"),
        ("certified(", "at sample rate 0.", "what an accountant says of one step"),
        ("frame.iloc[::3]", "best of 90 to 99", "laws without parameters"),
        ("by_scale", "The more coins", "laws without parameters"),
        ("big_size = rows", "divided by, at N", "the same formula"),
        ("big_size:,", "a million weights", "the same formula"),
        ("expected_batch(m, 10)", "For 101 to 109", "an exercise"),
    ],
    "auditing-a-real-training": [
        ("oraudit.neighbours(", "with the noise off", "how far an example moves a clipped sum"),
        ("wrongly_accused", "at most one honest training in", "how often checks are wrong"),
        ("made['n']", "TensorFlow Privacy", "a committed file"),
        ("planted", "We planted", "committed trainings"),
        ("not_by_scores", "leave no trace", "committed trainings"),
        ("accused", "How many honest trainings", "committed trainings"),
        ("len(half)", "trainings with Opacus and half of the noise", "committed trainings"),
        ("black_box.", "wrong labels", "a training without privacy, and a word that follows"),
        ("by_bug", "The table says", "committed trainings"),
        ("honest_runs", "How many honest trainings", "committed trainings"),
        ("half.", "trainings with Opacus and half of the noise", "committed trainings"),
        ("power_table", "the paper's setting", "exact laws of that setting"),
        ("figures.lines(", "in four stated trainings", "exact laws of trainings that are named"),
        ("price", "On an H200", "measured elsewhere"),
        ("by_score.round", "These are means over", "committed trainings"),
        ("repeats", "trainings of each kind", "committed trainings"),
        ("silent", "Clipping without noise", "committed trainings"),
    ],
    "09-exact-bound": [
        ("idea_of_the_exact_bound", "worst mechanism uses all of δ", "a drawing of the idea"),
        (
            "tables.show(judged",
            "with an $\\varepsilon$ and a $\\delta$ of their own",
            "small cases",
        ),
        ('f"{large:.3f}"', "at $\\delta=10^{-5}$ and $\\beta=0.05$", "an example with numbers"),
        ('f"{ten:.3f}"', "at $\\delta=10^{-5}$ and $\\beta=0.05$", "the same example"),
        (
            "of_seven = p_value",
            "$\\delta=10^{-4}$, $\\varepsilon=0$ and $\\beta=0.05$",
            "a counterexample",
        ),
        ('f"{fails:.4f}"', "over $\\beta=0.05$", "the counterexample"),
    ],
    "08-how-much-can-one-run-show": [
        ("ladder", "paper's setting", "committed audits"),
        ("reported", "paper's setting", "the paper's own numbers"),
        ("free", "paper's setting", "committed audits"),
        ("shown(", "paper's setting", "committed audits"),
        ("added", "paper's setting", "differences between committed audits"),
        ("figures.heatmap(", "in the paper's setting", "a committed table"),
        ("hopping_canaries", "Canaries that hop keep meeting", "a drawing of the idea"),
        ("risen", "paper's setting", "committed audits"),
        ("lost", "paper's setting", "shares of a distance between committed bounds"),
        ("staying", "paper's setting", "a committed bound"),
        ("best", "paper's setting", "committed audits"),
        ("missing", "paper's setting", "beside a committed bound"),
        ("paper_limit", "paper's setting", "beside committed bounds"),
        ("paper_exact", "paper's setting", "beside committed bounds"),
        ("paper_both", "paper's setting", "what guesses of both sides reach there"),
        ("two[", "paper's setting", "runs of a size that is named"),
        ("ours", "paper's setting", "committed audits"),
        ("room", "paper's setting", "committed ceilings"),
        ("less_noise", "paper's setting", "a share of its noise"),
        ("noisy[", "paper's setting", "committed trainings"),
        ("fine[", "paper's setting", "committed trainings"),
    ],
    "questions": [
        ("guesses_needed(", "The last column is for 95% confidence", "what ε means, at δ = 0"),
        ("other = pd.read_csv", "with 200 guesses, $\\delta=10^{-5}$", "a committed table"),
        ("on_blind_scores.loc[", "blind scores", "a committed table"),
    ],
    "running": [
        ("grid.read_text", "at ε = 2", "a grid file"),
        ("figures.heatmap", "here at ε = 2", "a committed table"),
        ("best['", "for $\\varepsilon = 2$", "the same table"),
        ("k == 100", "for $\\varepsilon = 2$", "the same table"),
        ("figure_8[", "points of the new $\\varepsilon$", "another grid file"),
        ("plane['run_valid']", "At $\\varepsilon = 2$", "the same table"),
        ("len(plane)", "at $\\varepsilon = 2$", "the same table"),
    ],
    "10-feedback": [
        ("ways_of_feedback", "here for δ = 0", "a drawing of the rules"),
        ("oralib.p(1.0)", "$p(1)=$", "an exercise at ε = 1"),
        ("muting", "publishes the signs one by one", "an example without parameters"),
        ("failure > 2 * beta", "is allowed", "a condition"),
    ],
    "11-what-an-assumption-buys": [
        ("claims['independent'][4]", "with $\\beta=0.05$", "a committed table"),
        (
            "tables.show(bench_table",
            "for $\\delta=10^{-5}$ and $\\beta=0.05$",
            "a published benchmark",
        ),
        ('f"{share:.0%}"', "for $\\delta=10^{-5}$ and $\\beta=0.05$", "the benchmark"),
        ("chosen.", "with 220 steps", "the benchmark"),
        ("fixed.mean()", "with 220 steps", "the benchmark"),
        ("blind_share", "with 220 steps", "the benchmark"),
        ("cifar_table", "on CIFAR-10", "published audits"),
        ("noise_table", "on CIFAR-10", "beside published audits"),
        ("few_canaries[", "on CIFAR-10", "a committed table"),
        ("apart.max()", "on CIFAR-10", "beside published audits"),
        ("scatter.m", "on CIFAR-10", "a committed table"),
        ("reached", "on CIFAR-10", "beside published audits"),
        ("on_cifar.index[-1]", "on CIFAR-10", "one of the published ε"),
        ("isolated['found_stated']", "On CIFAR-10", "a committed table"),
        ('f"{far:.2f}"', "At $\\mu=0.5$", "an exercise"),
        ("in_the_end", "At $\\mu=0.5$", "an exercise"),
        ("alike", "\\Phi^{-1}(p(1))", "an exercise"),
        ("is_monotonic_increasing", "each excludes mechanisms", "a condition"),
    ],
}


def unlabelled(chapter):
    """The outputs of a chapter that stay and do not say of which setting they are."""
    sizes, *changes = RUNS[chapter]
    stays = kept([outputs(chapter, sizes | change) for change in ({}, *changes)])
    left = []
    used = set()
    for output in stays:
        reasons = [entry for entry in KEPT[chapter] if entry[0] in output.source]
        used |= set(reasons)
        if not any(label in output.beside for _, label, _ in reasons):
            left.append(str(output))
    assert used == set(KEPT[chapter]), f"not needed: {set(KEPT[chapter]) - used}"
    return left


@pytest.mark.slow
@pytest.mark.parametrize("chapter", RUNS)
@pytest.mark.filterwarnings("ignore")  # such as those about means of few audits
def test_what_stays_in_a_rerun_is_labelled(chapter):
    if missing := stored_outputs.missing(place.BOOK / f"{chapter}.ipynb"):
        pytest.skip(f"needs {', '.join(missing)}")
    assert not (left := unlabelled(chapter)), "\n- ".join(["", *left])


def test_every_chapter_with_parameters_is_run_again():
    tagged = {
        path.stem
        for path in place.BOOK.glob("*.ipynb")
        if any(
            "parameters" in cell.metadata.get("tags", []) for cell in nbformat.read(path, 4).cells
        )
    }
    assert tagged == set(RUNS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_committed_table_without_label_is_found(tmp_path, monkeypatch):
    """Planted in a copy of a chapter, without and with its label."""
    book = tmp_path / "book"
    shutil.copytree(place.BOOK, book, ignore=shutil.ignore_patterns("_static"))
    path = book / "04-the-gaps.ipynb"
    notebook = nbformat.read(path, 4)
    source = (
        "import pandas as pd\nfrom orabook import tables\nfrom orabook.place import book_file\n"
        'tables.show(pd.read_csv(book_file("data/best-bounds.csv")))'
    )
    caption = nbformat.v4.new_markdown_cell("Computed for ε = 2.")
    notebook.cells += [nbformat.v4.new_code_cell(source), caption]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    monkeypatch.setattr(place, "BOOK", book)
    (left,) = unlabelled("04-the-gaps")
    assert "best-bounds.csv" in left
    entry = ("data/best-bounds.csv", "Computed for ε = 2", "a committed table")
    monkeypatch.setitem(KEPT, "04-the-gaps", [*KEPT["04-the-gaps"], entry])
    assert unlabelled("04-the-gaps") == []
