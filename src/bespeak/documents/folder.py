"""The files of a folder in a stable order. Links are followed, but no folder is entered twice."""

from __future__ import annotations

import os
from pathlib import Path

from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.source.span import Location


def list_files(folder: Path, suffix: str, findings: list[Diagnostic]) -> list[Path]:
    """The files of one folder by name."""
    return [Path(entry.path) for entry in _entries(folder, findings) if _is_file(entry, suffix)]


def list_tree(folder: Path, suffix: str, findings: list[Diagnostic]) -> list[Path]:
    """The files of a folder and of those below it, by path. Hidden folders are not entered."""
    files: list[Path] = []
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            stat = here.stat()
        except OSError as error:
            findings.append(_unreadable(here, error))
            continue
        identity = (stat.st_dev, stat.st_ino)
        if identity in entered:
            message = "the folder has been read under another name and is not entered again"
            findings.append(Diagnostic("D112", "warning", message, Location(str(here)), help="Remove the link."))
            continue
        entered.add(identity)
        for entry in _entries(here, findings):
            if entry.name.startswith("."):
                continue
            if _is_file(entry, suffix):
                files.append(Path(entry.path))
            elif entry.is_dir():
                waiting.append(Path(entry.path))
    return sorted(files)


def _is_file(entry: os.DirEntry[str], suffix: str) -> bool:
    """Whether the entry is to be read. A link that leads nowhere is, so that it is reported."""
    return entry.name.endswith(suffix) and not entry.name.startswith(".") and not entry.is_dir()


def _entries(folder: Path, findings: list[Diagnostic]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        findings.append(_unreadable(folder, error))
        return []


def _unreadable(folder: Path, error: OSError) -> Diagnostic:
    return Diagnostic("D101", "error", f"the folder cannot be read: {error.strerror}", Location(str(folder)))
