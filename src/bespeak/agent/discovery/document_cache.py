"""Disk cache of public documents, and their freshness by HTTP's caching headers (RFC 9111)."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

import msgspec

from bespeak.documents.replacement import UNFINISHED, replace_bytes

VARIABLE: Final = "BESPEAK_CACHE"  # environment variable for the cache folder; `off` disables the cache

_VERSION: Final = 1
_OWNER_ONLY: Final = 0o600
_SUFFIX: Final = ".document"
_KEPT_HEADERS: Final = frozenset(  # Headers that are cached, without Set-Cookie and others for one caller.
    {
        *("age", "cache-control", "date", "etag", "expires", "last-modified", "vary", "content-type", "link"),
        *("agtp-status", "content-usage", "tdm-policy", "tdm-reservation"),
    }
)
_MOST_ENTRIES: Final = 500
_MOST_BYTES: Final = 200_000_000
_LARGEST: Final = 48_000_000
_LEFT_BEHIND: Final = 3600.0  # age in seconds at which an unfinished file is removed


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    accept: str
    status: int
    stored: float
    fresh_until: float  # time until which the entry is used without a request
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
        headers = {name: value for name, value in entry.headers.items() if name in _KEPT_HEADERS}
        kept = msgspec.structs.replace(entry, headers=headers)
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_bytes(self._path(entry.url, entry.accept), msgspec.msgpack.encode(kept), _OWNER_ONLY)
            self._shrink()

    def forget(self, url: str, accept: str) -> None:
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


_LONGEST: Final = 30 * 86400.0  # maximum lifetime in seconds, whatever the server says


def directives(text: str) -> dict[str, str]:
    """Parse a Cache-Control header; names are in lower case."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name:
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def may_be_kept(headers: Mapping[str, str]) -> bool:
    return "no-store" not in directives(headers.get("cache-control", "")) and headers.get("vary", "").strip() != "*"


def lifetime(headers: Mapping[str, str], now: float, default: float = 0.0) -> float:
    said = directives(headers.get("cache-control", ""))
    if "no-cache" in said or "no-store" in said:
        return 0.0
    if "max-age" in said:
        return max(0.0, min(seconds(said["max-age"]) or 0.0, _LONGEST) - (seconds(headers.get("age", "0")) or 0.0))
    if "expires" in headers:
        until = http_date(headers["expires"])
        return max(0.0, min(until - now, _LONGEST)) if until is not None else 0.0
    return default


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Parse a Retry-After header, a number or a date, into seconds."""
    text = headers.get("retry-after")
    if text is None:
        return None
    whole, until = seconds(text), http_date(text)
    return whole if whole is not None or until is None else max(0.0, until - now)


def seconds(text: str) -> float | None:
    """Parse a whole number of seconds; return None for other text."""
    plain = text.strip()
    if not plain.isascii() or not plain.isdigit():
        return None
    # Longer numbers exceed any limit, and Python refuses to parse very long ones.
    return float(plain) if len(plain) < 12 else 1e11


def http_date(text: str) -> float | None:
    """Parse an HTTP date into seconds since 1970; return None for other text."""
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
