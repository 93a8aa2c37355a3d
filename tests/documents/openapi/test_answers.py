"""Responses are read with their status, their media type and their schema."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.openapi.reading import read_operation, rules

ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}


def content(**types: Any) -> dict[str, Any]:
    return {
        "description": "Good.",
        "content": {name.replace("_", "/"): {"schema": schema} for name, schema in types.items()},
    }


def test_every_status_is_kept_as_one_of_three_forms() -> None:
    responses = {
        "200": content(text_html={"type": "string"}, application_json=ROOM),
        "204": {"description": "Gone."},
        "4xx": {"$ref": "#/components/responses/Bad"},
        "default": content(application_json=ROOM),
        "x-note": 1,
    }
    bad = {"description": "Bad.", "content": {"application/problem+json": {"schema": ROOM}}}
    operation, found = read_operation({"responses": responses}, components={"responses": {"Bad": bad}})
    assert [(a.status, a.description, a.media_type, a.schema) for a in operation.answers] == [
        ("200", "Good.", "application/json", ROOM),
        ("204", "Gone.", None, None),
        ("4XX", "Bad.", "application/problem+json", ROOM),
        ("default", "Good.", "application/json", ROOM),
    ]
    assert found == []


@pytest.mark.parametrize(
    ("responses", "rule", "statuses"),
    [
        (None, "D103", []),
        ([], "D103", []),
        ({"ok": {}}, "D104", []),
        ({"600": {}}, "D104", []),
        ({"200": "fine"}, "D104", ["200"]),
        ({"200": {"$ref": "#/nowhere"}}, "D161", ["200"]),
    ],
)
def test_invalid_response_is_reported(responses: Any, rule: str, statuses: list[str]) -> None:
    operation, found = read_operation({"responses": responses})
    assert ([answer.status for answer in operation.answers], rules(found)) == (statuses, [rule])


def test_a_response_of_2_0_has_the_type_that_is_produced() -> None:
    responses = {"200": {"description": "Good.", "schema": ROOM}, "404": {"description": "No."}}
    operation, _ = read_operation({"responses": responses, "produces": ["text/csv", "application/json"]}, "2.0")
    assert [(a.media_type, a.schema) for a in operation.answers] == [("application/json", ROOM), (None, None)]
    operation, _ = read_operation({"responses": responses}, "2.0", produces=["application/hal+json"])
    assert operation.answers[0].media_type == "application/hal+json"


def test_a_file_is_answered_as_base64() -> None:
    responses = {"200": {"description": "A map.", "schema": {"type": "file"}}}
    operation, _ = read_operation({"responses": responses, "produces": ["image/png"]}, "2.0")
    answer = operation.answers[0]
    assert (answer.media_type, answer.schema) == ("image/png", {"type": "string", "contentEncoding": "base64"})
