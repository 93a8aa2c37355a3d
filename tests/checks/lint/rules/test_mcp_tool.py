from __future__ import annotations

from typing import Any

import pytest
from tests.checks.lint.agis_text import advice, document, endpoint, rules


def room(path: str, name: str | None = None) -> dict[str, Any]:
    parameters = {"id": {"type": "string"}}
    schema = {"type": "object", "properties": parameters, "required": ["id"]}
    return endpoint(path=path, input=schema, semantic={"mcp_tool_name": name} if name else None)


@pytest.mark.requirement("AGIS-C.2-1")
def test_own_names_are_right_two_default_names_a_warning_and_a_repeated_endpoint_another() -> None:
    assert rules(document(room("/room"), room("/room/{id}", "book_known_room"), room("/hall"))) == []
    found = advice("J646", document(room("/room"), room("/room/{id}")))
    assert (found.severity, found.pointer) == ("warning", "/endpoints/1/path")
    assert rules(document(room("/room"), room("/room"))) == ["P307"]


@pytest.mark.requirement("AGIS-6.2-16")
@pytest.mark.parametrize(
    ("first", "second", "place"), [("book_hall", None, 0), (None, "book_room", 1), ("book_all", "book_all", 1)]
)
def test_a_chosen_name_that_is_taken_is_an_error(first: str | None, second: str | None, place: int) -> None:
    found = advice("J645", document(room("/room", first), room("/hall", second)))
    assert (found.severity, found.pointer) == ("error", f"/endpoints/{place}/semantic/mcp_tool_name")
