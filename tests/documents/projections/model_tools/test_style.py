"""What each provider keeps."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.providers import convert


def converted(style: str, part: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    made = convert({"type": "object", "properties": {"a": part}, "required": ["a"]}, style, strict=strict)
    found: dict[str, Any] = made.schema["properties"]["a"]
    return found


@pytest.mark.parametrize(
    ("part", "openai", "anthropic", "gemini"),
    [
        ({"type": "string", "minLength": 2}, False, False, False),
        ({"type": "string", "pattern": "^[a-z]{2}$"}, True, True, False),
        ({"type": "string", "pattern": r"^\bx"}, True, False, False),
        ({"type": "string", "pattern": "^x{2000}$"}, True, False, False),
        ({"type": "string", "pattern": "^(?!x)"}, False, False, False),
        ({"type": "string", "format": "uuid"}, True, True, False),
        ({"type": "string", "format": "uri"}, False, True, False),
        ({"type": "string", "format": "date"}, True, True, True),
        ({"type": "integer", "minimum": 2}, True, False, True),
        ({"type": "integer", "exclusiveMinimum": 2}, True, False, False),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, True, True, True),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, True, False, True),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, False, False, False),
        ({"type": "boolean", "enum": [True]}, True, True, False),
        ({"type": "integer", "enum": [1]}, True, True, True),
    ],
)
def test_a_keyword_is_kept_or_said(part: dict[str, Any], openai: bool, anthropic: bool, gemini: bool) -> None:
    for style, kept in (("openai", openai), ("anthropic", anthropic), ("gemini", gemini)):
        made = converted(style, part)
        assert (made == part) is kept, (style, made)
        assert ("description" in made) is not kept


def test_without_strict_mode_keywords_stay() -> None:
    part = {"type": "string", "minLength": 2, "default": "ab", "examples": ["xy"]}
    assert converted("openai", part, strict=False) == part
    assert converted("anthropic", part, strict=False) == part


def test_types_with_null_are_written_as_each_provider_takes_them() -> None:
    part = {"type": ["string", "null"]}
    assert converted("openai", part) == part
    assert converted("gemini", part) == part
    assert converted("anthropic", part) == {"anyOf": [{"type": "string"}, {"type": "null"}]}
