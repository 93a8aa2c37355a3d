"""Results are bounded, and say how to get the rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from tests.cases import rows
from tests.faces.mcp.tools import endpoint

from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.faces.mcp import results as kept_result
from bespeak.faces.mcp.results import (
    LIFETIME,
    MOST_ERROR,
    KeptResults,
    Results,
    WantedShape,
    paging_of,
    read_shape,
    shape_in,
    shaping_of,
)
from bespeak.protocol.exchange.refusal import Outcome

MOST = 5_000
ROOM = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id", "note"],
    "additionalProperties": False,
}
ROOMS = {
    "type": "object",
    "properties": {"rooms": {"type": "array", "items": ROOM, "minItems": 1}, "total": {"type": "integer"}},
    "required": ["rooms", "total"],
    "additionalProperties": False,
}
PAGED = {"type": "object", "properties": {"limit": {"type": "integer"}, "offset": {"type": "integer"}}}
MANY = {"rooms": [{"id": number, "note": "quiet"} for number in range(1000)], "total": 1000}


def tool(output: Any = ROOMS, **changes: Any) -> Tool:
    return next(iter(make_tools([endpoint("FIND", "/rooms", output_schema=output, **changes)]).values()))


def results() -> Results:
    return Results(MOST, KeptResults("rooms.example", MOST))


def write(of: Tool, output: Any, **arguments: Any) -> dict[str, Any]:
    """Write a result, and hold its structured content against the published schema."""
    result = results().write(of, Outcome(200, output), arguments, "ann")
    published = of.entry.get("outputSchema")
    if published is not None:
        Draft202012Validator(published).validate(result["structuredContent"])
    (block,) = result["content"]
    assert len(block["text"]) <= MOST
    assert not result["isError"]
    return result


def test_only_valid_results_pass_and_outputs_of_any_form_are_cut() -> None:
    result = write(tool(), {"rooms": [{"id": 1, "note": "quiet"}], "total": 1})
    assert result["structuredContent"] == {"rooms": [{"id": 1, "note": "quiet"}], "total": 1}
    assert results().write(tool(), Outcome(200, {"rooms": [{"id": "x" * 9000}]}), {}, "ann")["isError"]
    for output, schema in (([7] * 9000, {"type": "array"}), ("a" * 9000, {"type": "string"}), ("a" * 9000, {})):
        partial = write(tool(schema), output)["structuredContent"]["partial_result"]
        assert len(partial["output"]) < 5000
        assert partial["left_out"][0]["of"] == 9000
    fixed = {"type": "object", "properties": {"ids": {"type": "array", "minItems": 9000}}, "required": ["ids"]}
    odd = {**fixed, "minProperties": 1, "propertyNames": {"maxLength": 3}}
    for schema in (fixed, odd):
        assert "partial_result" in write(tool(schema), {"ids": [7] * 9000})["structuredContent"]


def test_a_long_list_is_cut_and_paged_by_the_endpoints_own_parameters() -> None:
    result = write(tool(input_schema=PAGED), MANY, offset=40)
    partial = result["structuredContent"]["partial_result"]
    kept = len(partial["output"]["rooms"])
    assert partial["output"] == {"rooms": MANY["rooms"][:kept], "total": 1000}  # type: ignore[index]
    assert partial["left_out"] == [{"at": "/rooms", "left_out": 1000 - kept, "of": 1000, "what": "elements"}]
    assert partial["rest"] == f"Call again with offset={40 + kept} for the elements that follow."
    assert msgspec.json.decode(result["content"][0]["text"]) == result["structuredContent"]


def test_without_paging_the_rest_is_asked_for_by_fields_or_read_as_a_resource_if_it_is_kept() -> None:
    writer = results()
    result = writer.write(tool(), Outcome(200, MANY), {}, "ann")
    rest: str = result["structuredContent"]["partial_result"]["rest"]
    assert rest.startswith(
        "Ask for some members only, with bespeak/fields in the _meta of the call: rooms.id, rooms.note, total. "
        "Read the resource bespeak://rooms.example/results/"
    )
    uri = next(word for word in rest.split() if word.startswith("bespeak://"))
    whole = writer.kept.read(uri, "ann")
    assert msgspec.json.decode(whole["text"]) == MANY
    result = Results(MOST, None).write(tool({"type": "array", "items": {"type": "integer"}}), Outcome(200, [7] * 9000))
    assert result["structuredContent"]["partial_result"]["rest"] == "Call again with arguments that match less."


def test_selected_members_come_alone_unless_the_selection_is_complete_or_too_long() -> None:
    of = tool()
    shape = read_shape(of, {"fields": ["rooms.id", "total"]})
    assert isinstance(shape, WantedShape)
    output = {"rooms": [{"id": 1, "note": "quiet"}], "total": 1}
    result = results().write(of, Outcome(200, output), {}, "ann", shape)
    assert result["structuredContent"] == {
        "partial_result": {"output": {"rooms": [{"id": 1}], "total": 1}, "fields": "rooms.id,total"}
    }
    Draft202012Validator(of.entry["outputSchema"]).validate(result["structuredContent"])
    shape = read_shape(of, {"fields": ["rooms", "total"], "compact": True})
    assert isinstance(shape, WantedShape)
    output = {"rooms": [{"id": 1, "note": "quiet"}], "total": 1}
    assert results().write(of, Outcome(200, output), {}, "ann", shape)["structuredContent"] == output
    shape = read_shape(of, {"fields": ["rooms.id"]})
    assert isinstance(shape, WantedShape)
    result = results().write(of, Outcome(200, MANY), {}, "ann", shape)
    partial = result["structuredContent"]["partial_result"]
    assert len(result["content"][0]["text"]) <= MOST
    assert (partial["output"]["rooms"][0], partial["left_out"][0]["at"]) == ({"id": 0}, "/rooms")


def test_empty_members_are_left_out_and_long_refusals_keep_code_message_and_remedy() -> None:
    error = {"code": "sold", "message": "Somebody was faster.", "details": {"free": ["A1"] * 9000}}
    (block,) = results().write(tool(), Outcome(422, error=error))["content"]
    assert len(block["text"]) <= MOST_ERROR
    kept = msgspec.json.decode(block["text"])["error"]
    assert (kept["code"], kept["message"]) == ("sold", "Somebody was faster.")
    assert kept["remedy"]
    assert kept["details"]["free"]
    assert shaped({"compact": True}, {"rooms": [{"id": "", "note": ""}]}) == {"rooms": [{"id": ""}]}
    assert read_shape(shape_tool(), {"name": "find_rooms"}) is None
    assert shape_in({"bespeak/fields": "a", "bespeak/compact": True, "other": 1}) == {"fields": "a", "compact": True}
    other = shape_tool(input_schema={"type": "object", "properties": {"fields": {"type": "string"}}})
    assert isinstance(read_shape(other, {"fields": ["rooms.id"]}), WantedShape)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keeping(clock: Clock | None = None) -> KeptResults:
    return KeptResults("Rooms.example", 10, clock or Clock())


def kept(results: KeptResults, text: str = "0123456789abcdef", caller: str = "ann") -> str:
    uri = results.keep(text, "application/json", caller)
    assert uri is not None
    return uri


def test_a_result_is_read_by_its_caller_whole_or_in_parts() -> None:
    results = keeping()
    uri = kept(results)
    assert uri.startswith("bespeak://rooms.example/results/")
    assert results.read(uri, "ann") == {"uri": uri, "mimeType": "application/json", "text": "0123456789abcdef"}
    assert results.read(f"{uri}/2", "ann") == {"uri": f"{uri}/2", "mimeType": "text/plain", "text": "abcdef"}
    assert results.parts("0123456789abcdef") == 2
    for wrong in ("0", "3", "x", "1/2", "-1", "９"):
        assert results.read(f"{uri}/{wrong}", "ann") is None
    assert results.read(uri, "bob") is None
    assert results.read(uri, "") is None
    assert results.read("bespeak://rooms.example/results/x", "ann") is None
    assert results.read("bespeak://rooms.example/manifest", "ann") is None


def test_results_are_forgotten_after_a_while_or_to_make_room() -> None:
    clock = Clock()
    results = keeping(clock)
    uri = kept(results)
    clock.now = LIFETIME - 1
    assert results.read(uri, "ann") is not None
    clock.now = LIFETIME
    assert results.read(uri, "ann") is None
    results = keeping()
    uris = [kept(results) for _ in range(kept_result.MOST_KEPT_RESULTS + 1)]
    assert results.read(uris[0], "ann") is None
    assert results.read(uris[1], "ann") is not None
    results = keeping()
    large = "a" * (kept_result.MOST_KEPT_CHARACTERS // 4)
    uris = [kept(results, large) for _ in range(5)]
    assert [results.read(uri, "ann") is not None for uri in uris] == [False, True, True, True, True]
    assert results.keep(large + "a", "text/plain", "ann") is None


SHAPE_ROOM = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "note": {"type": "string"}},
    "required": ["id"],
}
OUTPUT = {"type": "object", "properties": {"rooms": {"type": "array", "items": SHAPE_ROOM}}, "required": ["rooms"]}


def shape_tool(**changes: Any) -> Tool:
    return next(iter(make_tools([endpoint("FIND", "/rooms", output_schema=OUTPUT, **changes)]).values()))


def shaped(asked: dict[str, Any], output: Any) -> Any:
    found = read_shape(shape_tool(), asked)
    assert isinstance(found, WantedShape)
    return shaping_of(shape_tool()).apply(found.hints, output)


@pytest.mark.parametrize("fields", [["rooms.id"], "rooms.id"])
def test_members_are_selected(fields: Any) -> None:
    output = {"rooms": [{"id": "1", "note": "a"}], "more": 1}
    assert shaped({"fields": fields}, output) == {"rooms": [{"id": "1"}]}


@rows(
    "asked, code",
    ({"fields": ["rooms.price"]}, "unknown-fields"),
    ({"fields": 7}, "invalid-token-hint"),
    ({"fields": [7]}, "invalid-token-hint"),
    ({"fields": [""]}, "invalid-token-hint"),
    ({"compact": "yes"}, "invalid-token-hint"),
)
def test_a_wish_that_cannot_be_met_is_refused(asked: dict[str, Any], code: str) -> None:
    found = read_shape(shape_tool(), asked)
    assert isinstance(found, Outcome)
    assert found.error["code"] == code


INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


@rows(
    "properties, arguments, advice",
    ({"limit": INTEGER, "offset": INTEGER}, {}, "Call again with offset=7 for the elements that follow."),
    ({"offset": INTEGER}, {"offset": 20}, "Call again with offset=27 for the elements that follow."),
    ({"startIndex": {**INTEGER, "default": 1}}, {}, "Call again with startIndex=8 for the elements that follow."),
    (
        {"page_size": INTEGER, "cursor": TEXT},
        {},
        "Call again with page_size=7 or less, and then page on with cursor.",
    ),
    ({"perPage": INTEGER, "page": INTEGER}, {}, "Call again with perPage=7 or less, and then page on with page."),
    ({"limit": INTEGER}, {}, "Call again with limit=7 or less."),
    ({"cursor": TEXT}, {}, None),
    ({"limit": TEXT, "name": TEXT}, {}, None),
    ({}, {}, None),
)
def test_the_rest_of_a_list_is_had_by_the_endpoints_own_parameters(
    properties: dict[str, Any], arguments: dict[str, Any], advice: str | None
) -> None:
    found = paging_of(endpoint("LIST", "/rooms", input_schema={"type": "object", "properties": properties}))
    assert found.advise(arguments, 7) == advice
    assert found.advise(arguments, 0) is None
