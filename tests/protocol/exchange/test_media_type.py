"""Media types in any spelling."""

from __future__ import annotations

import pytest

from bespeak.protocol.exchange.media_type import essence, is_json


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
