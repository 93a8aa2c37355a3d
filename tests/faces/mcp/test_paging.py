"""Paging parameters of endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.faces.mcp.results import paging_of

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("properties", "arguments", "advice"),
    [
        ({"limit": INTEGER, "offset": INTEGER}, {}, "Call again with offset=7 for the elements that follow."),
        ({"offset": INTEGER}, {"offset": 20}, "Call again with offset=27 for the elements that follow."),
        ({"startIndex": {**INTEGER, "default": 1}}, {}, "Call again with startIndex=8 for the elements that follow."),
        (
            {"page_size": INTEGER, "cursor": TEXT},
            {},
            "Call again with page_size=7 or less, and then page on with cursor.",
        ),
        ({"perPage": INTEGER, "page": INTEGER}, {}, "Call again with perPage=7 or less, and then page on with page."),
        ({"limit": INTEGER}, {}, "Call again with limit=7 or less."),
        ({"cursor": TEXT}, {}, None),
        ({"limit": TEXT, "name": TEXT}, {}, None),
        ({}, {}, None),
    ],
)
def test_the_rest_of_a_list_is_had_by_the_endpoints_own_parameters(
    properties: dict[str, Any], arguments: dict[str, Any], advice: str | None
) -> None:
    found = paging_of(endpoint("LIST", "/rooms", input_schema={"type": "object", "properties": properties}))
    assert found.advise(arguments, 7) == advice
    assert found.advise(arguments, 0) is None
