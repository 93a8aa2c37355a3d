from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, of_endpoint

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies

Check = Callable[..., list[str]]


def with_property(name: str, schema: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"room_id": {"type": "string"}, name: schema},
        "required": ["room_id"],
        "additionalProperties": False,
        "$defs": {"Night": {"type": "integer", "minimum": 1}},
    }


@pytest.mark.requirement("API-6.3-11", "API-13.2-5")
@pytest.mark.parametrize("broken", [{"type": "nonsense"}, {"$ref": "https://example.com/x"}, {"pattern": "("}])
def test_invalid_schema_is_refused(check: Check, broken: dict[str, Any]) -> None:
    closed = {"type": "object", "properties": {"room_id": broken}, "additionalProperties": False}
    assert check(input_schema=closed) == ["J601"]
    assert check(output_schema=broken) == ["J601"]


def test_a_schema_fault_points_into_the_endpoint(room: Endpoint, catalog: Catalog) -> None:
    endpoint = replace(room, output_schema={"properties": {"a": {"type": "x"}}})
    (finding,) = check_endpoint(endpoint, catalog, Policies())
    assert finding.pointer == "/endpoint/output_schema/properties/a/type"


@pytest.mark.requirement("API-6.3-1")
@pytest.mark.parametrize("kind", ["array", None, ["object", "null"]])
def test_an_input_is_an_object(check: Check, kind: Any) -> None:
    schema = {"additionalProperties": False} if kind is None else {"type": kind, "additionalProperties": False}
    assert check(input_schema=schema) == ["J602"]


@pytest.mark.requirement("API-6.3-2", "API-13.3-1")
@pytest.mark.parametrize("extra", [{}, {"additionalProperties": True}, {"additionalProperties": {"type": "string"}}])
def test_an_input_is_closed(check: Check, extra: dict[str, Any]) -> None:
    assert check(input_schema={"type": "object", **extra}) == ["J603"]


def test_an_input_made_of_parts_is_closed_in_the_way_that_knows_them(room: Endpoint, catalog: Catalog) -> None:
    parts = {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}]}
    (finding,) = check_endpoint(replace(room, input_schema=parts), catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J603", "/endpoint/input_schema/unevaluatedProperties")
    closed = replace(room, input_schema={**parts, "unevaluatedProperties": False})
    assert check_endpoint(closed, catalog, Policies()) == []


@pytest.mark.requirement("API-6.3-3")
def test_a_closed_output_is_a_warning(room: Endpoint, catalog: Catalog) -> None:
    closed = replace(room, output_schema={"type": "object", "additionalProperties": False})
    (finding,) = check_endpoint(closed, catalog, Policies())
    assert (finding.rule, finding.severity) == ("J604", "warning")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": 5},
        {"type": "array", "items": {"type": "string"}, "default": [1, 2]},
        {"$ref": "#/$defs/Night", "default": 0},
        {"$ref": "#/properties/room_id", "default": 0},
    ],
)
def test_a_default_its_own_schema_forbids_is_refused_once(check: Check, schema: dict[str, Any]) -> None:
    assert check(input_schema=with_property("a/b", schema)) == ["J608"]


def test_every_wrong_default_is_named(room: Endpoint, catalog: Catalog) -> None:
    schema = with_property("a/b", {"type": "integer", "default": "x"})
    schema["properties"]["a"] = {"type": "integer", "default": "y"}
    findings = check_endpoint(replace(room, input_schema=schema), catalog, Policies())
    assert {finding.pointer for finding in findings} == {
        "/endpoint/input_schema/properties/a~1b/default",
        "/endpoint/input_schema/properties/a/default",
    }


@pytest.mark.parametrize("schema", [{"$ref": "#/$defs/Night", "default": 1}, {"default": None}, True])
def test_a_default_that_fits_is_fine_whatever_else_is_required(check: Check, schema: Any) -> None:
    assert check(input_schema=with_property("nights", schema)) == []


CHANGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
        "updated_at": {"type": "string", "format": "date-time"},
        "count": {"type": "integer"},
        "any": {},
    },
    "$defs": {"Room": {"type": "object", "properties": {"updated_at": {"type": ["string", "null"]}}}},
}


def dated(room: Endpoint, since: str) -> Endpoint:
    informing = replace(room.semantic, impact="informational", is_idempotent=True, capability="retrieval")
    return replace(room, method="QUERY", path="/rooms", output_schema=CHANGED, since=since, semantic=informing)


@pytest.mark.parametrize("since", ["rooms[].updated_at", "updated_at", "any"])
def test_since_names_a_text_of_the_output(room: Endpoint, catalog: Catalog, since: str) -> None:
    assert check_endpoint(dated(room, since), catalog, Policies()) == []


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("changed_at", "the output declares no 'changed_at': there are rooms, updated_at, count, any"),
        ("rooms.updated_at", "'rooms' declares no 'updated_at'"),
        ("rooms[].changed_at", "an item of 'rooms' declares no 'changed_at': there are updated_at"),
        ("[].updated_at", "the output is not a list"),
        ("count", "'count' is not a string"),
        ("any.updated_at", "'any' declares no 'updated_at'"),
        ("rooms[]", "not a valid place in an output"),
        ("", "not a valid place in an output"),
    ],
)
def test_since_that_names_nothing_is_refused(room: Endpoint, catalog: Catalog, since: str, why: str) -> None:
    (finding,) = check_endpoint(dated(room, since), catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J609", "/endpoint/since")
    assert why in finding.message


def test_since_is_not_checked_in_an_invalid_schema(room: Endpoint, catalog: Catalog) -> None:
    endpoint = replace(dated(room, "updated_at"), output_schema={"type": "nonsense"})
    assert [finding.rule for finding in check_endpoint(endpoint, catalog, Policies())] == ["J601"]


def test_since_is_for_what_only_informs(room: Endpoint, catalog: Catalog) -> None:
    endpoint = dated(room, "updated_at")
    acting = replace(endpoint, semantic=replace(endpoint.semantic, impact="reversible"))
    (finding,) = check_endpoint(acting, catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J610", "/endpoint/since")


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.requirement("AGIS-7-1", "AGIS-7-4")
@pytest.mark.parametrize(("field", "rule"), [("input", "J620"), ("output", "J621")])
@pytest.mark.parametrize("value", [GONE, None])
def test_input_and_output_are_required(field: str, rule: str, value: Any) -> None:
    assert of_endpoint(**{field: value}) == [rule]


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": "object"}, {"type": ["object", "null"]}, {"type": "object", "example": "none"}, {"x-a": "b"}],
)
def test_an_endpoint_may_take_nothing(schema: Any) -> None:
    assert of_endpoint(input=schema) == []


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": ["string", "null"]}])
def test_an_input_of_agis_is_an_object(schema: Any) -> None:
    assert of_endpoint(input=schema) == ["J623"]


@pytest.mark.parametrize("schema", [{"room_id": "string"}, {"type": "object", "room_id": {"type": "string"}}])
def test_parameter_outside_properties_is_reported(schema: Any) -> None:
    found = advice("J623", document(endpoint(input=schema)))
    assert found.pointer == "/endpoints/0/input/room_id"
    assert "properties: {room_id: {type: ...}}" in found.help


def test_an_output_may_be_a_list() -> None:
    assert of_endpoint(output={"type": "array", "items": {"type": "string"}}) == []


@pytest.mark.parametrize("field", ["input", "output"])
def test_required_name_must_be_a_property(field: str) -> None:
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}
    found = advice("J624", document(endpoint(**{field: schema})))
    assert (found.severity, found.pointer) == ("warning", f"/endpoints/0/{field}/required/1")


def test_a_property_may_come_from_elsewhere() -> None:
    schema = {"properties": {"a": {}}, "required": ["a", "b"], "allOf": [{"properties": {"b": {}}}]}
    assert of_endpoint(input=schema) == []


@pytest.mark.requirement("AGIS-7-2")
def test_an_input_says_which_parameters_are_required() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert of_endpoint(input=schema) == ["J627"]
    assert advice("J627", document(endpoint(input=schema))).severity == "error"
    assert of_endpoint(input={**schema, "allOf": [{"minProperties": 1}]}) == ["J627"]
    assert of_endpoint(input={**schema, "required": []}) == []
    assert of_endpoint(input={**schema, "anyOf": [{"allOf": [{"required": ["a"]}]}]}) == []
    assert of_endpoint(input={"type": "object", "properties": {}}) == []


@pytest.mark.parametrize("name", ["room", "room_id", "room2", "x_1"])
def test_parameters_are_in_snake_case(name: str) -> None:
    assert of_endpoint(input=closed(**{name: {}})) == []


@pytest.mark.requirement("AGIS-7-3")
@pytest.mark.parametrize(
    ("name", "meant"), [("roomId", "room_id"), ("room-id", "room_id"), ("HTTPCode", "http_code"), ("数", "party_size")]
)
def test_other_names_are_a_warning_on_the_key(name: str, meant: str) -> None:
    found = advice("J628", document(endpoint(input=closed(**{name: {}}))))
    assert found.severity == "warning"
    assert found.on_key
    assert meant in found.help


@pytest.mark.requirement("AGIS-5-7")
def test_a_path_parameter_is_a_property_of_the_input() -> None:
    assert of_endpoint(path="/room/{id}") == ["J629"]
    assert of_endpoint(path="/room/{id}", input=closed(id={"type": "string"})) == []


@pytest.mark.requirement("AGIS-7-8")
@pytest.mark.parametrize("value", [5, "object", [], True])
def test_schema_of_wrong_type_is_left_to_the_reader(value: Any) -> None:
    assert of_endpoint(input=value) == ["D121"]
    assert of_endpoint(output=value) == ["D121"]
