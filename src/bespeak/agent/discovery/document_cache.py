"""Disk cache of documents. It stores nothing secret: the documents are public."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bespeak.documents.files.file_replacement import UNFINISHED, replace_bytes

VARIABLE: Final = "BESPEAK_CACHE"
"""Environment variable for the cache folder; `off` disables the cache."""

_VERSION: Final = 1
_OWNER_ONLY: Final = 0o600
_SUFFIX: Final = ".document"
_KEPT_HEADERS: Final = frozenset(
    {
        *("age", "cache-control", "date", "etag", "expires", "last-modified", "vary", "content-type", "link"),
        *("agtp-status", "content-usage", "tdm-policy", "tdm-reservation"),
    }
)
"""Response headers that are cached. Set-Cookie and other headers for one caller are left out."""
_MOST_ENTRIES: Final = 500
_MOST_BYTES: Final = 200_000_000
_LARGEST: Final = 48_000_000
_LEFT_BEHIND: Final = 3600.0
"""Age in seconds at which an unfinished file is removed."""


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Cached response."""

    url: str
    accept: str
    status: int
    stored: float
    fresh_until: float
    """Time until which the entry is used without a request."""
    headers: dict[str, str] = {}
    body: bytes = b""
    version: int = _VERSION


class DocumentCache:
    """Cache in a folder. Failures only cost a request; nothing is raised."""

    def __init__(self, folder: Path, *, most_entries: int = _MOST_ENTRIES, most_bytes: int = _MOST_BYTES) -> None:
        self.folder = folder
        self._most_entries = most_entries
        self._most_bytes = most_bytes

    def find(self, url: str, accept: str) -> CacheEntry | None:
        """Return the entry for an address, or None if it is missing or unreadable."""
        path = self._path(url, accept)
        try:
            if path.stat().st_size > _LARGEST:
                return None
            entry = msgspec.msgpack.decode(path.read_bytes(), type=CacheEntry)
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None
        # The file name is a hash: compare the address to exclude collisions.
        return entry if (entry.version, entry.url, entry.accept) == (_VERSION, url, accept) else None

    def keep(self, entry: CacheEntry) -> None:
        """Store a response. Addresses with a query may contain a secret and are not stored."""
        if "?" in entry.url or len(entry.body) > _LARGEST - 65536:
            return
        kept = msgspec.structs.replace(entry, headers=kept_headers(entry.headers))
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_bytes(self._path(entry.url, entry.accept), msgspec.msgpack.encode(kept), _OWNER_ONLY)
            self._shrink()

    def forget(self, url: str, accept: str) -> None:
        """Remove the entry for an address."""
        with contextlib.suppress(OSError):
            self._path(url, accept).unlink(missing_ok=True)

    def _path(self, url: str, accept: str) -> Path:
        return self.folder / (hashlib.sha256(f"{accept}\n{url}".encode(errors="replace")).hexdigest() + _SUFFIX)

    def _shrink(self) -> None:
        """Remove the oldest entries above the limits. Another process may do the same at the same time."""
        found = sorted(self._files(), reverse=True)
        total = 0
        for count, (_, size, path) in enumerate(found, 1):
            total += size
            if count > self._most_entries or total > self._most_bytes:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        newest = 0.0
        unfinished: list[tuple[float, Path]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                newest = max(newest, status.st_mtime)
                if entry.name.endswith(_SUFFIX):
                    yield status.st_mtime, status.st_size, Path(entry.path)
                elif entry.name.startswith(UNFINISHED):
                    unfinished.append((status.st_mtime, Path(entry.path)))
        for since, path in unfinished:
            if since < newest - _LEFT_BEHIND:
                path.unlink(missing_ok=True)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be cached."""
    return {name: value for name, value in headers.items() if name in _KEPT_HEADERS}


def open_cache(folder: str | Path | None = None, environment: Mapping[str, str] = os.environ) -> DocumentCache | None:
    """Open the cache in a folder, else in that of the environment, else in the default one; None if disabled."""
    chosen = str(folder) if folder is not None else environment.get(VARIABLE)
    if chosen is not None:
        return None if chosen.strip().lower() in ("", "off") else DocumentCache(Path(chosen))
    base = environment.get("XDG_CACHE_HOME", "")
    try:
        home = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home directory
        return None
    return DocumentCache(home / "bespeak" / "discovery")
