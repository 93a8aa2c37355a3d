"""The files of a deployment folder: their standard names, a stable order, and the positions of findings in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from bespeak.documents.rules import FOLDER_REACHED_TWICE
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table
from bespeak.text.source.toml_tree import TomlTree, parse_toml
from bespeak.text.source.tree import Location

CONFIGURATIONS: Final = ("bespeak.toml", "agtp-server.toml")
RECIPES: Final = "agtp-recipes.toml"
ENDPOINTS: Final = "endpoints"
AGENTS: Final = "agents"
AGENT_SUFFIX: Final = ".agent.json"


def _holds(test: Callable[..., bool], *arguments: Path) -> bool:
    """Return the answer of a file system; False if a path is inaccessible, too long or a link to itself."""
    try:
        return test(*arguments)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Return True if the path is a readable folder; False if it is inaccessible or too long."""
    return _holds(path.is_dir)


def is_there(path: Path) -> bool:
    return _holds(path.exists)


def is_same(one: Path, other: Path) -> bool:
    return _holds(one.samefile, other)


def read_toml(path: Path) -> Table | Diagnostic:
    """Read the root table of a file, or say why it cannot be read."""
    text = read_text(path)
    return text if isinstance(text, Diagnostic) else toml_table(text, str(path))


def list_files(folder: Path, suffix: str, findings: list[Diagnostic]) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder, findings) if _is_file(entry, suffix)]


def list_tree(folder: Path, suffix: str, findings: list[Diagnostic]) -> list[Path]:
    """List the files of a folder and its subfolders by path. Hidden folders are skipped; none is entered twice."""
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
            findings.append(FOLDER_REACHED_TWICE.found(message, Location(str(here)), advice="Remove the link."))
            continue
        entered.add(identity)
        for entry in _entries(here, findings):
            if entry.name.startswith("."):
                continue
            if _is_file(entry, suffix):
                files.append(Path(entry.path))
            elif _holds(entry.is_dir):
                waiting.append(Path(entry.path))
    return sorted(files)


def _is_file(entry: os.DirEntry[str], suffix: str) -> bool:
    """Return True if the entry should be read. A dangling link should, so that it is reported."""
    return entry.name.endswith(suffix) and not entry.name.startswith(".") and not _holds(entry.is_dir)


def _entries(folder: Path, findings: list[Diagnostic]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        findings.append(_unreadable(folder, error))
        return []


def _unreadable(folder: Path, error: OSError) -> Diagnostic:
    return UNREADABLE.found(f"the folder cannot be read: {error.strerror}", Location(str(folder)))


def with_positions(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Add the line and column of its pointer to each finding, if the file can be read as TOML."""

    @cache
    def parse(file: str) -> TomlTree | None:
        text = read_text(Path(file))
        tree = parse_toml(text, file) if isinstance(text, str) else None
        return tree if isinstance(tree, TomlTree) else None

    def place(finding: Diagnostic) -> Diagnostic:
        at = finding.location
        if at is None or at.line or not finding.pointer or not at.file.endswith(".toml"):
            return finding
        tree = parse(at.file)
        return replace(finding, location=tree.locate(finding.pointer)) if tree else finding

    return list(map(place, findings))
