"""The calculator page: its numbers against the library, and its form in a browser.

Needs Chromium and its driver, but no built book: the scripts are loaded in a bare page.
"""

import re
import shutil
from collections import Counter
from itertools import product
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from test_rendered import BUILT, HTML, NEEDS_BROWSER, REQUIRED, ROOT, browser, serve

import oralib
from oralib.bounds import AnyOrder, Anytime, Balanced, Certified, Exact, Pure, RandomR

pytestmark = NEEDS_BROWSER

__all__ = ["browser"]  # a fixture

SCRIPTS = [ROOT / "book" / "_static" / name for name in ("bounds.js", "calculator.js")]
#: The rules whose bounds the page computes, by its own words for them.
COMPUTED = {"pure": Pure.name, "exact": Exact.name, "random r": RandomR.name}
#: The rules for which it shows lines of Python.
OTHERS = (Anytime.name, AnyOrder.name, Certified.name, Balanced.name)
FEEDBACKS = ("none", "one-way", "list", "full", "all others")

#: A page that has nothing but a place for the calculator.
BARE = (
    "<!doctype html><html data-theme='light'><meta charset='utf-8'><title>bare</title>"
    "<div class='calculator'>Needs JavaScript.</div>"
    "<script src='bounds.js'></script><script src='calculator.js'></script></html>"
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The address of the bare page, a file."""
    folder = tmp_path_factory.mktemp("bare")
    for script in SCRIPTS:
        shutil.copy(script, folder)
    (folder / "bare.html").write_text(BARE, encoding="utf-8")
    return (folder / "bare.html").as_uri()


# ---------------------------------------------------------------------------------- the numbers


def drawn(rng):
    """The inputs of an audit: extremes, and many ordinary ones."""
    r = int(rng.choice([0, 1, 2, 10**6, *(10 ** rng.uniform(1, [3, 3, 4, 4, 6, 6])).astype(int)]))
    accuracy = rng.uniform(0.5, 1)
    by_chance = r / 2 + rng.uniform(0, 8) * np.sqrt(r) / 2  # where bounds begin
    v = int(
        rng.choice([0, r, max(r - 1, 0), *rng.binomial(r, accuracy, size=7), min(r, by_chance)])
    )
    n = int(rng.choice([r, 10**9, r + int(10 ** rng.uniform(0, 9))]))
    beta = float(rng.choice([1e-9, 0.05, 0.5, 10 ** rng.uniform(-9, np.log10(0.5))]))
    leaks = 10 ** rng.uniform(-4, 1) * beta * max(1, r) ** 0.5  # n δ where δ matters
    deltas = [0, 1e-12, 0.1, 10 ** rng.uniform(-12, -1), *[leaks / max(n, 1)] * 4]
    delta = float(np.clip(rng.choice(deltas), 1e-12, 0.1)) if rng.random() < 0.7 else 0.0
    balanced = rng.random() < 0.1
    case = {
        "number": str(rng.choice(["fixed", "output"], p=[0.8, 0.2] if balanced else None)),
        "feedback": str(rng.choice(FEEDBACKS, p=[0.35, 0.15, 0.15, 0.3, 0.05])),
        "coins": "balanced" if balanced else "independent",
    }
    if balanced or (delta > 0 and case["feedback"] in ("list", "full")):  # these take longer
        v, r = int(v * min(1, 800 / max(r, 1))), min(r, 800)
        n, delta = min(n, 1600), delta * n / min(n, 1600) if n else delta
    if balanced:
        n += n % 2
        case["feedback"] = "none" if rng.random() < 0.8 else case["feedback"]
    r_in = int(rng.choice([0, r // 2, r, rng.integers(r + 1)])) if balanced else None
    case["expected"] = int(rng.integers(1, n + 1)) if n and rng.random() < 0.4 else None
    return {"v": v, "r": r, "n": n, "delta": min(delta, 1.0), "beta": beta, "r_in": r_in, **case}


TOLD = [
    dict(v=95, r=100, n=1000, delta=2e-4, beta=0.05, number="fixed", feedback="full"),
    dict(v=731, r=1000, n=1000, delta=2e-5, beta=0.05, number="output", feedback="full"),
]
# Bounds with a certificate, where leaks matter.
TOLD += [
    dict(v=v, r=r, n=1000, delta=delta, beta=0.05, number="output", feedback="full")
    for (v, r), delta in product([(40, 40), (95, 100), (270, 350)], (1e-5, 3e-5, 3e-4, 1e-3))
]
# Every mechanism is (0, 1)-DP, so the largest δ refutes nothing.
TOLD += [
    dict(v=95, r=100, n=100, delta=1.0, beta=0.05, number=number, feedback=feedback)
    for number, feedback in product(("fixed", "output"), ("none", "full"))
]
INPUTS = [case | {"coins": "independent", "expected": None, "r_in": None} for case in TOLD]
INPUTS += [drawn(np.random.default_rng([7, i])) for i in range(1000 - len(TOLD))]


def by_library(v, r, n, delta, beta, number, feedback, coins, expected=None, r_in=None):
    """What the calculator computes, by oralib."""
    case = dict(beta=beta, delta=delta, n=n)
    found = {
        "pure": Pure().lower_bound(v, r, beta=beta),
        "exact": Exact().lower_bound(v, r, **case),
        "random r": RandomR(expected).lower_bound(v, r, **case),
        "estimate": oralib.epsilon_estimate(v, r),
    }
    fixed = number == "fixed"
    counts = oralib.Counts(v, r, n, "", fixed, feedback, coins, r_in)
    try:
        found["name"], found["reason"] = oralib.valid_rule(counts, delta).name, None
        found["bound"] = None
        if found["name"] in COMPUTED.values():
            claim = dict(beta=beta, delta=delta, expected=expected)
            found["bound"] = oralib.valid_lower_bound(counts, **claim)
    except ValueError as refusal:
        words = re.sub(r",? got [^;]*", "", str(refusal))  # the values are on the page
        words = words.replace("delta", "δ").replace("beta", "β")
        found["name"], found["bound"], found["reason"] = None, None, words
    return found


COMPUTE = (
    # JSON has no infinite numbers, which estimates may be.
    "return arguments[0].map(inputs => {"
    "  const audit = oralibCalculator.compute(inputs);"
    "  const bounds = ['pure', 'exact', 'random r']"
    "    .map(rule => [rule, oralibBounds.lowerBound(rule, inputs)]);"
    "  return { ...audit, ...Object.fromEntries(bounds), estimate: String(audit.estimate) };"
    "})"
)


def same(one, other):
    """To 1e-6; infinite numbers, and those that do not exist, only if both are."""
    if one is None or other is None or isinstance(other, str):
        return one == other
    return bool(np.isclose(one, other, rtol=0, atol=1e-6, equal_nan=True))


def test_every_bound_is_that_of_the_library(browser, bare):
    library = [by_library(**inputs) for inputs in INPUTS]
    rules = Counter(found["name"] for found in library)  # all of them are tried
    assert all(rules[rule] >= 30 for rule in (*COMPUTED.values(), *OTHERS, None)), rules
    browser.get(bare)
    page = browser.execute_script(COMPUTE, INPUTS)
    for inputs, ours, theirs in zip(INPUTS, page, library, strict=True):
        ours["estimate"] = float("nan" if ours["estimate"] == "null" else ours["estimate"])
        wrong = [name for name, right in theirs.items() if not same(ours[name], right)]
        assert not wrong, (inputs, ours, theirs)


def test_chart_has_the_p_values_of_the_library(browser, bare):
    browser.get(bare)
    program = (
        "const [rule, audit, levels] = arguments;"
        "return levels.map(epsilon => oralibBounds.pValue(rule, audit, epsilon))"
    )
    audits = [(75, 100, 1000, 1e-4, 0.05), (9, 12, 12, 1e-6, 0.3), (270, 350, 1000, 1e-3, 0.05)]
    levels = [0, 0.3, 1.0, 2.5]
    for v, r, n, delta, beta in audits:
        audit = dict(v=v, r=r, n=n, delta=delta, beta=beta, expected=None)
        claim = dict(epsilon=levels, n=n, delta=delta, beta=beta)
        expected = {
            "pure": Pure().p_value(v, r, epsilon=levels),
            "exact": Exact().p_value(v, r, **claim),
            "random r": RandomR().p_value(v, r, **claim),
        }
        for rule, values in expected.items():
            shown = browser.execute_script(program, rule, audit, levels)
            np.testing.assert_allclose(shown, values, rtol=1e-8, atol=1e-250)


# ------------------------------------------------------------------------------------- the form

SETUP = {"number": "fixed", "feedback": "none", "coins": "independent"}
EXAMPLE = {"v": "75", "r": "100", "n": "1000", "delta": "1e-5", "beta": "0.05", **SETUP}


def link(page, **inputs):
    return f"{page}?{urlencode({**EXAMPLE, **inputs})}"


def type_in(browser, **texts):
    """As a person does, key by key."""
    for name, text in texts.items():
        field = browser.find_element(By.ID, f"calculator-{name}")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(Keys.BACKSPACE, text)


def put(browser, **texts):
    """Put texts into fields all at once; choices stay."""
    browser.execute_script(
        "const form = document.querySelector('.calculator form');"
        "for (const [name, text] of Object.entries(arguments[0]))"
        "  if (form.elements[name].type === 'text') form.elements[name].value = text;"
        "form.dispatchEvent(new Event('input'));",
        texts,
    )


def choose(browser, name, value):
    browser.execute_script(
        "document.querySelector(`.calculator input[name='${arguments[0]}']"
        "[value='${arguments[1]}'] + label`).click()",
        *(name, value),
    )


def seen(browser, selector):
    """What can be read there; nothing if it is hidden."""
    text = browser.execute_script(
        "const found = document.querySelector(`.calculator ${arguments[0]}`);"
        "return found.checkVisibility() ? found.innerText ?? found.textContent : ''",
        selector,
    )
    return text.replace("\xa0", " ").strip()


def messages(browser):
    """The messages at the fields, by name; fields with one are marked as invalid."""
    return browser.execute_script(
        "const found = {};"
        "for (const place of document.querySelectorAll('.calculator .message')) {"
        "  const name = place.id.split('-')[1];"
        "  const inputs = [...document.querySelectorAll(`.calculator [name=${name}]`)];"
        "  const marked = inputs.every(x => x.getAttribute('aria-invalid') === 'true'"
        "    && x.getAttribute('aria-describedby') === place.id);"
        "  if (marked !== Boolean(place.innerText)) throw new Error(`${name} is marked wrongly`);"
        "  if (marked) found[name] = place.innerText;"
        "}"
        "return found"
    )


def filled(browser):
    """What stands in the form."""
    return browser.execute_script(
        "return Object.fromEntries(new FormData(document.querySelector('.calculator form')))"
    )


def assert_sane(browser):
    drawn = browser.execute_script("return document.querySelector('.calculator').innerHTML")
    assert not re.search(r"NaN|undefined|null|Infinity|\[object", drawn), drawn


def test_the_page_follows_what_is_typed(browser, bare):
    browser.get(bare)
    assert filled(browser) == EXAMPLE
    type_in(browser, v="80", n="1,000", delta="10^-5", beta="0.01")
    counts = oralib.Counts(80, 100, n=1000, r_fixed=True)
    bound = oralib.valid_lower_bound(counts, beta=0.01, delta=1e-5)
    below = f"{np.floor(1000 * bound) / 1000:.3f}"
    assert seen(browser, ".sentence") == (
        f"With 99% confidence, this mechanism is not (ε, 1e-5)-DP for any ε below {below}."
    )
    assert seen(browser, "svg text.bound") == below
    assert "by the exact bound" in seen(browser, "figcaption")
    choose(browser, "number", "output")
    assert "by the random-r bound" in seen(browser, "figcaption")
    type_in(browser, n="20,000", r="268", v="203", beta="0.05", expected="268")
    assert seen(browser, "svg text.bound") == "0.887"
    assert "expected=268" in seen(browser, "pre")
    choose(browser, "number", "fixed")
    choose(browser, "coins", "balanced")
    assert messages(browser) == {"r_in": "Please fill this in."}
    type_in(browser, r_in="134")
    assert seen(browser, ".headline") == "For this audit: the balanced bound"
    assert 'coins="balanced", r_in=134' in seen(browser, "pre")
    assert seen(browser, "figure") == ""  # there is no curve without a bound
    assert_sane(browser)
    choose(browser, "coins", "independent")
    choose(browser, "feedback", "all others")  # then the chart is taken away
    assert seen(browser, ".headline") == "No bound for this audit"
    assert "No bound is valid for a guesser who knows all" in seen(browser, ".sentence")
    assert seen(browser, "figure") == ""
    choose(browser, "feedback", "none")
    assert seen(browser, ".headline").startswith("ε is at least 0.8")
    assert seen(browser, "figure") != ""


def test_the_page_names_the_valid_rule(browser, bare):
    browser.get(bare)
    setups = product(("0", "1e-5"), ("fixed", "output"), FEEDBACKS, ("independent",))
    balanced = [("0", number, "none", "balanced") for number in ("fixed", "output")]
    for delta, *setup in [*setups, *balanced]:
        put(browser, v="75", r="100", n="1000", delta=delta, beta="0.05", r_in="50")
        for name, value in zip(SETUP, setup, strict=True):
            choose(browser, name, value)
        r_in = 50 if setup[-1] == "balanced" else None
        name = by_library(75, 100, 1000, float(delta), 0.05, *setup, r_in=r_in)["name"]
        if name is None:
            assert seen(browser, ".headline") == "No bound for this audit"
        elif name in COMPUTED.values():
            assert f"by the {name}." in seen(browser, "figcaption")
        else:
            assert seen(browser, ".headline") == f"For this audit: the {name}"
            assert seen(browser, ".sentence") == "Python computes it, by the lines below."


WRONG = [
    ("v", "", "Please fill this in."),
    ("v", "abc", "“abc” is not a number."),
    ("v", "101", "v must be at most r = 100."),
    ("r", "1001", "r must be at most n = 1,000."),
    ("n", "1,00", "Please write 64,000 or 0.05."),
    ("n", "64.000", "Please write 64,000 or 64000."),
    ("delta", "1.1", "δ must be from 0 to 1."),
    ("delta", "1e-999", "This is too small to compute with."),
    ("beta", "0", "β must be above 0 and below 1."),
    ("beta", "5%", "Please write 0.05 for 5%."),
    ("beta", "<b>x</b>", "“<b>x</b>” is not a number."),
]


def test_impossible_inputs_are_named_at_their_field(browser, bare):
    browser.get(bare)
    for name, text, expected in WRONG:
        put(browser, **{**EXAMPLE, name: text})
        assert messages(browser) == {name: expected}
        assert_sane(browser)
        assert seen(browser, ".headline") == "No result yet"
    type_in(browser, beta="0.05")
    assert messages(browser) == {}
    assert seen(browser, ".headline").startswith("ε is at least")


def test_a_link_restores_everything(browser, bare):
    inputs = {"v": "731", "r": "1_000", "n": "2e3", "delta": "0", "beta": ".01"}
    browser.get(bare)
    type_in(browser, **{name: inputs[name] for name in ("n", "r", "v", "delta", "beta")})
    for name, value in (("number", "output"), ("feedback", "full")):
        choose(browser, name, value)
    headline = seen(browser, ".headline")
    browser.execute_script(
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: async text => { window.taken = text; }}});"
        "document.querySelector('.calculator button').click()"
    )
    wait(browser, lambda: seen(browser, ".copied") == "The link is copied.")
    taken = browser.execute_script("return window.taken")
    browser.execute_script("document.querySelector('.calculator .lines button').click()")
    wait(browser, lambda: seen(browser, ".lines .copied") == "The lines are copied.")
    assert browser.execute_script("return window.taken") == seen(browser, "pre")
    browser.get("about:blank")
    browser.get(taken)
    assert filled(browser) == {**inputs, **SETUP, "number": "output", "feedback": "full"}
    assert seen(browser, ".headline") == headline


def wait(browser, condition):
    WebDriverWait(browser, 60, poll_frequency=0.05).until(lambda _: condition())


def test_by_keyboard_alone(browser, bare):
    browser.get(bare)
    browser.execute_script("document.getElementById('calculator-v').focus()")
    for name in ("v", "r", "n", "delta", "beta"):
        assert browser.switch_to.active_element.get_attribute("name") == name
        browser.switch_to.active_element.send_keys(Keys.ENTER)  # which sends nothing
        browser.switch_to.active_element.send_keys(Keys.TAB)
    for name, value in (("number", "output"), ("feedback", "one-way"), ("coins", "balanced")):
        browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        assert filled(browser)[name] == value
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Copy link"
    assert seen(browser, ".headline") == "No bound for this audit"


def test_example_fills_the_form_and_back_undoes(browser, bare):
    browser.get(link(bare, v="60"))
    browser.execute_script("document.querySelector('a[href^=\"?v=160\"]').click()")
    assert filled(browser)["v"] == "160"
    assert "by the random-r bound" in seen(browser, "figcaption")
    assert parse_qs(urlsplit(browser.current_url).query)["r"] == ["210"]
    browser.back()
    wait(browser, lambda: filled(browser)["v"] == "60")


#: Everything is zero, infinite, tiny or huge once.
ODD = f"""v=0&r=0&n=0 v=1&r=1&delta=0.5&beta=0.999999 v=100&beta=1e-300 v=0&delta=0 v=100&delta=1
v={10**9}&r={10**9}&n={2**53}&delta=1e-300 v=500100000&r={10**9}&n={10**9}&delta=1e-12
v=51&delta=0&beta=0.46&number=output&feedback=full v=75&n={2**53}&feedback=full
v=160&r=210&coins=balanced&r_in=210 v=56&coins=balanced&r_in=50 v=75&coins=balanced&feedback=list
v=75&number=output&expected=40
v=75&delta=1e-5&number=output&feedback=full v=75&feedback=all+others"""


@pytest.mark.parametrize("odd", ODD.split())
def test_odd_audits_have_words_and_python_agrees(browser, bare, odd):
    browser.get(link(bare, **dict(parse_qsl(odd))))
    assert_sane(browser)
    code = browser.execute_script("return document.querySelector('.calculator pre').textContent")
    *lines, last = code.splitlines()
    names = {}
    exec("\n".join(lines), names)
    headline, sentence = seen(browser, ".headline"), seen(browser, ".sentence")
    if headline == "No bound for this audit":
        with pytest.raises(ValueError, match=r"no bound|a bound is known only"):
            eval(last, names)
        return
    if headline.startswith("For this audit"):
        assert 0 <= eval(last, names) < np.inf
        return
    bound = eval(last, names)
    if bound == 0:
        assert headline == "Nothing is shown"
        assert re.match("No ε is refuted at δ = .*, since ", sentence)
        return
    assert "100%" not in sentence  # no bound is certain
    said = float(re.search(r"below (\S+)\.$", sentence)[1])
    assert 0 < said <= bound
    assert said >= 0.98 * bound


@pytest.mark.skipif(not REQUIRED and not BUILT, reason="needs a built book")
def test_book_and_form_have_one_example(browser):
    with serve(HTML) as address:
        browser.get(f"{address}/book/which-bound.html")
        cells = "return [...document.querySelectorAll(arguments[0])].map(x => x.innerText)"
        worked = browser.execute_script(cells, ".cell_output table td.number")
        exact = np.floor(1000 * float(worked[2])) / 1000
        assert seen(browser, ".headline").startswith(f"ε is at least {exact:.3f}")
        assert f"ε = {float(worked[5]):.3f}" in seen(browser, ".estimate")
