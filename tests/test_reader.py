"""What a reader does with the built book: search, switch to dark, print, use the keyboard alone.

Needs what ``test_rendered.py`` needs, and is skipped like it.
"""

import base64
import csv
import re

import pytest
from bs4 import BeautifulSoup
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from test_rendered import HTML, NEEDS_BOOK, address, browser, open_page, pages

pytestmark = NEEDS_BOOK

__all__ = ["address", "browser"]  # fixtures


def wait_for(browser, condition, seconds=60):
    return WebDriverWait(browser, seconds).until(condition)


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def test_a_word_is_searched_and_a_hit_opened(browser, address):
    browser.set_window_size(1300, 1000)
    open_page(browser, f"{address}/book/index.html")
    button = next(x for x in find(browser, "button.search-button-field") if x.is_displayed())
    button.click()
    wait_for(browser, lambda b: b.switch_to.active_element.tag_name == "input")
    press(browser, "interference", Keys.ENTER)
    hits = "#search-results ul.search li a"  # they appear one after another
    wait_for(browser, lambda b: len(find(b, hits)) > 5)
    find(browser, hits)[0].click()
    wait_for(browser, lambda b: "/search.html" not in b.current_url)
    text = browser.execute_script("return document.querySelector('article').innerText")
    assert "interference" in text.lower()


def test_dark_is_one_click_away_and_stays(browser, address):
    browser.set_window_size(1300, 1000)
    open_page(browser, f"{address}/book/index.html")
    theme = "return document.documentElement.dataset.theme"
    for _ in range(3):
        next(x for x in find(browser, "button.theme-switch-button") if x.is_displayed()).click()
        if browser.execute_script(theme) == "dark":
            break
    assert browser.execute_script(theme) == "dark"
    open_page(browser, f"{address}/book/02-preliminaries.html")
    assert browser.execute_script(theme) == "dark"
    browser.execute_script("localStorage.clear()")


def test_a_chapter_is_printed_without_its_surroundings(browser, address):
    open_page(browser, f"{address}/book/04-the-gaps.html")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert find(browser, "article")[0].is_displayed()
        around = ".bd-sidebar-primary .bd-header-article .copybtn .figure-data .gap-game"
        for each in around.split():
            assert not [x for x in find(browser, each) if x.is_displayed()], each
        printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27})
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 100_000


#: What has the focus: its text, its address, and whether a person can see that it has it.
FOCUS = (
    "const x = document.activeElement, style = getComputedStyle(x);"
    "return [x.innerText ?? '', x.href ?? '', style.outlineStyle !== 'none'"
    " || style.boxShadow !== 'none' || style.textDecorationLine !== 'none', x.tagName]"
)


def test_the_keyboard_is_enough(browser, address):
    """From the landing page to the first chapter, and into a folded cell."""
    browser.set_window_size(1300, 1000)
    open_page(browser, f"{address}/book/index.html")
    press(browser, Keys.TAB)
    words, _, seen, _ = browser.execute_script(FOCUS)
    assert "main content" in words
    assert seen
    for _ in range(60):
        press(browser, Keys.TAB)
        words, link, seen, _ = browser.execute_script(FOCUS)
        assert seen, words
        if link.endswith("01-introduction.html"):
            break
    press(browser, Keys.ENTER)
    wait_for(browser, lambda b: b.current_url.endswith("01-introduction.html"))
    open_page(browser, browser.current_url)
    fold = find(browser, "details.hide summary")[0]
    browser.execute_script("arguments[0].focus()", fold)
    press(browser, Keys.ENTER)
    wait_for(browser, lambda b: find(b, "details.hide[open]"))


#: What Python, Markdown or an extension has left in prose.
LEFT = re.compile(
    r"\bnp\.\w+\(|\barray\(|\{[a-z]+(?::[a-z]+)?\}`|:::|,,|;;|(?<!\.)\.\.(?!\.)|[,;:]\.|,[;:]"
)


def left_in(html):
    """The pieces of a page's text, apart from code and formulas, that no author wrote.

    >>> left_in("<article class='bd-article'>The np.int64(175),, of <code>a,,b</code></article>")
    ['np.int64(', ',,']
    """
    article = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    for other in article.select("pre, code, script, style, .math"):
        other.replace_with("x")
    return LEFT.findall(article.get_text())


@pytest.mark.parametrize("page", pages())
def test_prose_is_prose(page):
    assert left_in((HTML / f"{page}.html").read_text(encoding="utf-8")) == []


def test_figures_offer_their_numbers():
    """Each file is a table, and each figure that is no drawing has one."""
    offered = list((HTML / "_downloads" / "figures").glob("*.csv"))
    assert len(offered) > 40  # most figures of the book
    for path in offered:
        with path.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        assert rows, path
        assert all(len(row) == len(head) for row in rows), path
    page = (HTML / "book" / "06-dp-sgd.html").read_text(encoding="utf-8")
    assert 'href="../_downloads/figures/fig-dpsgd-tradeoff.csv"' in page
    assert ". Computed by: <code" in page
