"""Sentences for keywords."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.plain_form import sentence


@pytest.mark.parametrize(
    ("keyword", "value", "said"),
    [
        ("minLength", 1, ["At least 1 character."]),
        ("maxItems", 3, ["At most 3 items."]),
        ("pattern", "^a.$", ["It matches the pattern ^a.$"]),
        ("format", "uri", ["Format: uri."]),
        ("format", "int64", []),
        ("default", "x", ["Default: x."]),
        ("default", None, []),
        ("default", [1, "a"], ['Default: [1,"a"].']),
        ("enum", ["a", 1], ['One of: "a", 1.']),
        ("enum", list(range(30)), [f"One of: {', '.join(map(str, range(20)))}, ...."]),
        ("uniqueItems", True, ["No item twice."]),
        ("uniqueItems", False, []),
        ("examples", ["a", "b"], ['Example: "a".']),
        ("examples", [], []),
        ("deprecated", True, ["Deprecated."]),
        ("dependentRequired", "no", []),
        ("contains", {"const": 1}, ['It also meets this JSON Schema: {"contains":{"const":1}}.']),
    ],
)
def test_a_keyword_is_said_in_words(keyword: str, value: Any, said: list[str]) -> None:
    assert list(sentence(keyword, value)) == said


def test_a_long_value_is_cut_and_one_that_is_not_json_is_no_error() -> None:
    (said,) = sentence("not", {"const": "x" * 10_000})
    assert len(said) < 300
    assert list(sentence("default", {1j})) == ["Default: {1j}."]
