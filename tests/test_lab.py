"""The chapters in a real JupyterLab: theorems, formulas and numbers in prose, as in the book.

Needs Chromium and its driver; skipped where they are missing, unless ORALIB_REQUIRE_BROWSER is set.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from test_rendered import NEEDS_BROWSER, browser

ROOT = Path(__file__).parent.parent

pytestmark = NEEDS_BROWSER

__all__ = ["browser"]  # a fixture

STORY = """# A small chapter

:::{prf:theorem} Theorem 5.2 of the paper: squares
:label: paper-theorem-5-2
:nonumber:
They are positive: $x^2 > 0$.
:::

The square is {eval}`f"{x * x:.3f}"`, see {prf:ref}`paper-theorem-5-2`."""


def write_chapter(path):
    cells = [
        nbformat.v4.new_code_cell("x: float = 1.5  # a number", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_markdown_cell(STORY),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab on a copy of the book, with settings and home of its own."""
    home = tmp_path_factory.mktemp("lab")
    book = home / "book"
    shutil.copytree(ROOT / "book", book, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    write_chapter(book / "small.ipynb")
    folders = {name: home / name.lower() for name in ("CONFIG", "DATA", "RUNTIME")}
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)  # all cells in the page, also those that are scrolled away
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    environment = {name: value for name, value in os.environ.items() if "JUPYTER" not in name}
    environment |= {f"JUPYTER_{name}_DIR": str(folder) for name, folder in folders.items()}
    environment |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "HOME": str(home)}
    environment |= {"JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter")}  # as `make lab` has it
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--expose-app-in-browser"),
        *(f"--ServerApp.root_dir={book}", "--LabApp.extension_manager=readonly"),
    ]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=home)
    try:
        yield wait_for_address(server, folders["RUNTIME"], home / "log")
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_for_address(server, folder, log):
    for _ in range(300):
        assert server.poll() is None, log.read_text()
        for path in folder.glob("jpserver-*.json"):
            try:
                info = json.loads(path.read_text())
            except ValueError:  # half written
                continue
            return info["url"], info["token"]
        time.sleep(0.1)
    raise TimeoutError(log.read_text())


def open_notebook(browser, lab, name):
    """Open a notebook and wait for its kernel."""
    url, token = lab
    browser.set_window_size(1300, 2000)
    assert token  # it is not open to everyone on this machine
    browser.get(f"{url}lab/tree/{name}?reset&token={token}")
    wait_for(
        browser,
        "const panel = window.jupyterapp?.shell?.currentWidget;"
        "return panel?.content?.model?.cells?.length > 0"
        " && panel.sessionContext?.session?.kernel?.status === 'idle'",
    )


def run_all(browser):
    browser.set_script_timeout(120)
    browser.execute_async_script(
        "const done = arguments[0];"
        "window.jupyterapp.commands.execute('notebook:run-all-cells').then(done, done)"
    )


def wait_for(browser, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60, 0.2).until(lambda driver: driver.execute_script(script))


def count(browser, selector):
    """How many elements of a kind there are, once there is one."""
    return wait_for(browser, f'return document.querySelectorAll("{selector}").length')


def test_a_small_chapter(lab, browser):
    open_notebook(browser, lab, "small.ipynb")
    run_all(browser)
    assert "Jupyter news" not in browser.execute_script("return document.body.innerText")
    assert count(browser, "aside.myst-proof .katex") == 1
    assert wait_for(browser, "return document.body.innerText.includes('The square is 2.250, see')")
    assert count(browser, "a.hover-link[href='#paper-theorem-5-2']") == 1


def test_a_chapter_of_the_book(lab, browser):
    open_notebook(browser, lab, "04-the-gaps.ipynb")
    run_all(browser)
    sources = [cell.source for cell in nbformat.read(ROOT / "book" / "04-the-gaps.ipynb", 4).cells]
    boxes = "\n".join(sources).count(":::{prf:")
    assert count(browser, ".katex") > 10
    assert count(browser, "aside.myst-proof") == boxes
    assert count(browser, ".jp-OutputArea-output img") == count(browser, "figure figcaption")
    ran = browser.execute_script(
        "return window.jupyterapp.shell.currentWidget.content.widgets"
        ".filter(cell => cell.model.type === 'code').map(cell => cell.model.executionCount)"
    )
    assert all(ran)
    assert not browser.execute_script(
        "return [...document.querySelectorAll('.jp-RenderedText[data-mime-type*=stderr]')].length"
    )
    text = browser.execute_script("return document.querySelector('.jp-Notebook').innerText")
    assert "{eval}" not in text
    assert "fig-" not in text, "a reference to a figure without its number"
    assert "not defined" not in text
