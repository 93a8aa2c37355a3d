"""A body is sent in one media type, which the description allows."""

from __future__ import annotations

from typing import Any

from tests.cases import rows
from tests.documents.openapi.reading import OK, document, read, read_operation, rules

ROOM: dict[str, Any] = {"type": "object", "properties": {"beds": {"type": "integer"}}}


def test_json_is_chosen_and_the_others_are_listed() -> None:
    typed = {"schema": ROOM}
    content = {"application/xml": {}, "application/x-www-form-urlencoded": typed, "application/json": typed}
    operation, found = read_operation({"requestBody": {"required": True, "description": "A room.", "content": content}})
    body = operation.body
    assert (body.media_type, body.required) == ("application/json", True)
    assert (body.schema, body.description) == (ROOM, "A room.")
    assert body.other_types == ("application/x-www-form-urlencoded", "application/xml")
    assert rules(found) == ["D168"]


@rows(
    "content, media_type, schema",
    ({"multipart/form-data": {"schema": ROOM}}, "multipart/form-data", ROOM),
    ({"application/octet-stream": {}}, "application/octet-stream", {"type": "string", "contentEncoding": "base64"}),
    ({"image/png": {"schema": {"title": "Map"}}}, "image/png", {"type": "string", "contentEncoding": "base64"}),
    ({"text/plain": {}}, "text/plain", {"type": "string"}),
    ({"*/*": {"schema": ROOM}}, "application/json", ROOM),
    ({"application/json": {}}, "application/json", {}),
)
def test_any_offered_media_type_can_be_sent(content: Any, media_type: str, schema: Any) -> None:
    body = read_operation({"requestBody": {"content": content}})[0].body
    assert (body.media_type, body.schema, body.required) == (media_type, schema, False)


@rows(
    "body, rule",
    ({}, "D168"),
    ({"content": []}, "D168"),
    ("text", "D168"),
    ({"$ref": "https://x.example/b.json"}, "D161"),
    ({"content": {"application/json": {"schema": {"$ref": "https://x.example/s.json"}}}}, "D161"),
)
def test_unreadable_body_is_open_and_reported(body: Any, rule: str) -> None:
    operation, found = read_operation({"requestBody": body})
    assert (operation.body.schema, rules(found)) == ({}, [rule])


def test_reference_leads_to_a_body_and_that_of_2_0_is_a_parameter() -> None:
    parts = {"requestBodies": {"Room": {"content": {"application/json": {"schema": ROOM}}}}}
    operation, found = read_operation({"requestBody": {"$ref": "#/components/requestBodies/Room"}}, components=parts)
    assert (operation.body.schema, found) == (ROOM, [])
    operation, found = swagger({"name": "body", "in": "body", "required": True, "schema": ROOM})
    body = operation.body
    assert (body.media_type, body.required, body.schema) == ("application/json", True, ROOM)
    assert body.other_types == ("application/xml",)
    assert (operation.parameters, found) == ((), [])


@rows(
    "media_type, schema, reported",
    ("application/json", ROOM, ["D168"]),
    ("application/x-www-form-urlencoded", {"type": "object", "properties": {}}, []),
)
def test_a_get_has_no_body_and_an_empty_form_is_ignored(media_type: str, schema: Any, reported: list[str]) -> None:
    operation = {"requestBody": {"content": {media_type: {"schema": schema}}}, "responses": OK}
    made, found = read(document({"/room": {"get": operation}}))
    assert (made.operations[0].body, rules(found)) == (None, reported)


def swagger(*parameters: Any, **parts: Any) -> Any:
    given = {"parameters": list(parameters), **parts}
    return read_operation(given, "2.0", consumes=["application/xml", "application/json"])


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


def test_files_and_forms_of_2_0_are_multipart_base64_and_exclude_a_body() -> None:
    body = swagger({"name": "map", "in": "formData", "type": "file"})[0].body
    assert body.media_type == "multipart/form-data"
    assert body.schema["properties"]["map"] == {"type": "string", "contentEncoding": "base64"}
    assert body.required is False
    form = {"name": "f", "in": "formData", "type": "string"}
    operation, found = swagger({"name": "b", "in": "body", "schema": ROOM}, form)
    assert (operation.body.schema, rules(found)) == (ROOM, ["D164"])
    responses = {"200": {"description": "A map.", "schema": {"type": "file"}}}
    operation, _ = read_operation({"responses": responses, "produces": ["image/png"]}, "2.0")
    answer = operation.answers[0]
    assert (answer.media_type, answer.schema) == ("image/png", {"type": "string", "contentEncoding": "base64"})


ANSWERS_ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}


def content(**types: Any) -> dict[str, Any]:
    typed = {name.replace("_", "/"): {"schema": schema} for name, schema in types.items()}
    return {"description": "Good.", "content": typed}


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


@rows(
    "responses, rule, statuses",
    (None, "D103", []),
    ([], "D103", []),
    ({"ok": {}}, "D104", []),
    ({"600": {}}, "D104", []),
    ({"200": "fine"}, "D104", ["200"]),
    ({"200": {"$ref": "#/nowhere"}}, "D161", ["200"]),
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
