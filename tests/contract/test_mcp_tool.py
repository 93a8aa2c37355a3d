"""Tools from the contract: texts, schemas, annotations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from tests.cases import rows
from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.handler import McpServer, McpTool, OpaqueHandler
from bespeak.contract.mcp_tool import (
    SCHEMA,
    Granting,
    Tool,
    admit_partial,
    blocks_in,
    carries_content,
    check_arguments,
    compact_schema,
    error_members,
    make_tools,
    result_of,
    text_of,
    without_booleans,
    without_content,
)
from bespeak.contract.schema.subschemas import closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.refusal import Outcome


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


@rows(
    "impact, idempotent, hints",
    ("informational", True, (True, False, True)),
    ("reversible", False, (False, False, False)),
    ("irreversible", True, (False, True, True)),
)
def test_annotations_come_from_impact_and_idempotency(
    impact: str, idempotent: bool, hints: tuple[bool, bool, bool]
) -> None:
    annotations = entry(endpoint("FIND", "/rooms", impact=impact, is_idempotent=idempotent))["annotations"]
    assert tuple(annotations[f"{name}Hint"] for name in ("readOnly", "destructive", "idempotent")) == hints
    assert annotations["openWorldHint"] is False


def test_a_guess_of_an_importer_and_a_call_of_another_service_are_marked() -> None:
    found = entry(endpoint("FIND", "/rooms", reviewed=False, handler=OpaqueHandler(type="external_service")))
    assert found["_meta"]["bespeak/reviewed"] is False
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


@rows(
    "schema, accepted",
    ({"properties": {"a": {}}}, False),
    ({"properties": {"a": {}}, "additionalProperties": True}, True),
    ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, True),
    ({"allOf": [{"properties": {"x": {}}}]}, True),
    ({"allOf": [{"properties": {"a": {}}}]}, False),
)
def test_an_argument_is_known_if_the_schema_declares_or_allows_it(schema: dict[str, Any], accepted: bool) -> None:
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", **schema}))
    assert tool.input is not None
    assert tool.input.is_valid({"x": 1}) is accepted


def test_a_schema_that_cannot_be_used_leaves_the_validation_to_the_service() -> None:
    (tool,) = made(endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"a": {"type": "no"}}}))
    assert tool.input is None


REF = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}


@rows(
    "schema, valid, invalid",
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


TOOL = McpTool(mcp=McpServer(tool="draw", command="artist"))
DECLARED = {"type": "object", "properties": {"content": SCHEMA}}
SIZED = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
NOTE = {"type": "resource", "resource": {"uri": "note:1", "text": "hi"}}
BLOB = {"type": "resource", "resource": {"uri": "note:2", "blob": "aGk="}}
TEXT = {"type": "text", "text": "hi"}


@rows(
    "handler, schema, carries",
    (TOOL, DECLARED, True),
    (TOOL, {"type": "object"}, True),
    (TOOL, SIZED, True),
    (TOOL, {**SIZED, "additionalProperties": False}, False),
    (TOOL, {"type": "object", "properties": {"content": {"type": "string"}}}, False),
    (OpaqueHandler(type="registered_function"), DECLARED, True),
    (OpaqueHandler(type="registered_function"), {"type": "object"}, False),
    (OpaqueHandler(type="external_service"), SIZED, True),
)
def test_outputs_of_tools_and_declared_ones_carry_blocks(handler: Any, schema: Any, carries: bool) -> None:
    assert carries_content(endpoint("DRAW", "/pictures", handler=handler, output_schema=schema)) is carries


def test_schema_apart_from_blocks_says_the_rest() -> None:
    assert without_content(DECLARED) == {"type": "object"}
    assert without_content({**SIZED, "properties": {**SIZED["properties"], "content": SCHEMA}}) == SIZED


@pytest.mark.parametrize("block", [TEXT, IMAGE, AUDIO, LINK, NOTE, BLOB])
def test_block_of_every_kind_is_read(block: dict[str, Any]) -> None:
    assert blocks_in({"content": [block]}) == [block]
    assert bool(text_of(block)) == (block in (TEXT, NOTE))


@rows(
    "block",
    "hi",
    {"type": "text"},
    {"type": "image", "data": 5, "mimeType": "image/png"},
    {"type": "audio", "data": "aGk="},
    {"type": "resource_link", "uri": "file:///a"},
    {"type": "resource", "resource": {"uri": "note:1"}},
    {"type": "resource", "resource": "note:1"},
    {"type": "video", "data": "aGk="},
)
def test_what_no_client_could_read_is_not_a_block(block: Any) -> None:
    assert blocks_in({"content": [TEXT, block]}) is None


def result(schema: dict[str, Any], output: Any) -> dict[str, Any]:
    (tool,) = make_tools([endpoint("DRAW", "/pictures", handler=TOOL, output_schema=schema)]).values()
    return result_of(tool, Outcome(200, output))


def test_result_has_the_blocks_as_they_are_beside_the_structured_content() -> None:
    assert result(DECLARED, {"content": [IMAGE, TEXT]}) == {"content": [IMAGE, TEXT], "isError": False}
    found = result(SIZED, {"size": 2, "content": [TEXT, AUDIO]})
    assert (found["content"], found["structuredContent"]) == ([TEXT, AUDIO], {"size": 2})
    plain = result(DECLARED, {"answer": 42})
    assert (plain["content"][0]["text"], plain["structuredContent"]) == ('{"answer":42}', {"answer": 42})
    broken = result(SIZED, {"content": [IMAGE]})
    assert broken["isError"]


def tool(**changes: Any) -> Tool:
    (made,) = make_tools([endpoint("FIND", "/rooms", **changes)]).values()
    return made


def error(outcome: Outcome, of: Tool | None = None) -> dict[str, Any]:
    result = result_of(of or tool(), outcome)
    assert result["isError"]
    found: dict[str, Any] = msgspec.json.decode(result["content"][0]["text"])["error"]
    return found


def test_result_has_text_and_content_wraps_lists_and_notes_mappings_and_warnings() -> None:
    result = result_of(tool(), Outcome(200, {"a": 1}))
    assert result == {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}, "isError": False}
    assert result_of(tool(), Outcome(200, "hello"))["content"] == [{"type": "text", "text": "hello"}]
    for outcome in (Outcome(200, {}, mapping="m"), Outcome(409, error={"code": "x", "message": "y"}, mapping="m")):
        assert result_of(tool(), outcome)["_meta"] == {"bespeak/semantic-mapping": "m"}
    of = tool(output_schema={"type": "array"})
    assert result_of(of, Outcome(200, [1]))["structuredContent"] == {"result": [1]}
    assert "structuredContent" not in result_of(tool(), Outcome(200, [1]))
    result = result_of(tool(), Outcome(200, {}, warning="deprecated; successor=QUERY"))
    assert result["_meta"] == {"bespeak/warning": "deprecated; successor=QUERY"}


def test_an_output_that_breaks_the_published_schema_is_not_passed_on() -> None:
    of = tool(output_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    found = error(Outcome(200, {"secret": 1}), of)
    assert found["code"] == "output-validation-failed"
    assert "secret" not in str(found)


def test_a_refusal_says_what_to_do() -> None:
    for outcome, remedy in (
        (Outcome(455, error={"missing_scopes": ["a:b", "c:d"]}), "--scope a:b --scope c:d"),
        (Outcome(401), "--agent-id"),
    ):
        assert remedy in error(outcome)["remedy"]


BEDS = endpoint("FIND", "/rooms", input_schema={"type": "object", "properties": {"beds": {}}})
GRANTING = Granting(lambda scopes: f"grant {' and '.join(scopes)}", "pass an agent_id")


def checked(arguments: dict[str, Any]) -> Outcome | None:
    validator = compile_schema(closed(BEDS.input_schema))
    assert isinstance(validator, Validator)
    return check_arguments(BEDS, validator, arguments)


def test_members_that_a_model_cannot_use_are_left_out() -> None:
    given = {"code": "taken", "message": "Taken.", "details": {"next": "14"}, "method": "FIND", "digest": "ab"}
    assert error_members(BEDS, Outcome(422, error=given), GRANTING) == {
        "code": "taken",
        "message": "Taken.",
        "details": {"next": "14"},
        "remedy": "Act on the message and its details, or call again with other arguments.",
    }


@rows(
    "outcome, remedy",
    (Outcome(455, error={"missing_scopes": ["a:b", "c:d"]}), "to this client; grant a:b and c:d."),
    (Outcome(422, error={"violations": []}), "Correct the arguments"),
    (Outcome(401), "scopes; pass an agent_id."),
    (Outcome(262), "scopes; pass an agent_id."),
    (Outcome(429, retry_after="7"), "in 7 seconds"),
    (Outcome(503), "later"),
    (Outcome(404, error={"code": "endpoint-not-found"}), "List the tools again"),
    (Outcome(500), "only if repeating does no harm"),
    (Outcome(403), "will be refused again"),
    (Outcome(403, error={"remedy": "Say please."}), "Say please."),
)
def test_tool_error_every_refusal_says_what_to_do(outcome: Outcome, remedy: str) -> None:
    assert remedy in error_members(BEDS, outcome, GRANTING)["remedy"]


@rows(
    "arguments, status, code, message",
    ({"bed": 2}, 422, "input-validation-failed", "'bed' was unexpected"),
    ({"\ud800": 1}, 400, "invalid-arguments", ""),
)
def test_arguments_that_do_not_fit_the_contract_are_refused(
    arguments: dict[str, Any], status: int, code: str, message: str
) -> None:
    assert checked({"beds": 2}) is None
    assert check_arguments(BEDS, None, {"anything": 1}) is None
    refused = checked(arguments)
    assert refused is not None
    assert (refused.status, refused.error["code"]) == (status, code)
    assert message in refused.error["message"]


NEVER: dict[str, Any] = {"not": {}}


@rows(
    "schema, made",
    ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": NEVER}}),
    ({"items": True, "not": False}, {"items": {}, "not": NEVER}),
    ({"anyOf": [True, {"items": False}]}, {"anyOf": [{}, {"items": NEVER}]}),
    ({"$defs": {"a": {"properties": {"b": True}}}}, {"$defs": {"a": {"properties": {"b": {}}}}}),
    ({"additionalProperties": {"items": True}}, {"additionalProperties": {"items": {}}}),
)
def test_a_boolean_schema_becomes_an_object_that_means_the_same(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert without_booleans(schema) == made


@rows(
    "schema",
    {"additionalProperties": False, "unevaluatedProperties": False, "unevaluatedItems": True},
    {"enum": [True, False], "const": True, "default": {"items": True}, "examples": [True]},
    {"uniqueItems": True, "deprecated": True, "readOnly": False, "x-nullable": True},
    {"type": ["string", "null"], "required": ["a"]},
)
def test_booleans_that_are_not_schemas_stay(schema: dict[str, Any]) -> None:
    assert without_booleans(schema) == schema


@rows(
    "schema, written",
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}, {"type": "object"}),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema#", "required": []}, {}),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, {"$schema": "http://json-schema.org/draft-07/schema#"}),
    (
        {"$defs": {"Room": {"title": "Room", "type": "object"}, "Bed": {"title": "A bed"}, "Any": True}},
        {"$defs": {"Room": {"type": "object"}, "Bed": {"title": "A bed"}, "Any": True}},
    ),
    (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"prefixItems": [{}]}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"prefixItems": [{}]}},
    ),
    ({"title": "Rooms", "required": ["a"]}, {"title": "Rooms", "required": ["a"]}),
)
def test_what_holds_anyway_is_left_out(schema: dict[str, Any], written: dict[str, Any]) -> None:
    before = repr(schema)
    assert compact_schema(schema) == written
    assert repr(schema) == before
