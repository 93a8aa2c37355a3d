"""Documents on disk: found again, bounded, private, and never in the way."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.agent.discovery.fetcher import (
    CacheEntry,
    DocumentCache,
    http_date,
    lifetime,
    may_be_kept,
    open_cache,
    retry_after,
)
from bespeak.documents.replacement import UNFINISHED


def entry(url: str = "https://a.example/x", body: bytes = b"{}", **headers: str) -> CacheEntry:
    return CacheEntry(
        url=url, accept="application/json", status=200, stored=1.0, fresh_until=2.0, headers=headers, body=body
    )


def find(cache: DocumentCache, url: str = "https://a.example/x") -> CacheEntry | None:
    return cache.find(url, "application/json")


@pytest.fixture
def cache(tmp_path: Path) -> DocumentCache:
    return DocumentCache(tmp_path)


def test_answers_are_found_by_address_and_request_if_the_folder_can_be_used(
    cache: DocumentCache, tmp_path: Path
) -> None:
    cache.keep(entry(etag='"a"'))
    found = find(cache)
    assert (found.body, found.headers) == (b"{}", {"etag": '"a"'})
    assert cache.find("https://a.example/x", "text/plain") is None
    assert find(cache, "https://a.example/y") is None
    cache.forget("https://a.example/x", "application/json")
    assert find(cache) is None
    (tmp_path / "file").write_text("x")
    cache = DocumentCache(tmp_path / "file" / "cache")
    cache.keep(entry())
    assert find(cache) is None


@pytest.mark.requirement("AI-6.2-2")
def test_nothing_secret_is_kept_and_only_the_user_can_read_it(tmp_path: Path, cache: DocumentCache) -> None:
    secret = dict.fromkeys(("set-cookie", "authorization", "x-api-key", "www-authenticate"), "id=SECRET")
    cache.keep(msgspec.structs.replace(entry(), headers=secret))
    cache.keep(entry("https://a.example/x?key=SECRET"))
    files = list(tmp_path.iterdir())
    assert len(files) == 1
    assert b"SECRET" not in files[0].read_bytes()
    cache = DocumentCache(tmp_path / "deep" / "er")
    cache.keep(entry())
    [file] = cache.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"\x00", b"{}", b"\xff" * 100, msgspec.msgpack.encode({"url": 1})])
def test_damaged_entry_is_ignored(tmp_path: Path, cache: DocumentCache, damage: bytes) -> None:
    cache.keep(entry())
    [file] = tmp_path.iterdir()
    file.write_bytes(damage)
    assert find(cache) is None
    cache.keep(entry())
    assert find(cache) is not None


def test_entries_of_other_addresses_and_versions_are_ignored(cache: DocumentCache, tmp_path: Path) -> None:
    cache.keep(msgspec.structs.replace(entry(), version=99))
    assert find(cache) is None
    cache.keep(entry())
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    cache.keep(entry("https://b.example/x"))
    other = next(path for path in tmp_path.iterdir() if path != file)
    other.write_bytes(content)
    assert find(cache, "https://b.example/x") is None


def test_the_oldest_entries_and_unfinished_files_go_first(tmp_path: Path, cache: DocumentCache) -> None:
    old, recent = tmp_path / f"{UNFINISHED}old", tmp_path / f"{UNFINISHED}recent"
    old.touch()
    recent.touch()
    os.utime(old, (1, 1))
    cache.keep(entry())
    assert (old.exists(), recent.exists()) == (False, True)
    cache = DocumentCache(tmp_path / "few", most_entries=3)
    for number in range(6):
        cache.keep(entry(f"https://a.example/{number}"))
        newest = max(cache.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    kept = [number for number in range(6) if find(cache, f"https://a.example/{number}")]
    assert kept == [3, 4, 5]


def test_the_bytes_are_bounded_and_a_body_beyond_them_is_not_kept(tmp_path: Path, cache: DocumentCache) -> None:
    cache.keep(entry(body=bytes(50_000_000)))
    assert list(tmp_path.iterdir()) == []
    cache = DocumentCache(tmp_path, most_bytes=5_000)
    for number in range(20):
        cache.keep(entry(f"https://a.example/{number}", b"x" * 1_000))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000


def test_several_writers_at_once_leave_whole_entries(tmp_path: Path) -> None:
    def write(number: int) -> None:
        cache = DocumentCache(tmp_path, most_entries=5)
        for turn in range(30):
            cache.keep(entry(f"https://a.example/{turn % 7}", bytes([number]) * 5_000))
            found = find(cache, f"https://a.example/{turn % 7}")
            assert found is None or len(set(found.body)) == 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(path.name.endswith(".document") for path in tmp_path.iterdir())


def test_the_place_is_chosen_by_the_caller_then_by_the_environment(tmp_path: Path) -> None:
    def place(folder: str | None, **environment: str) -> Path | None:
        found = open_cache(folder, environment)
        return found and found.folder

    assert place("/a", BESPEAK_CACHE="/b") == Path("/a")
    assert place(None, BESPEAK_CACHE="/b", XDG_CACHE_HOME="/c") == Path("/b")
    assert place(None, XDG_CACHE_HOME="/c") == Path("/c/bespeak/discovery")
    assert place(None, XDG_CACHE_HOME="relative") == Path.home() / ".cache/bespeak/discovery"
    assert place(None) == Path.home() / ".cache/bespeak/discovery"
    assert place("off") is None
    assert place(None, BESPEAK_CACHE="off") is None
    assert place(None, BESPEAK_CACHE="") is None


NOW = 1_800_000_000.0
"""Fri, 15 Jan 2027 08:00:00 GMT."""


@rows(
    "headers, expected",
    ({}, 7.0),
    ({"cache-control": "max-age=100"}, 100.0),
    ({"cache-control": "public, MAX-AGE=100"}, 100.0),
    ({"cache-control": 'max-age="100"'}, 100.0),
    ({"cache-control": "max-age=100", "age": "30"}, 70.0),
    ({"cache-control": "max-age=100", "age": "300"}, 0.0),
    ({"cache-control": "max-age=x"}, 0.0),
    ({"cache-control": "max-age=-1"}, 0.0),
    ({"cache-control": "max-age=99999999999999999999"}, 30 * 86400.0),
    ({"cache-control": "no-cache, max-age=100"}, 0.0),
    ({"cache-control": "no-store"}, 0.0),
    ({"expires": "Fri, 15 Jan 2027 08:01:00 GMT"}, 60.0),
    ({"expires": "0"}, 0.0),
    ({"cache-control": "max-age=5", "expires": "Fri, 15 Jan 2027 08:01:00 GMT"}, 5.0),
)
def test_the_headers_say_how_long(headers: dict[str, str], expected: float) -> None:
    assert lifetime(headers, NOW, 7.0) == expected


@rows(
    "headers, expected",
    ({}, True),
    ({"cache-control": "private, max-age=1"}, True),
    ({"cache-control": "No-Store"}, False),
    ({"vary": "Accept"}, True),
    ({"vary": " * "}, False),
)
def test_some_answers_may_not_be_kept(headers: dict[str, str], expected: bool) -> None:
    assert may_be_kept(headers) is expected


@rows(
    "text, expected",
    ("120", 120.0),
    (" 0 ", 0.0),
    ("Fri, 15 Jan 2027 08:02:00 GMT", 120.0),
    ("Fri, 15 Jan 2021 08:02:00 GMT", 0.0),
    ("soon", None),
    ("-5", None),
    ("1.5", None),
    ("٣", None),
)
def test_retry_after_is_seconds_or_a_date(text: str, expected: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == expected
    assert retry_after({}, NOW) is None


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    http_date(text)
    assert lifetime({"cache-control": text, "age": text}, NOW) >= 0
    after = retry_after({"retry-after": text}, NOW)
    assert after is None or after >= 0
