"""Places of an input's parts on HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import HttpInput, HttpParameter, expressible, place_input

ROOM = {"type": "string"}
GUEST = {"type": "object", "properties": {"name": {"type": "string"}}}


def place(path: str, schema: dict[str, Any], impact: str = "informational") -> HttpInput:
    return place_input(replace(endpoint(path, impact), input_schema=schema))


def endpoint(path: str, impact: str) -> Endpoint:
    return make_endpoint("FIND", path, echo, impact=impact)


def test_path_parameters_are_neither_in_the_query_nor_in_the_body() -> None:
    schema = {
        "type": "object",
        "properties": {"room_id": ROOM, "beds": {"type": "integer"}, "sea": {"type": "boolean"}},
        "required": ["room_id", "beds"],
        "additionalProperties": False,
    }
    placed = place("/room/{room_id}", schema)
    assert placed.path == (HttpParameter("room_id", ROOM, True),)
    assert placed.query == (
        HttpParameter("beds", {"type": "integer"}, True),
        HttpParameter("sea", {"type": "boolean"}, False),
    )
    assert placed.body == {
        "type": "object",
        "properties": {"beds": {"type": "integer"}, "sea": {"type": "boolean"}},
        "required": ["beds"],
        "additionalProperties": False,
    }
    assert placed.body_required


def test_without_a_path_parameter_the_body_is_the_input_itself() -> None:
    schema = {"type": "object", "properties": {"guest": GUEST}}
    placed = place("/room", schema)
    assert placed.body is schema
    assert not placed.body_required
    assert placed.query is None


def test_changing_endpoint_has_no_query_and_get_needs_fields_that_can_be_expressed() -> None:
    assert place("/room", {"type": "object", "properties": {"a": ROOM}}, "reversible").query is None
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    assert place("/room", schema).query == ()
    assert place("/room", {**schema, "required": ["a"]}).query is None
    assert place("/room", {"type": "object", "required": ["b"]}).query == (HttpParameter("b", True, True),)


def test_single_value_behind_allof_is_a_parameter_that_stands_alone() -> None:
    part = {"allOf": [{"$ref": "#/$defs/Night"}, {"description": "First night."}]}
    schema = {"type": "object", "properties": {"night": part}, "$defs": {"Night": {"type": "string"}}}
    alone = {"allOf": [{"type": "string"}, {"description": "First night."}]}
    assert place("/room", schema).query == (HttpParameter("night", alone, False),)
    assert place("/room", {**schema, "$defs": {"Night": {"type": "object"}}}).query is None


@pytest.mark.parametrize("whole", [{"minProperties": 2}, {"allOf": [{"required": ["beds"]}]}, {"$ref": "#/$defs/A"}])
def test_body_whose_properties_cannot_be_separated_stays_whole(whole: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"room_id": ROOM}, "$defs": {"A": {}}, **whole}
    assert place("/room/{room_id}", schema).body is schema


@pytest.mark.parametrize(
    ("extra", "needed"), [({"minProperties": 1}, True), ({"maxProperties": 1}, False), ({"$ref": "#/nowhere"}, True)]
)
def test_body_is_required_if_an_empty_input_is_not_valid(extra: dict[str, Any], needed: bool) -> None:
    assert place("/room", {"type": "object", **extra}).body_required is needed


def test_a_parameter_stands_alone_without_shared_definitions() -> None:
    optional = {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}], "default": None}
    schema = {"type": "object", "properties": {"size": optional}, "$defs": {"Size": {"enum": ["s", "l"]}}}
    assert place("/room", schema).query == (HttpParameter("size", {"anyOf": [{"enum": ["s", "l"]}]}, False),)


@rows(
    "schema, said",
    ({"type": ["integer", "null"], "default": None}, {"type": "integer"}),
    ({"type": ["integer", "string"]}, {"type": "string"}),
    ({"type": ["integer", "boolean", "null"]}, {"type": ["integer", "boolean"]}),
    ({"type": "null"}, False),
    ({"enum": [1, None]}, {"enum": [1]}),
    ({"enum": ["a", 1, None]}, {"enum": ["a"]}),
    ({"type": "number", "enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
    ({"const": None}, False),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"anyOf": [{"type": "integer"}]}),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
    ({"oneOf": [{"type": ["string", "null"]}]}, {"oneOf": [{"type": "string"}]}),
    (True, True),
)
def test_query_has_no_null_and_prefers_strings(schema: Any, said: Any) -> None:
    assert expressible(schema) == said
