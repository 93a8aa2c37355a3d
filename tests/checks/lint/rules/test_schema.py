from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
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


BROKEN = ({"type": "nonsense"}, {"$ref": "https://example.com/x"}, {"pattern": "("})
CLOSED = {"additionalProperties": False}
TEXTS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.requirement("API-6.3-1", "API-6.3-2", "API-6.3-11", "API-13.2-5", "API-13.3-1")
@rows(
    "fields, expected",
    *(({"input_schema": {"type": "object", "properties": {"room_id": one}, **CLOSED}}, ["J601"]) for one in BROKEN),
    *(({"output_schema": schema}, ["J601"]) for schema in BROKEN),
    ({"input_schema": CLOSED}, ["J602"]),
    *(({"input_schema": {"type": kind, **CLOSED}}, ["J602"]) for kind in ("array", ["object", "null"])),
    ({"input_schema": {"type": "object"}}, ["J603"]),
    ({"input_schema": {"type": "object", "additionalProperties": True}}, ["J603"]),
    ({"input_schema": {"type": "object", "additionalProperties": {"type": "string"}}}, ["J603"]),
    # A default is checked against its own schema, and against nothing else.
    ({"input_schema": with_property("a/b", {"type": "string", "default": 5})}, ["J608"]),
    ({"input_schema": with_property("a/b", {**TEXTS, "default": [1, 2]})}, ["J608"]),
    ({"input_schema": with_property("a/b", {"$ref": "#/$defs/Night", "default": 0})}, ["J608"]),
    ({"input_schema": with_property("a/b", {"$ref": "#/properties/room_id", "default": 0})}, ["J608"]),
    ({"input_schema": with_property("nights", {"$ref": "#/$defs/Night", "default": 1})}, []),
    ({"input_schema": with_property("nights", {"default": None})}, []),
    ({"input_schema": with_property("nights", True)}, []),
)
def test_registration_refuses_invalid_open_and_contradictory_schemas(
    check: Check, fields: dict[str, Any], expected: list[str]
) -> None:
    assert check(**fields) == expected


@pytest.mark.requirement("API-6.3-3")
def test_schema_fault_has_its_place_composed_inputs_are_closed_and_closed_outputs_a_warning(
    room: Endpoint, catalog: Catalog
) -> None:
    endpoint = replace(room, output_schema={"properties": {"a": {"type": "x"}}})
    (finding,) = check_endpoint(endpoint, catalog, Policies())
    assert finding.pointer == "/endpoint/output_schema/properties/a/type"
    parts = {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}]}
    (finding,) = check_endpoint(replace(room, input_schema=parts), catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J603", "/endpoint/input_schema/unevaluatedProperties")
    closed = replace(room, input_schema={**parts, "unevaluatedProperties": False})
    assert check_endpoint(closed, catalog, Policies()) == []
    closed = replace(room, output_schema={"type": "object", "additionalProperties": False})
    (finding,) = check_endpoint(closed, catalog, Policies())
    assert (finding.rule, finding.severity) == ("J604", "warning")


def test_every_wrong_default_is_named(room: Endpoint, catalog: Catalog) -> None:
    schema = with_property("a/b", {"type": "integer", "default": "x"})
    schema["properties"]["a"] = {"type": "integer", "default": "y"}
    findings = check_endpoint(replace(room, input_schema=schema), catalog, Policies())
    assert {finding.pointer for finding in findings} == {
        "/endpoint/input_schema/properties/a~1b/default",
        "/endpoint/input_schema/properties/a/default",
    }


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


@rows(
    "since, why",
    ("changed_at", "the output declares no 'changed_at': there are rooms, updated_at, count, any"),
    ("rooms.updated_at", "'rooms' declares no 'updated_at'"),
    ("rooms[].changed_at", "an item of 'rooms' declares no 'changed_at': there are updated_at"),
    ("[].updated_at", "the output is not a list"),
    ("count", "'count' is not a string"),
    ("any.updated_at", "'any' declares no 'updated_at'"),
    ("rooms[]", "not a valid place in an output"),
    ("", "not a valid place in an output"),
)
def test_since_that_names_nothing_is_refused(room: Endpoint, catalog: Catalog, since: str, why: str) -> None:
    (finding,) = check_endpoint(dated(room, since), catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J609", "/endpoint/since")
    assert why in finding.message


def test_since_is_not_checked_in_an_invalid_schema_and_is_for_what_only_informs(
    room: Endpoint, catalog: Catalog
) -> None:
    endpoint = replace(dated(room, "updated_at"), output_schema={"type": "nonsense"})
    assert [finding.rule for finding in check_endpoint(endpoint, catalog, Policies())] == ["J601"]
    endpoint = dated(room, "updated_at")
    acting = replace(endpoint, semantic=replace(endpoint.semantic, impact="reversible"))
    (finding,) = check_endpoint(acting, catalog, Policies())
    assert (finding.rule, finding.pointer) == ("J610", "/endpoint/since")


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


BOUND = {"type": "object", "properties": {"a": {}}}


@pytest.mark.requirement("AGIS-5-7", "AGIS-7-1", "AGIS-7-2", "AGIS-7-4", "AGIS-7-8")
@rows(
    "fields, expected",
    *(({"input": value}, ["J620"]) for value in (GONE, None)),
    *(({"output": value}, ["J621"]) for value in (GONE, None)),
    *(({"input": schema}, []) for schema in ({}, {"type": "object"}, {"type": ["object", "null"]}, {"x-a": "b"})),
    ({"input": {"type": "object", "example": "none"}}, []),
    *(({"input": {"type": kind}}, ["J623"]) for kind in ("array", ["string", "null"])),
    ({"output": TEXTS}, []),
    ({"input": {**BOUND, "required": ["a", "b"], "allOf": [{"properties": {"b": {}}}]}}, []),
    ({"input": BOUND}, ["J627"]),
    ({"input": {**BOUND, "allOf": [{"minProperties": 1}]}}, ["J627"]),
    ({"input": {**BOUND, "required": []}}, []),
    ({"input": {**BOUND, "anyOf": [{"allOf": [{"required": ["a"]}]}]}}, []),
    ({"input": {"type": "object", "properties": {}}}, []),
    *(({"input": closed(**{name: {}})}, []) for name in ("room", "room_id", "room2", "x_1")),
    ({"path": "/room/{id}"}, ["J629"]),
    ({"path": "/room/{id}", "input": closed(id={"type": "string"})}, []),
    # A value of a wrong type is left to the reader.
    *(({field: value}, ["D121"]) for field in ("input", "output") for value in (5, "object", [], True)),
)
def test_agis_requires_an_input_with_named_parameters_and_an_output(
    fields: dict[str, Any], expected: list[str]
) -> None:
    assert of_endpoint(**fields) == expected


@pytest.mark.parametrize("schema", [{"room_id": "string"}, {"type": "object", "room_id": {"type": "string"}}])
def test_parameter_outside_properties_is_reported(schema: Any) -> None:
    found = advice("J623", document(endpoint(input=schema)))
    assert found.pointer == "/endpoints/0/input/room_id"
    assert "properties: {room_id: {type: ...}}" in found.help


@pytest.mark.parametrize("field", ["input", "output"])
def test_required_name_must_be_a_property(field: str) -> None:
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}
    found = advice("J624", document(endpoint(**{field: schema})))
    assert (found.severity, found.pointer) == ("warning", f"/endpoints/0/{field}/required/1")


def test_missing_required_list_is_an_error() -> None:
    assert advice("J627", document(endpoint(input=BOUND))).severity == "error"


@pytest.mark.requirement("AGIS-7-3")
@pytest.mark.parametrize(
    ("name", "meant"), [("roomId", "room_id"), ("room-id", "room_id"), ("HTTPCode", "http_code"), ("数", "party_size")]
)
def test_other_names_are_a_warning_on_the_key(name: str, meant: str) -> None:
    found = advice("J628", document(endpoint(input=closed(**{name: {}}))))
    assert found.severity == "warning"
    assert found.on_key
    assert meant in found.help
