"""Media types in any spelling."""

from __future__ import annotations

import pytest

from bespeak.protocol.exchange.headers import essence, foreign_charset, is_json, is_media_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("image/png", True),
        ('text/csv; charset=utf-8; header="present"', True),
        ("image/*", False),
        ("text", False),
        ("text/plain, text/csv", False),
        ("text/plain\r\nX-Evil: 1", False),
        ('text/plain; a="\r\nX-Evil: 1"', False),
        ("text/" + "x" * 200, False),
    ],
)
def test_a_media_type_has_a_type_a_subtype_and_parameters(text: str, expected: bool) -> None:
    assert is_media_type(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" Text/HTML ; charset=x", "text/html"), ("text/html;", "text/html"), ("", ""), ("; charset=utf-8", "")],
)
def test_parameters_and_case_are_not_part_of_a_type(text: str, expected: str) -> None:
    assert essence(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/vnd.x+json", True),
        ("text/json", False),
        ("text/x+json", False),
        ("application/jsonx", False),
        ("json", False),
        ("", False),
    ],
)
def test_json_is_known_by_its_name(text: str, expected: bool) -> None:
    assert is_json(text) is expected


@pytest.mark.parametrize(
    ("media_type", "charset"),
    [
        ("application/json", None),
        ("application/json; charset=UTF-8", None),
        ('application/json;v=1; Charset="utf8"', None),
        ("application/json; charset=us-ascii", None),
        ("application/json; charset=latin-1", "latin-1"),
        ("application/json; charset=utf-8; charset=utf-16", "utf-16"),
        ("application/json; charset", ""),
    ],
)
def test_charset_that_is_not_utf8_is_found(media_type: str, charset: str | None) -> None:
    assert foreign_charset(media_type) == charset
