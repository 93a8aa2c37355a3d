"""Schemas as components: moved, shared, and never confused."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from tests.contract.schema.test_subschemas import JSON
from tests.service_strategy import objects

from bespeak.documents.projections.openapi.responses import (
    SchemaComponents,
    component_name,
    reference,
    type_name,
)
from bespeak.text.identifiers import unused

GUEST = {"type": "object", "properties": {"name": {"type": "string"}}}


def add(components: SchemaComponents, name: str, schema: dict[str, Any]) -> None:
    components.add(components.reserve(name), schema)


def with_guest(guest: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"guest": {"$ref": "#/$defs/Guest"}}, "$defs": {"Guest": guest}}


def test_a_definition_becomes_a_component_of_its_own() -> None:
    components = SchemaComponents({})
    add(components, "BookInput", with_guest(GUEST))
    assert components.schemas == {"BookInput": {"properties": {"guest": reference("Guest")}}, "Guest": GUEST}


def test_shared_definition_is_written_once() -> None:
    components = SchemaComponents({})
    add(components, "AInput", with_guest(GUEST))
    add(components, "BInput", with_guest(dict(reversed(GUEST.items()))))
    assert components.schemas["BInput"] == components.schemas["AInput"]
    assert set(components.schemas) == {"AInput", "BInput", "Guest"}


def test_conflicting_definition_gets_its_own_name() -> None:
    components = SchemaComponents({"Problem": {}})
    add(components, "AInput", with_guest(GUEST))
    add(components, "BInput", with_guest({"type": "string"}))
    add(components, "CInput", {"$ref": "#/$defs/Problem", "$defs": {"Problem": {"type": "null"}}})
    assert components.schemas["BInput"]["properties"]["guest"] == reference("BInput.Guest")
    assert components.schemas["BInput.Guest"] == {"type": "string"}
    assert (components.schemas["CInput.Problem"], components.schemas["Problem"]) == ({"type": "null"}, {})


def test_definitions_with_different_targets_differ() -> None:
    def party(guest: dict[str, Any]) -> dict[str, Any]:
        return {"$ref": "#/$defs/Party", "$defs": {"Party": {"items": {"$ref": "#/$defs/Guest"}}, "Guest": guest}}

    components = SchemaComponents({})
    add(components, "AInput", party(GUEST))
    add(components, "BInput", party({"type": "string"}))
    add(components, "CInput", party(GUEST))
    assert components.schemas["AInput"] == reference("Party") == components.schemas["CInput"]
    assert components.schemas["BInput.Party"] == {"items": reference("BInput.Guest")}


def test_a_definition_that_leads_back_to_its_schema_is_that_schemas_own() -> None:
    components = SchemaComponents({})
    for name, kind in (("AInput", "object"), ("BInput", "array")):
        add(components, name, {"type": kind, "items": {"$ref": "#/$defs/X"}, "$defs": {"X": {"not": {"$ref": "#"}}}})
    assert components.schemas["X"] == {"not": reference("AInput")}
    assert components.schemas["BInput.X"] == {"not": reference("BInput")}


def test_anchors_of_two_schemas_do_not_collide() -> None:
    components = SchemaComponents({})
    for name, kind in (("AInput", "string"), ("BInput", "null")):
        add(components, name, {"items": {"$ref": "#it"}, "$defs": {"X": {"$anchor": "it", "type": kind}}})
    assert components.schemas["AInput"] == {"items": reference("X")}
    assert components.schemas["BInput"] == {"items": reference("BInput.X")}
    assert components.schemas["BInput.X"] == {"type": "null"}


@given(objects(flat=False), objects(flat=False), JSON)
def test_a_component_admits_what_its_schema_does(one: dict[str, Any], other: dict[str, Any], value: Any) -> None:
    components = SchemaComponents({})
    names = [components.reserve("One"), components.reserve("Other")]
    for name, schema in zip(names, (one, other), strict=True):
        components.add(name, schema)
    for name, schema in zip(names, (one, other), strict=True):
        whole = {**reference(name), "components": {"schemas": components.schemas}}
        admitted = [jsonschema_rs.Draft202012Validator(each).is_valid(value) for each in (whole, schema)]
        assert admitted[0] == admitted[1]


@pytest.mark.parametrize(("text", "name"), [("a.b-c_d", "a.b-c_d"), ("Wäsche /", "W_sche"), ("日本", "schema")])
def test_a_component_has_a_name_that_openapi_allows(text: str, name: str) -> None:
    assert component_name(text) == name


def test_type_of_an_operation_is_its_id_in_capitals_and_numbered_if_taken() -> None:
    assert type_name("book_room_by_room_id__bed") == "BookRoomByRoomIdBed"
    assert unused("A", {}, "") == "A"
    assert unused("A", {"A": 1, "A2": 1}, "") == "A3"
