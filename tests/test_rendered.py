"""The rendered pages in a real browser: no errors, no outside requests, maths and images there.

Each page is also looked at by axe-core, the checker of accessibility, in both themes. Needs
Chromium and its driver, a book built by ``make book``, and axe-core, which ``.ci/run`` installs;
skipped where they are missing, unless ORALIB_REQUIRE_BROWSER is set.
"""

import json
import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orabook.builder.contents import contents
from orabook.builder.pdf import start_chromium

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
REQUIRED = bool(os.environ.get("ORALIB_REQUIRE_BROWSER"))
BUILT = bool(BROWSER and DRIVER and (HTML / "index.html").exists())
AXE = ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


def marks(there, what):
    """Those of tests in a browser that are skipped where something is missing."""
    return [
        pytest.mark.browser,
        pytest.mark.skipif(not REQUIRED and not there, reason=f"needs chromium, {what}"),
    ]


NEEDS_BROWSER = marks(BROWSER and DRIVER, "chromedriver")
NEEDS_BOOK = marks(BUILT, "chromedriver and a built book")
pytestmark = marks(BUILT and AXE.exists(), "chromedriver, axe-core and a built book")


def pages():
    """Every page of the table of contents."""
    return [page for _, listed in contents(ROOT) for page in listed]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def serve(folder):
    """The address, on loopback, of a folder of pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def address():
    with serve(HTML) as address:
        yield address


def start_browser(profile):
    """A headless Chromium that reaches nothing but loopback, with a profile folder of its own."""
    return start_chromium(profile, ", EXCLUDE 127.0.0.1", browser="ALL", performance="ALL")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


def open_page(browser, url):
    """Load a page and wait until its maths is set; returns its network events by kind."""
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(url)
    browser.set_script_timeout(60)
    browser.execute_async_script(
        "const done = arguments[0];"
        "const wait = () => window.MathJax?.startup?.promise"
        "  ? window.MathJax.startup.promise.then(done) : done();"
        "document.readyState === 'complete' ? wait() : window.addEventListener('load', wait);"
    )
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return {
        kind: [event["params"] for event in events if event["method"] == f"Network.{kind}"]
        for kind in ("requestWillBeSent", "loadingFailed", "responseReceived")
    }


COUNT = (
    "return {"
    " math: document.querySelectorAll('.math').length,"
    " set: document.querySelectorAll('mjx-container').length,"
    " broken: document.querySelectorAll('mjx-merror, [data-mjx-error]').length,"
    " empty: [...document.images].filter(i => !i.naturalWidth).map(i => i.src),"
    " mute: [...document.querySelectorAll('article img')].filter(i => !i.alt).length,"
    " wide: document.documentElement.scrollWidth - window.innerWidth"
    "}"
)
#: Formulas, pictures and boxes that stick out of what holds them, and do not scroll.
TOO_WIDE = (
    "return [...document.querySelectorAll('article mjx-math, article img, article .admonition')]"
    " .filter(x => !x.closest('.wide, figure, div.math, .output, .pst-scrollable-table-container')"
    "   && x.getBoundingClientRect().right > 1"
    "     + x.parentElement.closest('.admonition, article').getBoundingClientRect().right)"
    " .map(x => x.outerHTML.slice(0, 200))"
)


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
    """What axe-core finds on the open page."""
    browser.set_script_timeout(120)
    return browser.execute_async_script(RUN, options | {"resultTypes": ["violations"]})


#: The pages of the reference are made alike, and long: axe-core looks at one of them for all.
ALIKE = {f"book/api-{name}" for name in ("audits", "dpsgd", "experiments", "games")}


@pytest.mark.parametrize("page", [*pages(), "search", "genindex"])
def test_page(browser, address, page):
    """It is loaded once, for all that can be seen of it: browsers take long."""
    browser.set_window_size(1300, 1000)
    events = open_page(browser, f"{address}/{page}.html")

    outside = [
        event["request"]["url"]
        for event in events["requestWillBeSent"]
        if not event["request"]["url"].startswith((address, "data:", "blob:", "chrome"))
    ]
    assert not outside
    assert not [event for event in events["loadingFailed"] if not event.get("canceled")]
    assert all(event["response"]["status"] < 400 for event in events["responseReceived"])

    for width in (390, 1300):
        browser.set_window_size(width, 1000)
        counts = browser.execute_script(COUNT)
        assert counts["set"] >= counts["math"]
        assert counts["broken"] == 0
        assert counts["empty"] == []
        assert counts["mute"] == 0
        assert counts["wide"] <= 1  # nothing sticks out sideways, on a phone neither
        assert browser.execute_script(TOO_WIDE) == []
    described = browser.find_elements("css selector", "meta[name=description]")
    assert [len(x.get_attribute("content")) > 20 for x in described] == [True]
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors

    if page not in ALIKE:
        browser.execute_script(PREPARE + AXE.read_text())
        browser.execute_script("document.documentElement.dataset.theme = 'light'")
        assert violations(browser, ALL) == []
        browser.execute_script("document.documentElement.dataset.theme = 'dark'")
        assert violations(browser, COLOURS) == []  # nothing else depends on the theme


@pytest.mark.parametrize("page", ["book/index", "book/05-efficacy"])
def test_axe_on_a_phone(browser, address, page):
    browser.set_window_size(390, 1000)
    open_page(browser, f"{address}/{page}.html")
    browser.execute_script(PREPARE + AXE.read_text())
    assert violations(browser, ALL) == []


def test_the_checker_finds_something(browser, address):
    open_page(browser, f"{address}/book/index.html")
    browser.execute_script(PREPARE + AXE.read_text())
    browser.execute_script("document.querySelector('article').innerHTML += '<img src=x>'")
    assert [rule for rule, _ in violations(browser, ALL)] == ["image-alt"]


def test_the_ledger_can_be_filtered(browser, address):
    """By a click on a button, and by the keyboard: without a script."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.set_window_size(1300, 1000)
    open_page(browser, f"{address}/book/paper-check.html")

    def shown():
        return browser.execute_script(
            "return [...document.querySelectorAll('table.ledger tbody tr')]"
            "  .filter(row => row.checkVisibility()).map(row => row.className)"
        )

    assert {row.split()[0] for row in shown()} == {"row-corrected", "row-fails"}
    browser.execute_script("document.querySelector('label[for=ledger-all]').click()")
    everything = shown()
    for mark, kept in {
        "corrected": lambda row: row.startswith("row-corrected"),
        "fails": lambda row: row.startswith("row-fails"),
        "implemented": lambda row: row.startswith("row-implemented"),
        "holds": lambda row: row == "row-holds",
        "ours": lambda row: row.endswith("ours"),
    }.items():
        click = f"document.querySelector('label[for=ledger-{mark}]').click()"
        browser.execute_script(click)
        rows = shown()
        assert rows
        assert len(rows) < len(everything)
        assert all(map(kept, rows)), mark
    browser.find_element(By.ID, "ledger-ours").send_keys(Keys.ARROW_RIGHT)  # round to the first
    first = shown()
    assert first == [row for row in everything if row.startswith(("row-corrected", "row-fails"))]
    # A link leads to its row, also where the buttons hide it.
    browser.execute_script("document.querySelector(`a[href='#claim-96']`).click()")
    assert len(shown()) == len(first) + 1
