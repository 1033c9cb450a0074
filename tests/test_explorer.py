"""The explorer and the gap game: their numbers, in a real browser.

The scripts are tried on a bare page, opened as a file. Tests of the rendered page need a built
book; what needs Chromium is skipped where it is missing, unless ORALIB_REQUIRE_BROWSER is set.
"""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.keys import Keys
from test_dpsgd import same_law
from test_drawings import contrast
from test_rendered import HTML, NEEDS_BROWSER, REQUIRED, ROOT, browser

import oralib
from orabook.builder import data
from orabook.experiments import REPORTED
from orabook.extensions import explorer

TABLE = pd.read_csv(explorer.TABLE)
POINTS = TABLE.set_index(["method", "epsilon", "x", "k"]).sort_index()
PAGE = HTML / "book" / "06-dp-sgd.html"
CHAPTER = HTML / "book" / "04-the-gaps.html"


__all__ = ["browser"]  # a fixture


def needs_browser(test):
    for mark in NEEDS_BROWSER:
        test = mark(test)
    return test


def needs_page(test):
    skip = pytest.mark.skipif(not REQUIRED and not PAGE.exists(), reason="needs a built book")
    return needs_browser(skip(test))


# ------------------------------------------------------------------------------------ the numbers


def test_every_position_of_the_sliders_has_its_numbers():
    grid = [data.WAYS, *(data.EXPLORED[name] for name in ("epsilon", "x", "k"))]
    assert set(POINTS.index) == set(pd.MultiIndex.from_product(grid))
    assert POINTS.index.is_unique
    trials = {name: number for name, (_, number) in data.WAYS.items()}
    assert (TABLE["trials"] == TABLE["method"].map(trials)).all()
    assert TABLE["accuracy"].between(0.5, 1).all()
    assert (TABLE["bound"] + 3 * TABLE["bound_se"] < TABLE["epsilon"]).all()
    for x, (mean, error) in REPORTED.items():  # near what the paper reports
        row = POINTS.loc[("staying", 2.0, x, 100)]
        assert abs(row["bound"] - mean) < 3 * np.hypot(row["bound_se"], error)
    assert explorer.TABLE.stat().st_size < 80_000
    told = explorer.table()  # on the page
    for (method, epsilon, x, k), row in POINTS.iterrows():
        shown = told["points"][f"{method} {epsilon:g} {x} {k}"]
        assert shown == row[["bound", "bound_se", "accuracy"]].tolist()


@pytest.mark.parametrize("way", data.WAYS)
def test_the_numbers_are_those_of_this_library(way):
    """The first block of audits, played again."""
    again = data.explored(2.0, 2, way, trials=data.FIRST)
    kept = POINTS.loc[way].loc[2.0].loc[2]
    assert again["first"].tolist() == pytest.approx(kept["first"].tolist(), abs=1e-4)


# ----------------------------------------------------------------------------------- a bare page

#: All scripts, each once.
FILES = tuple(dict.fromkeys(name for names in explorer.SCRIPTS.values() for name in names))
SHEET = "explorer.css"

BARE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">
<title>bare</title><link rel="stylesheet" href="{sheet}">
<div class="explorer"><p>no script</p></div><div class="gap-game"><p>no script</p></div>
{scripts}</html>"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The address of a page of all three."""
    folder = tmp_path_factory.mktemp("bare")
    explorer.put_into(folder)
    for name in (*FILES, SHEET):
        if not (folder / name).exists():
            shutil.copy(ROOT / "book" / "_static" / name, folder)
    scripts = "".join(f'<script defer src="{name}"></script>' for name in FILES)
    html = BARE.format(sheet=SHEET, scripts=scripts)
    (folder / "page.html").write_text(html, encoding="utf-8")
    return (folder / "page.html").as_uri()


@pytest.fixture
def page(browser, bare):
    """The bare page, opened afresh."""
    browser.set_window_size(1000, 1000)
    browser.get(bare)
    return browser


def find(browser, selector):
    return browser.find_element("css selector", selector)


def press(browser, words):
    """A button, by the keyboard."""
    named = (
        "return [...document.querySelectorAll('button')].find(b => b.textContent === arguments[0])"
    )
    browser.execute_script(named, words).send_keys(Keys.ENTER)


def answer(browser):
    """The sentence of the sliders, as numbers."""
    said = find(browser, ".explorer [role=status]").text
    pattern = (
        r"Mean bound ([\d.]+) ± ([\d.]+) of ε = ([\d.]+), estimate ([\d.]+|∞), accuracy ([\d.]+)%: "
        r"(\d+) guesses at ([\d,]+) canaries on 1,000 coordinates, (.*)\."
    )
    return re.fullmatch(pattern, said).groups()


def expected(method, epsilon, x, k):
    words = {"staying": "canaries that stay", "hopping": "canaries that hop"}
    words["one-way"] = "canaries that stay, with one-way feedback"
    row = POINTS.loc[(method, epsilon, x, k)]
    bound, error, accuracy = row["bound"], row["bound_se"], row["accuracy"]
    estimate = "∞" if accuracy == 1 else oralib.p_inv(accuracy)
    return bound, error, epsilon, estimate, 100 * accuracy, k, 1000 * x, words[method]


def assert_shown(browser, *place):
    for shown, true in zip(answer(browser), expected(*place), strict=True):
        if isinstance(true, str):
            assert shown == true
        else:
            digits = len(shown.partition(".")[2])
            assert float(shown.replace(",", "")) == pytest.approx(true, abs=0.5001 * 10**-digits)


@needs_browser
def test_sliders_by_the_keyboard(page):
    assert_shown(page, "staying", 2.0, 8, 100)  # the paper's setting
    assert find(page, "#explorer-by-elements").text.count("certified ε = 2") == 1
    find(page, "#explorer-x").send_keys(Keys.ARROW_RIGHT)
    assert_shown(page, "staying", 2.0, 12, 100)
    find(page, "#explorer-k").send_keys(Keys.END)
    assert_shown(page, "staying", 2.0, 12, 800)
    find(page, "#explorer-epsilon").send_keys(Keys.HOME)
    assert_shown(page, "staying", 1.0, 12, 800)
    find(page, "input[value=staying]").send_keys(Keys.ARROW_DOWN)
    assert_shown(page, "hopping", 1.0, 12, 800)
    names = ["epsilon", "x", "k"]
    values = [find(page, f"#explorer-{name}").get_attribute("aria-valuetext") for name in names]
    assert values == ["ε = 1", "12 per coordinate", "800 guesses"]
    number = find(page, ".explorer-number").text
    assert number == " ± ".join(answer(page)[:2])
    press(page, "The paper’s setting")
    assert_shown(page, "staying", 2.0, 8, 100)


@needs_browser
def test_curves_stand_out_in_both_themes(page):
    boxes = re.findall(r"--house-box: (#\w{6})", (ROOT / "book/_static/house.css").read_text())
    curves = "return document.querySelector('#explorer-by-elements').data.filter(x => x.line)"
    shown = page.execute_script(f"{curves}.map(x => [x.line.color, x.opacity ?? 1])")
    assert len({colour for colour, _ in shown}) == len(data.WAYS)
    assert all(opacity == 1 for _, opacity in shown)  # else they would be mixed with the box
    for box in boxes:
        for colour, _ in shown:
            assert contrast(box, colour) >= 3, (box, colour)
    assert len(boxes) == 2


# -------------------------------------------------------------------------------------- the game


@needs_browser
def test_game_has_the_bound_of_the_library(page):
    """For all counts of up to 32 guesses, and at another level of confidence."""
    counts = [(v, r) for r in range(33) for v in range(r + 1)]
    bounds = "return arguments[0].map(([v, r]) => window.oneRunGame.bound(v, r, arguments[1]))"
    for beta in (0.05, 0.01):
        shown = page.execute_script(bounds, counts, beta)
        true = oralib.epsilon_lower_bound(*np.transpose(counts), beta=beta)
        np.testing.assert_allclose(shown, true, atol=1e-9)


GAMES = {
    "response": (oralib.LocalRandomizedResponse(2.0), oralib.ThresholdGuesser()),
    "shame": (oralib.NameAndShame(), oralib.ThresholdGuesser()),
    "nothing": (oralib.AllOrNothing(0.25), oralib.ThresholdGuesser()),
    "sums": (oralib.CountInSets(4), oralib.ThresholdGuesser(np.inf)),
}


@needs_browser
@pytest.mark.parametrize("name", GAMES)
def test_games_have_the_laws_of_the_library(page, name):
    assert page.execute_script("return window.oneRunGame.mechanisms") == list(GAMES)
    played = page.execute_script(
        "const { play } = window.oneRunGame;"
        "const parts = ({ coins, guesses, v, r }) => ({ coins, guesses, v, r });"
        "return Array.from({ length: 2000 }, (_, seed) => parts(play(arguments[0], seed)));",
        name,
    )
    coins, guesses = (np.array([each[part] for each in played]) for part in ("coins", "guesses"))
    v, r = (np.array([each[part] for each in played]) for part in "vr")
    assert (v == (coins == guesses).sum(axis=1)).all()
    assert (r == (guesses != 0).sum(axis=1)).all()
    assert same_law((coins == 1).sum(axis=1), np.random.default_rng(1).binomial(32, 0.5, 2000))
    assert np.abs((coins == 1).mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)
    mechanism, guesser = GAMES[name]
    counts = oralib.one_run(mechanism, guesser, 32, trials=2000, seed=1)
    assert same_law(v, counts.v)
    assert same_law(r, counts.r)


def state(browser):
    return browser.execute_script("return document.querySelector('.game-stage').dataset.step")


@needs_browser
@pytest.mark.parametrize("name", GAMES)
def test_game_goes_step_by_step(page, name):
    page.execute_script("document.querySelector(`input[value=${arguments[0]}]`).click()", name)
    assert state(page) == "bound"  # a whole audit is shown at first
    press(page, "Again")
    seen = [state(page)]
    for _ in range(5):
        press(page, "Next step")
        seen.append(state(page))
    assert seen == ["ready", "coins", "run", "guesses", "counts", "bound"]
    said = find(page, ".gap-game [role=status]").text
    numbers = r"v = (\d+) of r = (\d+) gives the lower bound ([\d.]+) on ε"
    v, r, bound = re.search(numbers, said).groups()
    counts = oralib.Counts(int(v), int(r), n=32)
    assert -1e-9 <= oralib.valid_lower_bound(counts) - float(bound) < 0.01  # rounded down
    press(page, "Next step")  # which is at its end
    assert state(page) == "bound"
    press(page, "Again")
    assert state(page) == "ready"


@needs_browser
def test_a_seed_is_a_run(page):
    def shown():
        circles = page.find_elements("css selector", ".game-coin")
        return [circle.get_attribute("class") for circle in circles]

    first = shown()
    press(page, "Another run")
    assert find(page, "#game-seed").get_attribute("value") == "2"
    assert shown() != first
    find(page, "#game-seed").send_keys(Keys.BACKSPACE, "1", Keys.TAB)
    assert shown() == first
    press(page, "100 more runs")
    tally = find(page, ".game-tally").text
    mean = re.search(r"102 runs of this mechanism so far: mean bound ([\d.]+)", tally)[1]
    seeds = "[1, 2, ...Array.from({ length: 100 }, (_, i) => i + 101)]"
    games = f"return {seeds}.map((seed) => oneRunGame.play('response', seed))"
    counts = [(each["v"], each["r"]) for each in page.execute_script(games)]
    bounds = oralib.epsilon_lower_bound(*np.transpose(counts))
    assert -1e-9 <= bounds.mean() - float(mean) < 0.01  # rounded down, as the bounds are


# ------------------------------------------------------------------------------ the rendered page


@needs_page
def test_the_rendered_page_works_from_a_file(browser):
    browser.get(PAGE.as_uri())
    assert_shown(browser, "staying", 2.0, 8, 100)
    find(browser, "#explorer-x").send_keys(Keys.ARROW_LEFT)
    assert_shown(browser, "staying", 2.0, 6, 100)
    browser.get(CHAPTER.as_uri())
    assert state(browser) == "bound"
    press(browser, "Again")
    press(browser, "Next step")
    assert state(browser) == "coins"
