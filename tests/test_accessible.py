"""Every page under axe-core, the checker of accessibility, in both themes and on a phone.

Needs what ``test_rendered.py`` needs, and axe-core, which ``.ci/run`` installs; skipped where they
are missing, unless ORALIB_REQUIRE_BROWSER is set.
"""

import pytest
from test_rendered import BUILT, ROOT, address, browser, marks, open_page, pages

AXE = ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = marks(BUILT and AXE.exists(), "chromedriver, axe-core and a built book")

__all__ = ["address", "browser"]  # fixtures

#: Colours that change slowly would be looked at half-way. To look at each of the thousands of
#: pieces of which a formula is drawn and read, all in the colour of its sentence, would take
#: minutes, and so would every word of code: one word of each kind in each kind of box stays.
PREPARE = (
    "const style = document.createElement('style');"
    "style.textContent = '* { transition: none !important; animation: none !important; }';"
    "document.head.append(style);"
    "const formulas = document.querySelectorAll('mjx-math, mjx-assistive-mml math');"
    "formulas.forEach(formula => formula.replaceChildren());"
    "const seen = new Set();"
    "document.querySelectorAll('pre span').forEach(word => {"
    "  const kind = word.className + ' in ' + word.closest('div')?.parentElement?.className;"
    "  seen.has(kind) ? word.remove() : seen.add(kind);"
    "});"
)
RUN = (
    "const [options, done] = arguments;"
    "axe.run(document, options).then(result => done(result.violations.map("
    "  rule => [rule.id, rule.nodes.map(node => node.html.slice(0, 200))])), done);"
)
#: All rules that are on by default, and one that is not.
ALL = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


def violations(browser, options):
    browser.set_script_timeout(120)
    return browser.execute_async_script(RUN, options | {"resultTypes": ["violations"]})


def look_at(browser, address, page, width):
    browser.set_window_size(width, 1000)
    open_page(browser, f"{address}/{page}.html")
    browser.execute_script(PREPARE + AXE.read_text())


#: The pages of the reference are made alike, and long: one of them stands for all.
ALIKE = {f"book/api-{name}" for name in ("audits", "dpsgd", "experiments", "games")}


@pytest.mark.parametrize("page", [*sorted({*pages()} - ALIKE), "search", "genindex"])
def test_page(browser, address, page):
    look_at(browser, address, page, 1300)
    browser.execute_script("document.documentElement.dataset.theme = 'light'")
    assert violations(browser, ALL) == []
    browser.execute_script("document.documentElement.dataset.theme = 'dark'")
    assert violations(browser, COLOURS) == []  # nothing else depends on the theme


@pytest.mark.parametrize("page", ["book/index", "book/05-efficacy"])
def test_phone(browser, address, page):
    look_at(browser, address, page, 390)
    assert violations(browser, ALL) == []


def test_the_checker_finds_something(browser, address):
    look_at(browser, address, "book/index", 1300)
    browser.execute_script("document.querySelector('article').innerHTML += '<img src=x>'")
    assert [rule for rule, _ in violations(browser, ALL)] == ["image-alt"]
