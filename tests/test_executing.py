"""``python -m book``: which notebooks are chapters."""

from book._ext import committed


def test_what_editors_leave_beside_a_chapter_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(committed, "BOOK", tmp_path)
    (tmp_path / ".#chapter.ipynb").symlink_to("somebody@somewhere.1:2")
    assert committed.chapters() == []
