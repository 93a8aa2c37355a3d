"""Atomic replacement of files and folders: a folder appears whole or not at all, and files of its owner are kept."""

from __future__ import annotations

import codecs
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".bespeak-"  # prefix of temporary files


def replace_text(path: Path, text: str, *, create: bool = False) -> None:
    """Replace the text of a file. Its mode and byte order mark are kept, and a link stays a link.

    A missing file is only created with `create`: if it disappeared meanwhile, it was removed on purpose.
    """
    place = path.resolve()
    if create and not place.exists():
        replace_bytes(place, text.encode(), 0o666 & ~file_mask())
        return
    with place.open("rb") as file:
        mark = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    content = text.encode().removeprefix(codecs.BOM_UTF8)
    replace_bytes(place, (codecs.BOM_UTF8 if mark else b"") + content, stat.S_IMODE(place.stat().st_mode))


def replace_bytes(path: Path, content: bytes, mode: int) -> None:
    """Replace the content of a file, or create it. Raises OSError and leaves the old content if that fails."""
    descriptor, name = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.chmod(mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def file_mask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class FolderTakenError(Exception):
    """The folder already contains files that would be replaced; `names` lists them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names[:5]))
        self.names = names


def write_folder(folder: Path, files: Mapping[str, str], *, force: bool = False, outdated: Iterable[str] = ()) -> None:
    """Write files into a folder by their relative paths, all or none, and remove the `outdated` ones of an earlier run.

    Raises FolderTakenError if a file exists, without `force`; or OSError with the folder unchanged.
    """
    place = folder.resolve()
    if place.is_dir():
        there = [name for name in files if (place / name).exists()]
        if there and not force:
            raise FolderTakenError(there)
    elif place.exists():
        raise NotADirectoryError(20, "a file exists in place of the folder", str(folder))
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        if place.is_dir():
            shutil.copytree(place, fresh, symlinks=True, dirs_exist_ok=True)
            for name in outdated:
                (fresh / name).unlink(missing_ok=True)
        else:
            fresh.chmod(0o777 & ~file_mask())
        for parent in {(fresh / name).parent for name in files}:
            parent.mkdir(parents=True, exist_ok=True)
            if not parent.resolve().is_relative_to(fresh.resolve()):
                raise NotADirectoryError(20, f"{parent.name} is a link that points outside the folder", str(folder))
        for name, text in files.items():
            path = fresh / name
            path.unlink(missing_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        _swap(fresh, place)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _swap(fresh: Path, place: Path) -> None:
    # POSIX cannot replace a folder that has files, so the old one is renamed first, and renamed back on failure.
    if not place.is_dir():
        fresh.rename(place)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    os.replace(place, aside / "old")  # noqa: PTH105 - into a folder that is ours
    try:
        fresh.rename(place)
    except BaseException:
        os.replace(aside / "old", place)  # noqa: PTH105
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)
