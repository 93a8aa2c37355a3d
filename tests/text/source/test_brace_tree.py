"""Brace notation: every example of the draft as it is printed, and no text that hurts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each, rows
from tests.growth import assert_linear

from bespeak.text.source.brace_tree import BraceTree, parse_braces
from bespeak.text.source.tree import MAX_DEPTH, SyntaxFault
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

DRAFT = Path(__file__).parent / "draft"
EXAMPLES = sorted(path.stem for path in DRAFT.glob("*.agis"))


def example(name: str) -> str:
    return (DRAFT / f"{name}.agis").read_text("utf-8")


def tree(text: str) -> BraceTree:
    parsed = parse_braces(text, "x.agis")
    assert isinstance(parsed, BraceTree), parsed
    return parsed


def fault(text: str) -> SyntaxFault:
    parsed = parse_braces(text, "x.agis")
    assert isinstance(parsed, SyntaxFault), parsed.data
    return parsed


def schema(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TIME = {"type": "string", "format": "date-time"}
TEXT_FIELD = {"type": "string"}

RESERVATIONS = {
    "agis": "1.0",
    "service": "Acme Restaurant Reservations",
    "agtp": "agtp://reservations.acme.com",
    "description": "Reservation management for restaurant booking agents",
    "endpoints": [
        {
            "method": "BOOK",
            "path": "/reservation",
            "semantic": {
                "intent": "Books a restaurant reservation on behalf of the requesting agent",
                "actor": "agent",
                "outcome": "A confirmed reservation record exists with status CONFIRMED",
                "capability": "transaction",
                "confidence_guidance": 0.85,
            },
            "input": schema(
                {"restaurant_id": {"type": "integer"}, "party_size": {"type": "integer"}, "datetime": TIME},
                {"preferences": TEXT_FIELD, "contact_name": TEXT_FIELD},
            ),
            "output": fields(reservation_id={}, status={}, confirmation_code={}, datetime={}),
            "errors": ["reservation_unavailable", "invalid_datetime", "restaurant_not_found"],
        },
        {
            "method": "FIND",
            "path": "/restaurants",
            "semantic": {
                "intent": "Finds restaurants matching the agent criteria",
                "actor": "agent",
                "outcome": "A ranked list of matching restaurants is returned",
                "capability": "discovery",
                "confidence_guidance": 0.6,
            },
            "input": schema(
                {"location": TEXT_FIELD}, {"cuisine": {}, "party_size": {}, "datetime": {}, "price_range": {}}
            ),
            "output": fields(restaurants={"type": "array", "items": {"type": "object", "title": "restaurant"}}),
            "errors": ["no_results", "invalid_location"],
        },
    ],
    "vocabulary": {"declared_verbs": ["BOOK", "FIND"], "domain": "hospitality", "version": "1.0.0"},
}


def test_documents_of_the_draft_are_read_with_places_and_without_ellipses() -> None:
    assert tree(example("reservations")).data == RESERVATIONS
    data = tree(example("patients")).data
    assert [list(endpoint) for endpoint in data["endpoints"]] == [["method", "path", "semantic"]] * 2
    assert data["vocabulary"]["declared_verbs"] == ["TRIAGE", "ADMIT"]
    parsed = tree(example("reservations"))
    assert str(parsed.locate("/endpoints/0/semantic/actor", key=True)) == "x.agis:12:10"
    assert str(parsed.locate("/endpoints/0/semantic/nothing")) == "x.agis:9:8"
    assert str(parsed.locate("/endpoints/0/input/additionalProperties")) == "x.agis:18:8"


def test_the_draft_s_financial_document_is_read_completely() -> None:
    data = tree(example("finance")).data
    transfer, reconcile = data["endpoints"]
    assert transfer["semantic"]["state_transition"] == {
        "source_account.balance": "[current] -> [current - amount]",
        "destination_account.balance": "[current] -> [current + amount]",
    }
    assert transfer["semantic"]["is_idempotent"] is False
    assert transfer["input"]["required"] == ["source_account_id", "destination_account_id", "amount", "currency"]
    assert transfer["errors"][-1] == "authorization_required"
    assert reconcile["path"] == "/account/{id}"
    assert reconcile["semantic"]["outcome"] == "Discrepancies are identified and a reconciliation report is returned"
    assert reconcile["output"]["properties"]["discrepancies"] == {"type": "array"}
    assert reconcile["output"]["required"] == ["reconciliation_id", "discrepancies", "status", "period_covered"]
    assert data["vocabulary"]["negotiable"] is True
    assert [entry["class"] for entry in data["data_manifest"]["available_data"]] == [
        "transaction-history",
        "exchange-rates",
    ]
    assert data["data_manifest"]["available_data"][1]["requires_authorization"] is False
    assert data["data_manifest"]["pre_auth_discovery"] is True


def test_the_draft_s_fields_become_json_schemas() -> None:
    assert tree(example("fields")).data == {
        "input": schema(
            {
                "restaurant_id": {"type": "integer"},
                "party_size": {"type": "integer", "minimum": 1, "maximum": 20},
                "datetime": TIME,
            },
            {"preferences": TEXT_FIELD, "contact_name": TEXT_FIELD},
        ),
        "output": fields(
            reservation_id=TEXT_FIELD,
            status={"type": "string", "enum": ["CONFIRMED", "PENDING"]},
            confirmation_code=TEXT_FIELD,
            datetime=TIME,
        ),
        "errors": [
            "reservation_unavailable",
            "invalid_datetime",
            "restaurant_not_found",
            "party_size_exceeds_capacity",
        ],
    }


def test_single_endpoint_is_a_document() -> None:
    data = tree(example("bridge")).data
    assert list(data) == ["endpoints"]
    assert data["endpoints"][0]["input"]["required"] == ["restaurant_id", "party_size", "datetime"]
    body = example("bridge").split("\n", 1)[1]
    assert tree(body).data == data


@pytest.mark.parametrize("name", ["hints", "transition", "vocabulary", "manifest"])
def test_yaml_fragment_is_read_as_yaml(name: str) -> None:
    parsed = parse_yaml(example(name), "x.agis")
    assert isinstance(parsed, YamlTree)
    assert tree(example(name)).data == parsed.data


@pytest.mark.parametrize("name", EXAMPLES)
def test_blank_lines_indentation_and_line_ends_do_not_matter(name: str) -> None:
    text = example(name)
    data = tree(text).data
    lines = text.split("\n")
    assert tree("\n".join(line for line in lines if line.strip())).data == data
    assert tree("\n".join(f"   {line}\n" for line in lines)).data == data
    assert tree(text.replace("\n", "\r\n")).data == data


@rows(
    "at, value",
    ("/agis", '"1.0"'),
    ("/endpoints/0/method", "BOOK"),
    ("/endpoints/1/path", "/restaurants"),
    ("/endpoints/0/semantic/actor", "agent"),
    ("/endpoints/0/errors/2", "restaurant_not_found"),
    ("/endpoints/0/input/properties/party_size", "party_size (int)"),
    ("/endpoints/0/input/properties/party_size/type", "party_size (int)"),
    ("/endpoints/0/input/required/2", "datetime (ISO8601)"),
    ("/endpoints/0/output/properties/status", "status"),
    ("/endpoints/1/output/properties/restaurants", "[array of restaurant objects]"),
    ("/vocabulary/declared_verbs/1", "FIND"),
)
def test_value_has_its_place(at: str, value: str) -> None:
    parsed = tree(example("reservations"))
    span = parsed.value_span(at)
    assert span is not None
    assert parsed.text[span.start : span.end] == value


@rows(
    "text, line, column, message",
    ("BOOK /x {\n  semantic {\n    intent: a\n", 2, 12, "not closed"),
    ("BOOK /x {}\n}", 2, 1, "closes nothing"),
    ('a: "x', 1, 4, "a quoted text is not closed"),
    ('a: "x\nb: "y"', 1, 4, "a quoted text is not closed"),
    ("a: [1, 2", 1, 4, "a list in brackets is not closed"),
    ("a: 1\na: 2", 2, 1, "the key 'a' is repeated; line 1"),
    ("semantic {\n  intent Books\n}", 2, 3, "neither `key: value` nor a block"),
    ("a: long # note\n  text\nb: 1", 2, 3, "neither `key: value` nor a block"),
    ("a: 1e999", 1, 4, "too large"),
    ("a: \0", 1, 4, "control character"),
    ("a {\n - b\n}", 2, 2, "a list item stands among keys"),
    ("BOOK /x { method: FIND }", 1, 1, "a method in its block"),
)
def test_fault_has_a_message_and_a_place(text: str, line: int, column: int, message: str) -> None:
    found = fault(text)
    assert (found.location.line, found.location.column) == (line, column)
    assert message in found.message
    assert found.help


@rows(
    "text, data",
    ("a: x, y # note\nb: {c: 1, d: [e, {f}]}", {"a": "x, y", "b": {"c": 1, "d": ["e", "{f}"]}}),
    ("a:\nb: ~\nc: 'it''s'", {"a": None, "b": None, "c": "it's"}),
    ("a: long\n  text\nb: 1", {"a": "long text", "b": 1}),
    ("a:\n- b\n- c: 1\n  d: 2\n- - e\n  - f\n-", {"a": ["b", {"c": 1, "d": 2}, ["e", "f"], None]}),
    ("a {\n  b: x, y\n    and z\n  c: 1\n}", {"a": {"b": "x, y and z", "c": 1}}),
    ("a { b: x, c: y\n  d: x, y\n}", {"a": {"b": "x", "c": "y", "d": "x, y"}}),
    ('a: "x" -> "y"', {"a": '"x" -> "y"'}),
    ('a: "\\u00e9\\n\\"" ', {"a": 'é\n"'}),
    ("a: ...\nb { ... }\nerrors { }", {"a": None, "b": {}, "errors": []}),
    ("output { a: string, b: integer }", {"output": fields(a=TEXT_FIELD, b={"type": "integer"})}),
    ("", {}),
)
def test_details_of_the_notation_are_read(text: str, data: Any) -> None:
    assert tree(text).data == data


def test_hostile_text_takes_linear_time() -> None:
    def check(text: Callable[[int], str]) -> None:
        parse_braces(text(20_000), "x.agis")
        assert_linear(lambda size: parse_braces(text(size), "x.agis"), 50)

    texts: dict[str, Callable[[int], str]] = {
        "open blocks": lambda size: "a {" * size,
        "open lists": lambda size: "[" * size,
        "open lists in a value": lambda size: "a: " + "[" * size,
        "fields": lambda size: "output {" + "a," * size,
        "the same field": lambda size: "output {" + "a: b," * size,
        "keys": lambda size: "x {" + "".join(f"k{number}: v, " for number in range(size)) + "}",
        "parentheses": lambda size: "a: " + "(" * size,
        "open constraints": lambda size: "output { " + "a (" * size,
        "ever deeper": lambda size: "\n".join(" " * depth + "a:" for depth in range(min(size, 2000))),
        "dashes": lambda size: "- " * size,
        "items": lambda size: "a:\n" + " - b\n" * size,
        "quotes": lambda size: '"' * (size + 1),
        "parameters": lambda size: "A /" + "{a}" * size,
        "comment": lambda size: "#" * (50 * size),
        "spaces": lambda size: " " * (100 * size),
    }
    check_each(texts.items(), lambda each: check(each[1]), name=lambda each: each[0])


def test_blocks_may_be_nested_as_deeply_as_in_yaml() -> None:
    tree("a {" * (MAX_DEPTH - 1) + "}" * (MAX_DEPTH - 1))
    assert "nested" in fault("a {" * (MAX_DEPTH + 1) + "}" * (MAX_DEPTH + 1)).message


PIECES = ["BOOK /x {", "a", "b:", *"{}[](),\n\"'#1", "  ", "- ", "...", "->"]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_a_tree_or_a_fault_inside_the_text(text: str) -> None:
    parsed = parse_braces(text, "x.agis")
    if isinstance(parsed, SyntaxFault):
        assert 0 < parsed.location.line <= text.count("\n") + 1
    else:
        check_places(parsed, parsed.data)


def check_places(parsed: BraceTree, data: Any, at: str = "") -> None:
    span = parsed.value_span(at)
    assert span is None or 0 <= span.start <= span.end <= len(parsed.text)
    parsed.locate(at)
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        check_places(parsed, value, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")
