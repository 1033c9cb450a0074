"""``python -m book`` and ``python -m book.data``: what is committed is replaced as a whole."""

import os
import signal
import subprocess
import sys
import time
from errno import ENOSPC
from functools import partial
from pathlib import Path

import pytest

from book import __main__ as executing
from book._ext import stored_outputs
from oralib import experiments

ROOT = Path(__file__).parent.parent


def test_a_full_disk_leaves_the_picture_of_the_readme(tmp_path, monkeypatch):
    (tmp_path / "figure-2.png").write_bytes(b"as it was")
    monkeypatch.setattr(executing, "BOOK", tmp_path)
    few = partial(experiments.elements_per_coordinate, (1, 8), trials=64)
    monkeypatch.setattr(experiments, "elements_per_coordinate", lambda ratios, trials: few())

    def full(handle):
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    with monkeypatch.context() as context:
        context.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            executing.draw_readme_picture()
    assert [path.name for path in tmp_path.iterdir()] == ["figure-2.png"]
    assert (tmp_path / "figure-2.png").read_bytes() == b"as it was"
    executing.draw_readme_picture()
    assert (tmp_path / "figure-2.png").read_bytes().startswith(b"\x89PNG")


def test_what_editors_leave_beside_a_chapter_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_outputs, "BOOK", tmp_path)
    (tmp_path / ".#chapter.ipynb").symlink_to("somebody@somewhere.1:2")
    assert stored_outputs.chapters() == []


@pytest.mark.parametrize("seconds", [0.7, 3.0, 4.5])
@pytest.mark.parametrize(
    "words", [["book", "how-much-can-one-run-show"], ["book.data", "bound-map"]]
)
def test_an_interrupt_is_no_traceback(words, seconds):
    before = {path: path.read_bytes() for path in (ROOT / "book").glob("*.ipynb")}
    words = [sys.executable, "-m", *words]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert process.returncode != 0
    assert all(path.read_bytes() == content for path, content in before.items())
