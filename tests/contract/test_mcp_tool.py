"""Tools from the contract: texts, schemas, annotations."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.mcp_tool import Tool, admit_partial, make_tools


def made(*endpoints: Endpoint) -> list[Tool]:
    return list(make_tools(endpoints).values())


def entry(one: Endpoint) -> Any:
    return made(one)[0].entry


@pytest.mark.requirement("AGIS-C.2-2")
def test_the_input_schema_is_passed_on_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "required": ["a"],
        "$defs": {"A": {"oneOf": [{"type": "integer"}, {"const": "x"}]}},
    }
    assert entry(endpoint("FIND", "/rooms", input_schema=schema))["inputSchema"] == schema


def test_boolean_schemas_are_written_as_objects() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": False}}
    found = entry(endpoint("FIND", "/rooms", input_schema=schema, output_schema=schema))
    assert found["inputSchema"]["properties"] == found["outputSchema"]["properties"] == {"a": {}, "b": {"not": {}}}


@pytest.mark.requirement("AGIS-C.2-3")
def test_what_mcp_has_no_place_for_is_left_out() -> None:
    plain, full = (
        endpoint("FIND", "/rooms"),
        endpoint(
            "FIND",
            "/rooms",
            errors=(DeclaredError("taken", "The room is taken."),),
            confidence_guidance=0.8,
            state_transition={"room.status": "FREE -> TAKEN"},
        ),
    )
    assert entry(full) == entry(plain)


@pytest.mark.parametrize(
    ("impact", "idempotent", "hints"),
    [
        ("informational", True, (True, False, True)),
        ("reversible", False, (False, False, False)),
        ("irreversible", True, (False, True, True)),
    ],
)
def test_annotations_come_from_impact_and_idempotency(
    impact: str, idempotent: bool, hints: tuple[bool, bool, bool]
) -> None:
    annotations = entry(endpoint("FIND", "/rooms", impact=impact, is_idempotent=idempotent))["annotations"]
    assert tuple(annotations[f"{name}Hint"] for name in ("readOnly", "destructive", "idempotent")) == hints
    assert annotations["openWorldHint"] is False


def test_a_guess_of_an_importer_is_marked() -> None:
    assert entry(endpoint("FIND", "/rooms", reviewed=False))["_meta"]["bespeak/reviewed"] is False


def test_an_endpoint_that_calls_another_service_is_open_to_the_world() -> None:
    found = entry(endpoint("FIND", "/rooms", handler=OpaqueHandler(type="external_service")))
    assert found["annotations"]["openWorldHint"] is True


def test_a_deprecated_endpoint_names_its_successor_as_a_tool() -> None:
    old = Deprecation(deprecated_in="1.1", removed_in="2.0", successor_method="QUERY", successor_path="/rooms")
    tools = made(endpoint("FIND", "/rooms", deprecated=old), endpoint("QUERY", "/rooms", tool="search"))
    found = tools[0].entry
    assert found["description"].endswith("Deprecated since 1.1; it will be removed in 2.0. Use search instead.")
    assert found["_meta"]["bespeak/deprecated"] == old.to_json()


def test_tools_are_ordered_by_name_and_leave_out_internal_and_built_in_endpoints() -> None:
    tools = made(
        endpoint("QUERY", "/rooms"),
        endpoint("BOOK", "/rooms"),
        endpoint("FIND", "/rooms", internal=True),
        endpoint("DISCOVER", "/", builtin=True),
    )
    assert [tool.name for tool in tools] == ["book_rooms", "query_rooms"]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}])
def test_an_output_schema_that_says_nothing_is_not_published(schema: dict[str, Any]) -> None:
    assert "outputSchema" not in entry(endpoint("FIND", "/rooms", output_schema=schema))


def test_an_output_that_is_not_an_object_is_wrapped_and_its_references_still_lead_somewhere() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/Room"}, "$defs": {"Room": {"type": "string"}}}
    (tool,) = made(endpoint("LIST", "/rooms", output_schema=schema))
    assert tool.wraps
    assert tool.output is not None
    assert tool.output.is_valid({"result": ["12"]})
    assert not tool.output.is_valid({"result": [12]})


@pytest.mark.parametrize(
    ("schema", "accepted"),
    [
        ({"properties": {"a": {}}}, False),
        ({"properties": {"a": {}}, "additionalProperties": True}, True),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, True),
        ({"allOf": [{"properties": {"x": {}}}]}, True),
        ({"allOf": [{"properties": {"a": {}}}]}, False),
    ],
)
def test_an_argument_is_known_if_the_schema_declares_or_allows_it(schema: dict[str, Any], accepted: bool) -> None:
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", **schema}))
    assert tool.input is not None
    assert tool.input.is_valid({"x": 1}) is accepted


def test_a_schema_that_cannot_be_used_leaves_the_validation_to_the_service() -> None:
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"a": {"type": "no"}}}))
    assert tool.input is None


REF = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, {"b": 1}),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}, {"a": "x"}),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"b": 1}, {"b": "x"}),
        ({"type": "object", "patternProperties": {"^p": {"type": "integer"}}}, {"p": 1}, {"p": "x"}),
        ({"type": "object", "minProperties": 2, "required": ["a"]}, {"a": 1, "b": 1}, {"a": 1}),
        ({"type": "object", "allOf": [{"required": ["a"]}]}, {"a": 1}, {}),
        (REF | {"required": ["a"]}, {"a": 1}, {"a": "x"}),
        (REF | {"maxProperties": 1}, {"a": 1}, {"a": "x"}),
        ({"type": "object", "properties": {"partial_result": {"type": "integer"}}}, {"partial_result": 1}, []),
    ],
)
def test_a_published_output_schema_admits_the_whole_and_a_part_but_nothing_else(
    schema: dict[str, Any], valid: Any, invalid: Any
) -> None:
    published = Draft202012Validator(admit_partial(schema))
    assert published.is_valid(valid)
    assert published.is_valid({"partial_result": {"output": {}, "rest": "Call again."}})
    assert not published.is_valid(invalid)


def test_an_object_that_requires_nothing_costs_nothing_more() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert admit_partial(schema) == schema
