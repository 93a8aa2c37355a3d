"""One flat input of parameters and body, each field with its place upstream."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.schema.subschemas import is_closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.adoption.path_choice import choose_path
from bespeak.documents.adoption.sanitizer import SchemaFitter
from bespeak.documents.openapi.description import Body, Operation, Parameter
from bespeak.documents.openapi.input_shape import BodyShape, InputShape, exclusions, shape_body, shape_input

VERBS = load_bundled().names
TEXT = {"type": "string"}
OWN_HEADERS = (
    *("Authorization", "Cookie", "Host", "Content-Type", "Accept", "X-Forwarded-For", "Agent-ID", "Connection"),
)


def parameter(name: str, place: Any = "query", schema: dict[str, Any] | None = None, **fields: Any) -> Parameter:
    return Parameter(name=name, place=place, schema=schema or TEXT, required=fields.pop("required", False), **fields)


def shaped(*parameters: Parameter, path: str = "/notes", body: Body | None = None, **options: Any) -> InputShape:
    operation = Operation(
        method="POST", path=path, base="https://x.example", pointer="", parameters=parameters, body=body
    )
    shape = shape_input(operation, choose_path(path, "CREATE", VERBS), SchemaFitter(), **options)
    assert isinstance(shape, InputShape)
    return shape


def json_body(schema: dict[str, Any], *, required: bool = True) -> Body:
    return Body(media_type="application/json", required=required, schema=schema)


def test_fields_are_assigned_to_their_places() -> None:
    shape = shaped(
        parameter("noteId", "path", required=True),
        parameter("sortBy"),
        parameter("X-Trace-Id", "header"),
        parameter("theme", "cookie"),
        path="/notes/{noteId}",
        body=json_body({"type": "object", "properties": {"noteText": TEXT}, "required": ["noteText"]}),
    )
    assert list(shape.schema["properties"]) == ["note_id", "sort_by", "x_trace_id", "theme", "note_text"]
    assert (shape.schema["required"], shape.query) == (["note_id", "note_text"], ["sort_by"])
    assert (shape.header_fields, shape.cookie_fields) == ({"x_trace_id": "X-Trace-Id"}, {"theme": "theme"})
    assert shape.transform == {"sort_by": "sortBy", "note_text": "noteText"}
    assert is_closed(shape.schema)


def test_fields_with_the_same_name_get_their_place_as_prefix() -> None:
    body = json_body({"type": "object", "properties": {"id": {"type": "integer"}, "ID": TEXT}})
    shape = shaped(parameter("id"), path="/notes/{id}", body=body)
    assert list(shape.schema["properties"]) == ["id", "query_id", "body_id", "body_id_2"]
    assert shape.transform == {"query_id": "id", "body_id": "id", "body_id_2": "ID"}
    assert [guess.text for guess in shape.guesses] == [
        "query_id is the 'id' of the query",
        "body_id is the 'id' of the body",
        "body_id_2 is the 'ID' of the body",
    ]


@rows(
    "shape, properties",
    (shaped(path="/notes/{id}"), {"id": {"type": "string", "minLength": 1}}),  # not described
    (shaped(parameter("api_key"), credentials={("query", "api_key")}), {}),
    (shaped(parameter("n", schema={"type": "integer", "default": "one"})), {"n": {"type": "integer"}}),
    *((shaped(parameter(name, "header", required=True)), {}) for name in OWN_HEADERS),
)
def test_credentials_own_headers_and_wrong_defaults_are_not_inputs(shape: InputShape, properties: Any) -> None:
    assert shape.schema["properties"] == properties


def test_single_accept_header_is_sent_and_an_exploded_object_becomes_its_properties() -> None:
    accept = parameter("Accept", "header", {"type": "string", "enum": ["application/vnd.x+json"]}, required=True)
    assert shaped(accept).headers == {"Accept": "application/vnd.x+json"}
    schema = {"type": "object", "properties": {"fromDate": TEXT, "to": TEXT}, "required": ["to"]}
    shape = shaped(parameter("range", schema=schema, required=True))
    assert (shape.query, shape.schema["required"]) == (["from_date", "to"], ["to"])
    assert shaped(parameter("range", schema=schema, required=False)).schema["required"] == []


@rows(
    "fields, style",
    ({}, None),
    ({"explode": False}, "comma"),
    ({"style": "spaceDelimited", "explode": False}, "space"),
    ({"style": "pipeDelimited", "explode": False}, "pipe"),
    ({"style": "deepObject"}, "deep"),
    ({"is_json": True}, "json"),
)
def test_several_values_are_written_as_described(fields: dict[str, Any], style: str | None) -> None:
    shape = shaped(parameter("tags", schema={"type": "array", "items": TEXT}, **fields))
    assert shape.lists.get("tags") == style
    assert shaped(parameter("q", explode=False)).lists == {}  # one value


def test_optional_fields_that_exclude_each_other_are_noted() -> None:
    said = "Cannot be used together with `endingBefore`."
    before = parameter("endingBefore")
    shape = shaped(parameter("startingAfter", description=said), before)
    (guess,) = [guess for guess in shape.guesses if guess.at == "/input_schema"]
    assert guess.text == "starting_after and ending_before may be sent together"
    assert said in guess.why
    properties = {"email": TEXT, "id": {**TEXT, "description": "Not both this and `email`."}}
    body = {"type": "object", "properties": properties}
    noted = shaped(body=json_body({"$ref": "#/$defs/B", "$defs": {"B": body}})).guesses
    assert [guess.text for guess in noted] == ["id and email may be sent together"]
    needed = parameter("startingAfter", description=said, required=True)
    assert shaped(needed, before).guesses == []


@rows(
    "schema, bounded, own",
    ({"type": "integer"}, {"type": "integer", "maximum": 100, "default": 20}, [("perPage", "20")]),
    ({"type": "integer", "default": 500}, {"type": "integer", "default": 500, "maximum": 500}, []),
    ({"type": "integer", "maximum": 10}, {"type": "integer", "maximum": 10, "default": 10}, [("perPage", "10")]),
    ({"type": "integer", "maximum": 9, "default": 3}, {"type": "integer", "maximum": 9, "default": 3}, []),
    ({"type": "string"}, {"type": "string"}, []),
)
def test_page_size_is_limited(schema: dict[str, Any], bounded: dict[str, Any], own: list[tuple[str, str]]) -> None:
    shape = shaped(parameter("perPage", schema=schema))
    assert (shape.schema["properties"]["per_page"], shape.own_query) == (bounded, own)


def test_body_is_required_once_sent_or_a_whole_field_and_an_unsendable_one_has_a_reason() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    compiled = compile_schema(shaped(body=json_body(schema, required=False)).schema)
    assert isinstance(compiled, Validator)
    assert [compiled.is_valid(value) for value in ({}, {"b": "x"}, {"a": "x"})] == [True, False, True]
    shape = shaped(
        parameter("body"), body=json_body({"type": "array", "items": {"$ref": "#/$defs/T"}, "$defs": {"T": TEXT}})
    )
    assert (shape.body, shape.body_field, shape.query) == ("json", "body_body", ["body"])
    assert (shape.schema["$defs"], shape.schema["required"]) == ({"T": TEXT}, ["body_body"])
    body = Body(media_type="application/xml", required=True, schema={})
    operation = Operation(method="POST", path="/x", base="https://x.example", pointer="", body=body)
    assert "application/xml" in str(shape_input(operation, choose_path("/x", "CREATE", VERBS), SchemaFitter()))


def test_single_allowed_value_is_sent_automatically() -> None:
    shape = shaped(
        parameter("X-Target", "header", {"type": "string", "enum": ["Db.Create"]}, required=True),
        parameter("Version", "query", {"type": "string", "const": "2016"}, required=True),
        parameter("Mode", "query", {"type": "string", "enum": ["fast"]}),
        parameter("X-Home", "header", {"type": "string", "enum": ["${HOME}"]}, required=True),
    )
    assert (shape.headers, shape.own_query) == ({"X-Target": "Db.Create"}, [("Version", "2016")])
    assert list(shape.schema["properties"]) == ["mode", "x_home"]


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}


def body_shape_shaped(schema: Any, media_type: str = "application/json", *, required: bool = True) -> BodyShape:
    shape = shape_body(Body(media_type=media_type, required=required, schema=schema), SchemaFitter())
    assert isinstance(shape, BodyShape)
    return shape


def test_plain_object_is_its_writable_properties_and_other_json_is_named_in_a_header() -> None:
    assert shape_body(None, SchemaFitter()) == BodyShape()
    for schema in (OBJECT, {"$ref": "#/$defs/N", "$defs": {"N": OBJECT}}):
        shape = body_shape_shaped(schema)
        assert (shape.form, list(shape.properties), shape.needed, shape.whole) == ("json", ["a", "b"], ("a",), None)
    schema = {"type": "object", "properties": {"id": {"readOnly": True}, "a": {}}, "required": ["id", "a"]}
    assert (list(body_shape_shaped(schema).properties), body_shape_shaped(schema).needed) == (["a"], ("a",))
    patch = "application/merge-patch+json"
    assert body_shape_shaped(OBJECT, patch).headers == {"Content-Type": patch}
    assert body_shape_shaped(OBJECT).headers == {}


@rows(
    "schema",
    {"type": "array", "items": {"type": "string"}},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {**OBJECT, "additionalProperties": {"type": "string"}},
    {**OBJECT, "additionalProperties": True},
    {**OBJECT, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "object"},
    {},
)
def test_a_body_that_is_more_than_its_properties_is_one_field(schema: dict[str, Any]) -> None:
    shape = body_shape_shaped(schema)
    assert shape.whole == schema
    assert [guess.text for guess in shape.guesses] == ["the body is one field"]


@rows(
    "part",
    {"type": "string", "format": "binary"},
    {"type": "string", "contentMediaType": "image/png"},
    {"type": "string", "contentEncoding": "base64"},
)
def test_files_of_a_multipart_body_are_given_as_base64(part: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"file": part, "files": {"type": "array", "items": part}, "name": {}}}
    shape = body_shape_shaped(schema, "multipart/form-data")
    assert shape.files == ("file", "files")
    assert shape.properties["file"] == {"type": "string", "contentEncoding": "base64"}
    assert shape.properties["files"]["items"] == {"type": "string", "contentEncoding": "base64"}


@pytest.mark.parametrize("media_type", ["application/xml", "application/octet-stream", "text/csv"])
def test_required_body_of_an_unsupported_type_is_a_reason_to_skip(media_type: str) -> None:
    needed = shape_body(Body(media_type=media_type, required=True, schema={}), SchemaFitter())
    assert isinstance(needed, str)
    assert media_type in needed
    assert body_shape_shaped({}, media_type, required=False).form == "none"
    empty = Body(media_type="multipart/form-data", required=True, schema={"type": "object"})
    assert isinstance(shape_body(empty, SchemaFitter()), str)  # a form needs fields


def pairs(**texts: str) -> list[tuple[str, str]]:
    return [(one, other) for one, other, _ in exclusions(texts)]


@rows(
    "text",
    "The start. Cannot be used together with end_before.",
    "Can't be combined with `end_before`.",
    "Mutually exclusive with end_before.",
    "Must not be specified with end_before!",
    "A cursor; conflicts with end_before",
    "This is not compatible with end_before.",
    "Use either start_after or end_before.",
    "Give only one of start_after and end_before.",
    "You may send start_after or end_before, but not both.",
    "Do not set both this and end_before.",
)
def test_sentence_that_excludes_another_field_is_found(text: str) -> None:
    assert pairs(start_after=text, end_before="", limit="") == [("start_after", "end_before")]


@rows(
    "text",
    "Can be used together with end_before.",
    "Either asc or desc.",
    "Cannot be negative. See end_before.",
    "Must not be empty.",
    "Cannot be used together with the limit.",
    "",
)
def test_other_sentences_are_not_exclusions(text: str) -> None:
    assert pairs(start_after=text, end_before="", limit="") == []


def test_exclusive_pair_is_reported_once_and_in_limited_time() -> None:
    said = "Cannot be used\ttogether with"
    found = list(exclusions({"user_id": f"A. {said} `email`.", "email": f"B. {said} user_id."}))
    assert found == [("user_id", "email", "Cannot be used together with `email`.")]
    assert pairs(mode="Either `user_id` or `e_mail` must be set.", user_id="", e_mail="") == [("user_id", "e_mail")]
    assert pairs(a="Only one of `a`, `b` and `c`.", b="", c="") == [("a", "b"), ("a", "c"), ("b", "c")]
    text = "either " * 100_000 + "cannot " * 100_000
    assert pairs(a=text, b="") == []


@rows(
    "schema, required, form",
    ({"type": "object", "properties": {}}, False, "none"),
    ({"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}}, False, "none"),
    ({"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}}, True, "json"),
    ({"type": "object", "properties": {"name": TEXT}}, False, "json"),
)
def test_optional_body_without_fields_is_not_sent(schema: dict[str, Any], required: bool, form: str) -> None:
    body = shape_body(Body(media_type="application/json", required=required, schema=schema), SchemaFitter())
    assert isinstance(body, BodyShape)
    assert body.form == form
