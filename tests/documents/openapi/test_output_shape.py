"""The output is one object for any answer of the upstream."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.adoption.sanitizer import SchemaFitter
from bespeak.documents.openapi.description import DocumentedResponse, Operation
from bespeak.documents.openapi.output_shape import OutputShape, shape_output

OBJECT = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def answer(schema: Any, status: str = "200", media_type: str | None = "application/json") -> DocumentedResponse:
    return DocumentedResponse(status=status, media_type=media_type, schema=schema)


def shaped(*answers: DocumentedResponse, method: str = "GET") -> OutputShape:
    operation = Operation(method=method, path="/x", base="", pointer="", answers=answers)
    shape = shape_output(operation, SchemaFitter(), {})
    assert isinstance(shape, OutputShape)
    return shape


def test_an_object_is_the_output() -> None:
    shape = shaped(answer(OBJECT))
    assert (shape.schema, shape.answer, shape.output_field, shape.guesses) == (OBJECT, "json", None, [])


def test_output_is_open_and_has_no_write_only_properties() -> None:
    hidden = {
        "type": "object",
        "properties": {"p": {"writeOnly": True}},
        "required": ["p"],
        "additionalProperties": False,
    }
    assert shaped(answer(hidden)).schema == {"type": "object", "properties": {"p": {"writeOnly": True}}, "required": []}


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"type": "array", "items": OBJECT}, "items"),
        ({"type": "integer"}, "result"),
        ({"type": ["string", "null"]}, "result"),
        ({"enum": ["a", "b"]}, "result"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "result"),
    ],
)
def test_answer_that_is_not_an_object_becomes_a_field(schema: dict[str, Any], field: str) -> None:
    shape = shaped(answer(schema))
    assert shape.output_field == field
    assert shape.schema == {"type": "object", "properties": {field: schema}, "required": [field]}


@pytest.mark.parametrize("schema", [{}, None, {"oneOf": [OBJECT, {"type": "array"}]}, {"not": {"type": "null"}}])
def test_answer_of_any_type_is_passed_on_unchanged(schema: Any) -> None:
    shape = shaped(answer(schema))
    assert shape.output_field == "result"
    assert "required" not in shape.schema
    assert shape.guesses


def test_two_successes_are_alternatives() -> None:
    other = {"type": "object", "properties": {"job": {"type": "string"}}}
    shape = shaped(answer(OBJECT), answer(other, "202"), answer(OBJECT, "201"))
    assert shape.schema == {"type": "object", "anyOf": [OBJECT, other]}


def test_missing_body_is_ignored() -> None:
    assert shaped(answer(None, "204", None)).answer == "none"
    assert shaped(answer(OBJECT), method="HEAD").answer == "none"


def test_a_text_is_a_field() -> None:
    shape = shaped(answer({"type": "string"}, media_type="text/plain"))
    assert (shape.answer, shape.output_field) == ("text", "text")


def test_binary_answer_excludes_only_get_operations() -> None:
    image = answer({}, media_type="image/png")
    operation = Operation(method="GET", path="/x", base="", pointer="", answers=(image,))
    assert "image/png" in str(shape_output(operation, SchemaFitter(), {}))
    assert shaped(image, method="POST").answer == "none"


def test_missing_success_response_accepts_any_object() -> None:
    assert shaped().schema == {"type": "object"}
    assert shaped(DocumentedResponse(status="default", description="An error", media_type="application/json")).guesses


def test_default_response_that_is_not_an_error_is_the_success() -> None:
    assert shaped(answer(OBJECT, "default")).schema == OBJECT


def test_equal_answers_are_shaped_once() -> None:
    known: Any = {}
    operation = Operation(method="GET", path="/x", base="", pointer="", answers=(answer(OBJECT),))
    assert shape_output(operation, SchemaFitter(), known) is shape_output(operation, SchemaFitter(), known)
