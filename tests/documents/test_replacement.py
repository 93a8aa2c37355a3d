"""A folder appears whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bespeak.documents.replacement import FolderTakenError, file_mask, replace_bytes, replace_text, write_folder

FILES = {"bespeak.toml": "a = 1\n", "endpoints/one.toml": "b = 2\n"}


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_new_folder_has_all_files_and_leaves_no_temporary_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "deep" / "out", FILES)
    assert content(tmp_path / "deep" / "out") == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]
    assert stat.S_IMODE((tmp_path / "deep" / "out").stat().st_mode) & 0o700 == 0o700


def test_files_that_exist_are_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "one.toml").write_text("mine")
    with pytest.raises(FolderTakenError) as taken:
        write_folder(tmp_path, FILES)
    assert taken.value.names == ["endpoints/one.toml"]
    assert content(tmp_path) == {"endpoints/one.toml": "mine"}


def test_with_force_other_files_stay_and_outdated_ones_go(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, {**FILES, "endpoints/old.toml": "old"})
    (folder / "notes.md").write_text("mine")
    (folder / "link").symlink_to("notes.md")
    write_folder(folder, {"bespeak.toml": "new\n"}, force=True, outdated=["endpoints/old.toml", "endpoints/none.toml"])
    assert content(folder) == {
        "bespeak.toml": "new\n",
        "endpoints/one.toml": "b = 2\n",
        "notes.md": "mine",
        "link": "mine",
    }
    assert (folder / "link").is_symlink()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_link_is_replaced_and_its_target_is_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "other").write_text("mine")
    (folder / "bespeak.toml").symlink_to(tmp_path / "other")
    write_folder(folder, FILES, force=True)
    assert (tmp_path / "other").read_text() == "mine"
    assert content(folder) == FILES


def test_failed_write_leaves_the_folder_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(folder, FILES)
    with pytest.raises(OSError):
        write_folder(folder, {"new.toml": "x", "bespeak.toml/below": "y"}, force=True)
    assert content(folder) == FILES
    with pytest.raises(OSError):
        write_folder(tmp_path / "fresh", {"a": "x", "a/b": "y"})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(NotADirectoryError):
        write_folder(tmp_path / "out", FILES, force=True)
    assert (tmp_path / "out").read_text() == "mine"


def test_link_that_points_outside_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "endpoints").symlink_to(outside)
    with pytest.raises(NotADirectoryError, match="endpoints is a link"):
        write_folder(folder, FILES, force=True)
    assert content(outside) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "outside"]


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
