"""JSON is preferred, then forms, then any other type."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.openapi.description import default_schema, is_binary, is_json, preferred, sent_type


def test_best_media_type_comes_first() -> None:
    offered = ["text/csv", "multipart/form-data", "application/x-www-form-urlencoded", "*/*", "application/hal+json"]
    assert preferred([*offered, "application/json; charset=utf-8"]) == [
        "application/json; charset=utf-8",
        "application/hal+json",
        "*/*",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/csv",
    ]


def test_json_is_sent_if_any_type_is_allowed() -> None:
    assert sent_type("*/*") == "application/json"
    assert sent_type(" text/csv ") == "text/csv"


@pytest.mark.parametrize(
    ("media_type", "answer"),
    [
        ("application/json", True),
        ("Application/Problem+JSON; v=1", True),
        ("text/json", True),
        ("application/xml", False),
    ],
)
def test_json_has_many_names(media_type: str, answer: bool) -> None:
    assert is_json(media_type) is answer


@pytest.mark.parametrize(
    ("media_type", "schema"),
    [
        ("application/json", {}),
        ("text/plain", {"type": "string"}),
        ("application/xml", {"type": "string"}),
        ("multipart/form-data", {"type": "object"}),
        ("image/png", {"type": "string", "contentEncoding": "base64"}),
    ],
)
def test_media_type_alone_gives_a_schema(media_type: str, schema: dict[str, Any]) -> None:
    assert default_schema(media_type) == schema
    assert is_binary(media_type) is ("contentEncoding" in schema)
