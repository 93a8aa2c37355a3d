"""Patterns of paths."""

from __future__ import annotations

import time

import pytest

from bespeak.checks.lint.config import matches_pattern


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.agis", "rooms.agis"),
        ("*.agis", "deep/down/rooms.agis"),
        ("legacy", "a/legacy/b/c.toml"),
        ("legacy/", "legacy/c.toml"),
        ("legacy/*.toml", "legacy/c.toml"),
        ("legacy/**/*.toml", "legacy/c.toml"),
        ("legacy/**/*.toml", "legacy/a/b/c.toml"),
        ("**/old/*", "a/b/old/c"),
        ("./a/b", "a/b"),
        ("a?c.[jt]s", "abc.js"),
        ("**", "anything/at/all"),
    ],
)
def test_a_pattern_means_a_path(pattern: str, path: str) -> None:
    assert matches_pattern(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.agis", "rooms.toml"),
        ("legacy/*.toml", "a/legacy/c.toml"),
        ("legacy/*.toml", "legacy/a/c.toml"),
        ("a/b", "a"),
        ("a", "ab"),
        ("A", "a"),
    ],
)
def test_a_pattern_means_no_other(pattern: str, path: str) -> None:
    assert not matches_pattern(pattern, path)


def test_many_stars_take_no_time() -> None:
    pattern, path = "*a" * 30 + "/**" * 30 + "/x", "a" * 200 + "/b" * 200
    started = time.process_time()
    assert not matches_pattern(pattern, path)
    assert time.process_time() - started < 5, "a pattern of the settings must not hang a run"
