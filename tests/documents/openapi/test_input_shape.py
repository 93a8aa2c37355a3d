"""One flat input of parameters and body, each field with its place upstream."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.schema.subschemas import is_closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.adoption.path_choice import choose_path
from bespeak.documents.adoption.sanitizer import SchemaFitter
from bespeak.documents.openapi.description import Body, Operation, Parameter
from bespeak.documents.openapi.input_shape import InputShape, shape_input

VERBS = load_bundled().names
TEXT = {"type": "string"}


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
    assert shape.schema["required"] == ["note_id", "note_text"]
    assert shape.query == ["sort_by"]
    assert shape.header_fields == {"x_trace_id": "X-Trace-Id"}
    assert shape.cookie_fields == {"theme": "theme"}
    assert shape.transform == {"sort_by": "sortBy", "note_text": "noteText"}
    assert is_closed(shape.schema)


def test_undescribed_path_parameter_is_a_string() -> None:
    assert shaped(path="/notes/{id}").schema["properties"] == {"id": {"type": "string", "minLength": 1}}


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


@pytest.mark.parametrize(
    "name", ["Authorization", "Cookie", "Host", "Content-Type", "Accept", "X-Forwarded-For", "Agent-ID", "Connection"]
)
def test_headers_set_by_the_facade_are_not_inputs(name: str) -> None:
    assert shaped(parameter(name, "header", required=True)).schema["properties"] == {}


def test_accept_header_with_a_single_value_is_sent() -> None:
    accept = parameter("Accept", "header", {"type": "string", "enum": ["application/vnd.x+json"]}, required=True)
    assert shaped(accept).headers == {"Accept": "application/vnd.x+json"}


def test_credential_is_not_an_input() -> None:
    assert shaped(parameter("api_key"), credentials={("query", "api_key")}).schema["properties"] == {}


@pytest.mark.parametrize(
    ("fields", "style"),
    [
        ({}, None),
        ({"explode": False}, "comma"),
        ({"style": "spaceDelimited", "explode": False}, "space"),
        ({"style": "pipeDelimited", "explode": False}, "pipe"),
        ({"style": "deepObject"}, "deep"),
        ({"is_json": True}, "json"),
    ],
)
def test_several_values_are_written_as_described(fields: dict[str, Any], style: str | None) -> None:
    shape = shaped(parameter("tags", schema={"type": "array", "items": TEXT}, **fields))
    assert shape.lists.get("tags") == style


def test_one_value_needs_no_style() -> None:
    assert shaped(parameter("q", explode=False)).lists == {}


def test_exploded_object_becomes_its_properties() -> None:
    schema = {"type": "object", "properties": {"fromDate": TEXT, "to": TEXT}, "required": ["to"]}
    shape = shaped(parameter("range", schema=schema, required=True))
    assert shape.query == ["from_date", "to"]
    assert shape.schema["required"] == ["to"]


def test_optional_fields_that_exclude_each_other_are_noted() -> None:
    said = "Cannot be used together with `endingBefore`."
    before = parameter("endingBefore")
    shape = shaped(parameter("startingAfter", description=said), before)
    (guess,) = [guess for guess in shape.guesses if guess.at == "/input_schema"]
    assert guess.text == "starting_after and ending_before may be sent together"
    assert said in guess.why
    body = {
        "type": "object",
        "properties": {"email": TEXT, "id": {**TEXT, "description": "Not both this and `email`."}},
    }
    noted = shaped(body=json_body({"$ref": "#/$defs/B", "$defs": {"B": body}})).guesses
    assert [guess.text for guess in noted] == ["id and email may be sent together"]
    needed = parameter("startingAfter", description=said, required=True)
    assert shaped(needed, before).guesses == []


def test_properties_of_an_optional_object_are_optional() -> None:
    schema = {"type": "object", "properties": {"to": TEXT}, "required": ["to"]}
    assert shaped(parameter("range", schema=schema, required=False)).schema["required"] == []


@pytest.mark.parametrize(
    ("schema", "bounded", "own"),
    [
        ({"type": "integer"}, {"type": "integer", "maximum": 100, "default": 20}, [("perPage", "20")]),
        ({"type": "integer", "default": 500}, {"type": "integer", "default": 500, "maximum": 500}, []),
        ({"type": "integer", "maximum": 10}, {"type": "integer", "maximum": 10, "default": 10}, [("perPage", "10")]),
        ({"type": "integer", "maximum": 9, "default": 3}, {"type": "integer", "maximum": 9, "default": 3}, []),
        ({"type": "string"}, {"type": "string"}, []),
    ],
)
def test_page_size_is_limited(schema: dict[str, Any], bounded: dict[str, Any], own: list[tuple[str, str]]) -> None:
    shape = shaped(parameter("perPage", schema=schema))
    assert shape.schema["properties"]["per_page"] == bounded
    assert shape.own_query == own


def test_required_fields_of_an_optional_body_apply_once_it_is_sent() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    compiled = compile_schema(shaped(body=json_body(schema, required=False)).schema)
    assert isinstance(compiled, Validator)
    assert [compiled.is_valid(value) for value in ({}, {"b": "x"}, {"a": "x"})] == [True, False, True]


def test_a_default_that_its_schema_forbids_is_left_out() -> None:
    shape = shaped(parameter("n", schema={"type": "integer", "default": "one"}))
    assert shape.schema["properties"]["n"] == {"type": "integer"}


def test_a_whole_body_is_a_field_beside_the_others() -> None:
    shape = shaped(
        parameter("body"), body=json_body({"type": "array", "items": {"$ref": "#/$defs/T"}, "$defs": {"T": TEXT}})
    )
    assert (shape.body, shape.body_field, shape.query) == ("json", "body_body", ["body"])
    assert shape.schema["$defs"] == {"T": TEXT}
    assert shape.schema["required"] == ["body_body"]


def test_an_operation_whose_body_cannot_be_sent_has_a_reason() -> None:
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
    assert shape.headers == {"X-Target": "Db.Create"}
    assert shape.own_query == [("Version", "2016")]
    assert list(shape.schema["properties"]) == ["mode", "x_home"]
