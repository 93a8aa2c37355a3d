"""Limits of two schemas: which is the stricter."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.checks.evolution.schema_view import compare_limits


def limits(old: Any, new: Any) -> list[tuple[str, str]]:
    return [(keyword, verdict) for keyword, _, _, verdict in compare_limits(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "keyword", "verdict"),
    [
        ({"minimum": 1}, {"exclusiveMinimum": 1}, "minimum", "tightened"),
        ({"exclusiveMaximum": 9}, {"maximum": 9}, "maximum", "loosened"),
        ({"minimum": -5}, {}, "minimum", "loosened"),
        ({}, {"maximum": 0}, "maximum", "tightened"),
        ({"minLength": 1}, {"minLength": 0}, "minLength", "loosened"),
        ({}, {"maxItems": 5}, "maxItems", "tightened"),
        ({"maxProperties": 5}, {"maxProperties": 9}, "maxProperties", "loosened"),
        ({"multipleOf": 2}, {"multipleOf": 6}, "multipleOf", "tightened"),
        ({"multipleOf": 0.3}, {"multipleOf": 0.1}, "multipleOf", "loosened"),
        ({"multipleOf": 2}, {"multipleOf": 3}, "multipleOf", "changed"),
        ({"multipleOf": 0}, {"multipleOf": 3}, "multipleOf", "changed"),
        ({"uniqueItems": True}, {}, "uniqueItems", "loosened"),
    ],
)
def test_stricter_limit_is_determined(old: Any, new: Any, keyword: str, verdict: str) -> None:
    assert limits(old, new) == [(keyword, verdict)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"minLength": 0}, {}),
        ({"minimum": 1}, {"minimum": 1.0}),
        ({"uniqueItems": False}, {}),
        ({"minimum": "one"}, {"minimum": float("nan")}),
        ({"maximum": True}, {}),
    ],
)
def test_equivalent_limits_do_not_differ(old: Any, new: Any) -> None:
    assert limits(old, new) == []


def test_an_exclusive_bound_is_shown_in_words() -> None:
    old, new = {"minimum": 1, "exclusiveMaximum": 9}, {"exclusiveMinimum": 2, "maximum": 5}
    assert list(compare_limits(old, new)) == [
        ("minimum", 1, "more than 2", "tightened"),
        ("maximum", "less than 9", 5, "tightened"),
    ]
