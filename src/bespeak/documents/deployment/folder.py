"""The files of a deployment folder: their standard names, a stable order, and the positions of findings in them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from bespeak.documents.rules import FOLDER_REACHED_TWICE
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.toml_tree import TomlTree, parse_toml
from bespeak.text.source.tree import Location

CONFIGURATIONS: Final = ("bespeak.toml", "agtp-server.toml")
RECIPES: Final = "agtp-recipes.toml"
ENDPOINTS: Final = "endpoints"
AGENTS: Final = "agents"
AGENT_SUFFIX: Final = ".agent.json"


def is_folder(path: Path) -> bool:
    """Return True if the path is a readable folder; False if it is inaccessible or too long."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Return True if the path exists."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_same(one: Path, other: Path) -> bool:
    """Return True if two paths lead to the same folder."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def list_files(folder: Path, suffix: str, findings: list[Diagnostic]) -> list[Path]:
    """List the files of one folder by name."""
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
            elif _is_folder(entry):
                waiting.append(Path(entry.path))
    return sorted(files)


def _is_file(entry: os.DirEntry[str], suffix: str) -> bool:
    """Return True if the entry should be read. A dangling link should, so that it is reported."""
    return entry.name.endswith(suffix) and not entry.name.startswith(".") and not _is_folder(entry)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


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
    trees: dict[str, TomlTree | None] = {}
    return [_placed(finding, trees) for finding in findings]


def _placed(finding: Diagnostic, trees: dict[str, TomlTree | None]) -> Diagnostic:
    location = finding.location
    if location is None or location.line or not finding.pointer or not location.file.endswith(".toml"):
        return finding
    if location.file not in trees:
        trees[location.file] = _tree(location)
    tree = trees[location.file]
    return replace(finding, location=tree.locate(finding.pointer)) if tree else finding


def _tree(location: Location) -> TomlTree | None:
    text = read_text(Path(location.file))
    tree = parse_toml(text, location.file) if isinstance(text, str) else None
    return tree if isinstance(tree, TomlTree) else None
