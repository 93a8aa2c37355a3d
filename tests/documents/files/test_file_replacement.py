"""A file is replaced atomically, keeps its mode and links, and survives a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bespeak.documents.replacement import file_mask, replace_bytes, replace_text


def test_the_text_is_new_and_the_mode_is_old(tmp_path: Path) -> None:
    path = tmp_path / "a.agis"
    path.write_text("old")
    path.chmod(0o640)
    replace_text(path, "new\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.agis"]


def test_the_byte_order_mark_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.agis"
    for text in ("new", "\ufeffnew"):
        path.write_bytes(b"\xef\xbb\xbfold")
        replace_text(path, text)
        assert path.read_bytes() == b"\xef\xbb\xbfnew"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "real.agis"
    path.write_text("old")
    link = tmp_path / "link.agis"
    link.symlink_to(path)
    replace_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def test_a_failure_leaves_the_old_text_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.agis"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(path, "\ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.agis"]


def test_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        replace_text(tmp_path / "a.agis", "new")
    assert list(tmp_path.iterdir()) == []


def test_new_file_has_the_default_mode(tmp_path: Path) -> None:
    usual, made = tmp_path / "usual", tmp_path / "made"
    usual.touch()
    replace_text(made, "new", create=True)
    assert made.read_text() == "new"
    assert made.stat().st_mode == usual.stat().st_mode


def test_new_content_is_written_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.document"
    replace_bytes(path, b"\xff", 0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"\xff", 0o600)


def test_failed_replacement_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_bytes(tmp_path / "taken", b"x", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_reading_the_umask_does_not_change_it() -> None:
    before = os.umask(0o027)
    try:
        assert (file_mask(), file_mask()) == (0o027, 0o027)
    finally:
        os.umask(before)
