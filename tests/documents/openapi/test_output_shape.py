"""The output is one object for any answer of the upstream."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.adoption.sanitizer import SchemaFitter
from bespeak.documents.openapi.description import DocumentedResponse, Operation
from bespeak.documents.openapi.facade import OutputShape, shape_output

OBJECT = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def answer(schema: Any, status: str = "200", media_type: str | None = "application/json") -> DocumentedResponse:
    return DocumentedResponse(status=status, media_type=media_type, schema=schema)


def shaped(*answers: DocumentedResponse, method: str = "GET") -> OutputShape:
    operation = Operation(method=method, path="/x", base="", pointer="", answers=answers)
    shape = shape_output(operation, SchemaFitter(), {})
    assert isinstance(shape, OutputShape)
    return shape


def test_outputs_are_objects_alternatives_fields_or_anything_if_undocumented() -> None:
    shape = shaped(answer(OBJECT))
    assert (shape.schema, shape.answer, shape.output_field, shape.guesses) == (OBJECT, "json", None, [])
    other = {"type": "object", "properties": {"job": {"type": "string"}}}
    shape = shaped(answer(OBJECT), answer(other, "202"), answer(OBJECT, "201"))
    assert shape.schema == {"type": "object", "anyOf": [OBJECT, other]}
    assert shaped(answer(None, "204", None)).answer == "none"
    assert shaped(answer(OBJECT), method="HEAD").answer == "none"
    shape = shaped(answer({"type": "string"}, media_type="text/plain"))
    assert (shape.answer, shape.output_field) == ("text", "text")
    assert shaped().schema == {"type": "object"}
    assert shaped(DocumentedResponse(status="default", description="An error", media_type="application/json")).guesses
    assert shaped(answer(OBJECT, "default")).schema == OBJECT  # it is not an error


def test_output_is_open_and_has_no_write_only_properties() -> None:
    hidden = {"type": "object", "properties": {"p": {"writeOnly": True}}}
    assert shaped(answer({**hidden, "required": ["p"], "additionalProperties": False})).schema == {
        **hidden,
        "required": [],
    }


@rows(
    "schema, field",
    ({"type": "array", "items": OBJECT}, "items"),
    ({"type": "integer"}, "result"),
    ({"type": ["string", "null"]}, "result"),
    ({"enum": ["a", "b"]}, "result"),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "result"),
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


def test_binary_answer_excludes_only_get_operations_and_equal_answers_are_shaped_once() -> None:
    image = answer({}, media_type="image/png")
    operation = Operation(method="GET", path="/x", base="", pointer="", answers=(image,))
    assert "image/png" in str(shape_output(operation, SchemaFitter(), {}))
    assert shaped(image, method="POST").answer == "none"
    known: Any = {}
    operation = Operation(method="GET", path="/x", base="", pointer="", answers=(answer(OBJECT),))
    assert shape_output(operation, SchemaFitter(), known) is shape_output(operation, SchemaFitter(), known)
