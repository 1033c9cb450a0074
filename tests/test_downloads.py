"""A reader who has nothing but the built book can run its chapters.

Needs a book built by ``make book``; skipped where there is none, unless ORALIB_REQUIRE_BROWSER
is set.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parent.parent
HTML = ROOT / "_build" / "html"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not os.environ.get("ORALIB_REQUIRE_BROWSER") and not (HTML / "downloads").exists(),
        reason="needs a built book",
    ),
]


def the_only(pattern):
    (path,) = (HTML / "downloads").glob(pattern)
    return path


def members(archive):
    """The names of all files in an archive, without its top folder."""
    with tarfile.open(archive) as tar:
        return {member.name.partition("/")[2] for member in tar if member.isfile()}


def test_archive_has_chapters_and_only_tracked_files():
    names = members(the_only("*.tar.gz"))
    chapters = {f"book/{path.name}" for path in (ROOT / "book").glob("*.ipynb")}
    others = {"Makefile", "requirements.lock", "book/index.ipynb", "tests/test_book.py"}
    assert chapters | others <= names
    assert not [name for name in names if re.search(r"_build|\.venv|__pycache__", name)]
    if (ROOT / ".git").exists():
        tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
        assert names - {"PKG-INFO"} <= set(tracked)


def test_a_chapter_runs_from_the_book_alone(tmp_path):
    """As the box at its end says, with the versions that the lock of the archive pins."""
    archive = the_only("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    python = tmp_path / "venv" / "bin" / "python"
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    venv = [uv, "venv", "--quiet", "--python", sys.executable, python.parent.parent]
    subprocess.run(venv, check=True)
    subprocess.run(
        [
            *(uv, "pip", "install", "--quiet", "--python", python),
            *("--constraint", source / "requirements.lock", f"{the_only('*.whl')}[runs]"),
        ],
        check=True,
        env=os.environ | {"UV_COMPILE_BYTECODE": "0", "UV_LINK_MODE": "hardlink"},
    )
    page = (HTML / "book" / "04-the-gaps.html").read_text()
    (command,) = re.findall(r"(orabook run book/04-the-gaps.ipynb -p [a-z]+=[\d.]+)", page)
    done = subprocess.run(
        [python, "-m", *command.split()], cwd=source, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (results,) = source.glob("runs/04-the-gaps*/results.json")
    assert json.loads(results.read_text())
    assert (results.parent / "page.html").stat().st_size > 10_000


def ids_and_links(path):
    """The ids and the local links of a page."""
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    targets = [x.get("href") or x.get("src") for x in page.select("[href], [src]")]
    links = [target for target in targets if target and not re.match(r"[a-z]+:|//", target)]
    return [x["id"] for x in page.find_all(id=True)], links


def test_every_link_within_the_book_leads_somewhere():
    paths = [path for path in HTML.rglob("*.html") if "_static" not in path.parts]
    pages = {path: ids_and_links(path) for path in paths}
    assert len(pages) > 20
    for path, (ids, links) in pages.items():
        assert len(set(ids)) == len(ids), path
        for link in links:
            file, anchor = urldefrag(link)
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            assert target.exists(), (path.name, link)
            if anchor and target in pages:
                assert unquote(anchor) in pages[target][0], (path.name, link)
