"""A body is sent in one media type, which the description allows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.openapi.reading import OK, document, read, read_operation, rules

ROOM: dict[str, Any] = {"type": "object", "properties": {"beds": {"type": "integer"}}}


def test_json_is_chosen_and_the_others_are_listed() -> None:
    content = {
        "application/xml": {},
        "application/x-www-form-urlencoded": {"schema": ROOM},
        "application/json": {"schema": ROOM},
    }
    operation, found = read_operation({"requestBody": {"required": True, "description": "A room.", "content": content}})
    body = operation.body
    assert body is not None
    assert (body.media_type, body.required, body.schema, body.description) == (
        "application/json",
        True,
        ROOM,
        "A room.",
    )
    assert body.other_types == ("application/x-www-form-urlencoded", "application/xml")
    assert rules(found) == ["D168"]


@pytest.mark.parametrize(
    ("content", "media_type", "schema"),
    [
        ({"multipart/form-data": {"schema": ROOM}}, "multipart/form-data", ROOM),
        ({"application/octet-stream": {}}, "application/octet-stream", {"type": "string", "contentEncoding": "base64"}),
        ({"image/png": {"schema": {"title": "Map"}}}, "image/png", {"type": "string", "contentEncoding": "base64"}),
        ({"text/plain": {}}, "text/plain", {"type": "string"}),
        ({"*/*": {"schema": ROOM}}, "application/json", ROOM),
        ({"application/json": {}}, "application/json", {}),
    ],
)
def test_any_offered_media_type_can_be_sent(content: Any, media_type: str, schema: Any) -> None:
    body = read_operation({"requestBody": {"content": content}})[0].body
    assert body is not None
    assert (body.media_type, body.schema, body.required) == (media_type, schema, False)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "D168"),
        ({"content": []}, "D168"),
        ("text", "D168"),
        ({"$ref": "https://x.example/b.json"}, "D161"),
        ({"content": {"application/json": {"schema": {"$ref": "https://x.example/s.json"}}}}, "D161"),
    ],
)
def test_unreadable_body_is_open_and_reported(body: Any, rule: str) -> None:
    operation, found = read_operation({"requestBody": body})
    assert operation.body is not None
    assert (operation.body.schema, rules(found)) == ({}, [rule])


def test_a_reference_leads_to_a_body() -> None:
    parts = {"requestBodies": {"Room": {"content": {"application/json": {"schema": ROOM}}}}}
    operation, found = read_operation({"requestBody": {"$ref": "#/components/requestBodies/Room"}}, components=parts)
    assert operation.body is not None
    assert (operation.body.schema, found) == (ROOM, [])


def test_a_get_has_no_body() -> None:
    operation = {"requestBody": {"content": {"application/json": {"schema": ROOM}}}, "responses": OK}
    made, found = read(document({"/room": {"get": operation}}))
    assert (made.operations[0].body, rules(found)) == (None, ["D168"])


def test_empty_form_of_a_get_is_ignored_silently() -> None:
    empty = {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {}}}}}
    made, found = read(document({"/room": {"get": {"requestBody": empty, "responses": OK}}}))
    assert (made.operations[0].body, found) == (None, [])


def swagger(*parameters: Any, **parts: Any) -> Any:
    return read_operation(
        {"parameters": list(parameters), **parts}, "2.0", consumes=["application/xml", "application/json"]
    )


def test_the_body_of_2_0_is_a_parameter() -> None:
    operation, found = swagger({"name": "body", "in": "body", "required": True, "schema": ROOM})
    body = operation.body
    assert (body.media_type, body.required, body.schema) == ("application/json", True, ROOM)
    assert body.other_types == ("application/xml",)
    assert (operation.parameters, found) == ((), [])


def test_the_fields_of_a_form_of_2_0_are_one_object() -> None:
    fields = [
        {"name": "beds", "in": "formData", "type": "integer", "required": True, "description": "How many."},
        {"name": "note", "in": "formData", "type": "string"},
    ]
    body = swagger(*fields, consumes=["application/x-www-form-urlencoded"])[0].body
    assert body.media_type == "application/x-www-form-urlencoded"
    assert body.schema == {
        "type": "object",
        "properties": {"beds": {"type": "integer", "description": "How many."}, "note": {"type": "string"}},
        "required": ["beds"],
    }


def test_a_file_of_2_0_makes_the_form_multipart() -> None:
    body = swagger({"name": "map", "in": "formData", "type": "file"})[0].body
    assert body.media_type == "multipart/form-data"
    assert body.schema["properties"]["map"] == {"type": "string", "contentEncoding": "base64"}
    assert body.required is False


def test_a_body_and_a_form_exclude_each_other() -> None:
    operation, found = swagger(
        {"name": "b", "in": "body", "schema": ROOM}, {"name": "f", "in": "formData", "type": "string"}
    )
    assert (operation.body.schema, rules(found)) == (ROOM, ["D164"])


ANSWERS_ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}


def content(**types: Any) -> dict[str, Any]:
    return {
        "description": "Good.",
        "content": {name.replace("_", "/"): {"schema": schema} for name, schema in types.items()},
    }


def test_every_status_is_kept_as_one_of_three_forms() -> None:
    responses = {
        "200": content(text_html={"type": "string"}, application_json=ANSWERS_ROOM),
        "204": {"description": "Gone."},
        "4xx": {"$ref": "#/components/responses/Bad"},
        "default": content(application_json=ANSWERS_ROOM),
        "x-note": 1,
    }
    bad = {"description": "Bad.", "content": {"application/problem+json": {"schema": ANSWERS_ROOM}}}
    operation, found = read_operation({"responses": responses}, components={"responses": {"Bad": bad}})
    assert [(a.status, a.description, a.media_type, a.schema) for a in operation.answers] == [
        ("200", "Good.", "application/json", ANSWERS_ROOM),
        ("204", "Gone.", None, None),
        ("4XX", "Bad.", "application/problem+json", ANSWERS_ROOM),
        ("default", "Good.", "application/json", ANSWERS_ROOM),
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
    responses = {"200": {"description": "Good.", "schema": ANSWERS_ROOM}, "404": {"description": "No."}}
    operation, _ = read_operation({"responses": responses, "produces": ["text/csv", "application/json"]}, "2.0")
    assert [(a.media_type, a.schema) for a in operation.answers] == [("application/json", ANSWERS_ROOM), (None, None)]
    operation, _ = read_operation({"responses": responses}, "2.0", produces=["application/hal+json"])
    assert operation.answers[0].media_type == "application/hal+json"


def test_a_file_is_answered_as_base64() -> None:
    responses = {"200": {"description": "A map.", "schema": {"type": "file"}}}
    operation, _ = read_operation({"responses": responses, "produces": ["image/png"]}, "2.0")
    answer = operation.answers[0]
    assert (answer.media_type, answer.schema) == ("image/png", {"type": "string", "contentEncoding": "base64"})
