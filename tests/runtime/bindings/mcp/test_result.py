"""The result of a tool becomes the output of an endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.runtime.bindings.mcp.tool import error_text, read_output


def text(*said: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": one} for one in said]


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def test_output_without_room_for_blocks_has_none() -> None:
    assert read_output({"structuredContent": {"sum": 3}, "content": [IMAGE]}, carries=False) == {"sum": 3}
    assert read_output({"content": text('{"content": []}')}, carries=False) == {"content": []}


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ({"structuredContent": {"sum": 3}, "content": text("3")}, {"sum": 3}),
        ({"structuredContent": [1, 2]}, {"result": [1, 2]}),
        ({"content": text('{"sum": 3}')}, {"sum": 3}),
        ({"content": text("[1]")}, {"content": text("[1]")}),
        ({"content": text("plain")}, {"content": text("plain")}),
        ({"content": text('{"a": 1, "a": 2}')}, {"content": text('{"a": 1, "a": 2}')}),
        ({"content": text("[" * 10_000)}, {"content": text("[" * 10_000)}),
        ({"content": text("{}", "{}")}, {"content": text("{}", "{}")}),
        ({}, {"content": []}),
        ({"structuredContent": {"sum": 3}, "content": [IMAGE]}, {"sum": 3, "content": [IMAGE]}),
        ({"structuredContent": {"content": 3}, "content": [IMAGE]}, {"content": 3}),
        ({"content": text('{"content": []}')}, {"content": text('{"content": []}')}),
    ],
)
def test_output_is_structured_content_or_json_or_the_blocks(result: dict[str, Any], output: dict[str, Any]) -> None:
    assert read_output(result) == output


def test_text_of_an_error_is_one_bounded_line() -> None:
    assert error_text({"content": text("a\nb", "c\x1b[0m")}) == "a b c\\x1b[0m"
    assert len(error_text({"content": text("x" * 10_000)})) == 2_003
    assert error_text({"content": [{"type": "image"}]}) == ""
