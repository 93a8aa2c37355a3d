"""How long an answer is good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.agent.discovery.document_cache import http_date, lifetime, may_be_kept, retry_after

NOW = 1_800_000_000.0
"""Fri, 15 Jan 2027 08:00:00 GMT."""


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
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
    ],
)
def test_the_headers_say_how_long(headers: dict[str, str], expected: float) -> None:
    assert lifetime(headers, NOW, 7.0) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, True),
        ({"cache-control": "private, max-age=1"}, True),
        ({"cache-control": "No-Store"}, False),
        ({"vary": "Accept"}, True),
        ({"vary": " * "}, False),
    ],
)
def test_some_answers_may_not_be_kept(headers: dict[str, str], expected: bool) -> None:
    assert may_be_kept(headers) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Fri, 15 Jan 2027 08:02:00 GMT", 120.0),
        ("Fri, 15 Jan 2021 08:02:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, expected: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == expected


def test_missing_retry_after_is_none() -> None:
    assert retry_after({}, NOW) is None


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    http_date(text)
    assert lifetime({"cache-control": text, "age": text}, NOW) >= 0
    after = retry_after({"retry-after": text}, NOW)
    assert after is None or after >= 0
