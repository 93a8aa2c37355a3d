"""Bodies as fields of an input."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.adoption.sanitizer import SchemaFitter
from bespeak.documents.openapi.description import Body
from bespeak.documents.openapi.input_shape import BodyShape, shape_body

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}


def shaped(schema: dict[str, Any], media_type: str = "application/json", *, required: bool = True) -> BodyShape:
    shape = shape_body(Body(media_type=media_type, required=required, schema=schema), SchemaFitter())
    assert isinstance(shape, BodyShape)
    return shape


def test_missing_body_has_an_empty_shape() -> None:
    assert shape_body(None, SchemaFitter()) == BodyShape()


def test_a_plain_object_is_its_properties() -> None:
    shape = shaped(OBJECT)
    assert (shape.form, list(shape.properties), shape.needed, shape.whole) == ("json", ["a", "b"], ("a",), None)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {**OBJECT, "additionalProperties": {"type": "string"}},
        {**OBJECT, "additionalProperties": True},
        {**OBJECT, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object"},
        {},
    ],
)
def test_a_body_that_is_more_than_its_properties_is_one_field(schema: dict[str, Any]) -> None:
    shape = shaped(schema)
    assert shape.whole == schema
    assert [guess.text for guess in shape.guesses] == ["the body is one field"]


def test_a_reference_to_its_own_definition_is_followed() -> None:
    assert list(shaped({"$ref": "#/$defs/N", "$defs": {"N": OBJECT}}).properties) == ["a", "b"]


def test_read_only_property_is_not_an_input() -> None:
    schema = {"type": "object", "properties": {"id": {"readOnly": True}, "a": {}}, "required": ["id", "a"]}
    assert (list(shaped(schema).properties), shaped(schema).needed) == (["a"], ("a",))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "format": "binary"},
        {"type": "string", "contentMediaType": "image/png"},
        {"type": "string", "contentEncoding": "base64"},
    ],
)
def test_files_of_a_multipart_body_are_given_as_base64(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"file": part, "files": {"type": "array", "items": part}, "name": {}}}
    shape = shaped(schema, "multipart/form-data")
    assert shape.files == ("file", "files")
    assert shape.properties["file"] == {"type": "string", "contentEncoding": "base64"}
    assert shape.properties["files"]["items"] == {"type": "string", "contentEncoding": "base64"}


def test_another_kind_of_json_is_named_in_a_header() -> None:
    assert shaped(OBJECT, "application/merge-patch+json").headers == {"Content-Type": "application/merge-patch+json"}
    assert shaped(OBJECT).headers == {}


@pytest.mark.parametrize("media_type", ["application/xml", "application/octet-stream", "text/csv"])
def test_required_body_of_an_unsupported_type_is_a_reason_to_skip(media_type: str) -> None:
    needed = shape_body(Body(media_type=media_type, required=True, schema={}), SchemaFitter())
    assert isinstance(needed, str)
    assert media_type in needed
    assert shaped({}, media_type, required=False).form == "none"


def test_a_form_needs_fields() -> None:
    assert isinstance(
        shape_body(Body(media_type="multipart/form-data", required=True, schema={"type": "object"}), SchemaFitter()),
        str,
    )
