"""Files to check: the named ones, and those in folders that look like bespeak documents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bespeak.documents.deployment.folder import AGENT_SUFFIX, CONFIGURATIONS, RECIPES

Excluded = Callable[[Path], bool]
"""Function that returns True if settings exclude a file or folder."""

_SUFFIXES: Final = (".agis", ".toml", ".json")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders with third-party files. Hidden folders are skipped, too."""

_ENDPOINT: Final = re.compile(r"^[ \t]*+\[[ \t]*+endpoint[ \t]*+[.\]]", re.MULTILINE)
_JSON_KEYS: Final = ('"agis"', '"aiendpoint"', '"agtp_version"', '"agtp_api_version"')


def walk(folder: Path, excluded: Excluded) -> Iterator[Path]:
    """Find the files in a folder tree that may be documents, by path. No folder is entered twice."""
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue  # unreadable folders are skipped
        folders: list[Path] = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            path = here / entry.name
            is_folder = _is_folder(entry)
            if not is_folder and not entry.name.endswith(_SUFFIXES):
                continue
            if excluded(path):
                continue
            if is_folder:
                folders.append(path)
            else:
                yield path
        waiting.extend(reversed(folders))


def looks_ours(name: str, text: str) -> bool:
    """Return True if a file looks like a bespeak document; most TOML and JSON files do not."""
    if name.endswith((".agis", AGENT_SUFFIX)) or name in (*CONFIGURATIONS, RECIPES):
        return True
    if name.endswith(".toml"):
        return _ENDPOINT.search(text) is not None
    return any(key in text for key in _JSON_KEYS) or ('"endpoints"' in text and '"vocabulary"' in text)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
