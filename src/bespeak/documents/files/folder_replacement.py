"""Atomic replacement of a folder: it appears whole or not at all, and files added by its owner are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from bespeak.documents.files.file_replacement import file_mask

_MOST_SHOWN: Final = 5


class FolderTakenError(Exception):
    """The folder already contains files that would be replaced; `names` lists them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names[:_MOST_SHOWN]))
        self.names = names


def write_folder(
    folder: Path, files: Mapping[str, str], *, force: bool = False, outdated: Collection[str] = ()
) -> None:
    """Write files into a folder by their relative paths, all or none.

    An existing file is replaced only with `force`. `outdated` lists files of an earlier run to remove. Raises
    FolderTakenError, or OSError with the folder unchanged.
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
    """Replace the old folder by the new one.

    POSIX cannot replace a folder that has files, so the old one is renamed first, and renamed back on failure.
    """
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
