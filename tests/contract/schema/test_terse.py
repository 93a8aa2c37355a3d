"""Schemas without what holds anyway."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.mcp_tool import terse


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}, {"type": "object"}),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema#", "required": []}, {}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            {"$schema": "http://json-schema.org/draft-07/schema#"},
        ),
        (
            {"$defs": {"Room": {"title": "Room", "type": "object"}, "Bed": {"title": "A bed"}, "Any": True}},
            {"$defs": {"Room": {"type": "object"}, "Bed": {"title": "A bed"}, "Any": True}},
        ),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"prefixItems": [{}]}},
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"prefixItems": [{}]}},
        ),
        ({"title": "Rooms", "required": ["a"]}, {"title": "Rooms", "required": ["a"]}),
    ],
)
def test_what_holds_anyway_is_left_out(schema: dict[str, Any], written: dict[str, Any]) -> None:
    before = repr(schema)
    assert terse(schema) == written
    assert repr(schema) == before
