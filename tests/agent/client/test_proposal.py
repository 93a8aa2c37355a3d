"""What is sent as a proposal: complete, and honest about what the agent does not know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.agent.client.proposal import define, read_fields, read_proposal
from bespeak.checks.lint.registration import check_contract
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.policy import Policies
from bespeak.errors import ConfigError


def test_definition_is_complete_and_valid() -> None:
    proposal = define("find", "/rooms/cheap", given=["max_price:number"], needs=["rooms[].room_id"])
    assert proposal.definition["method"] == "FIND"
    assert set(proposal.definition) >= {
        "path",
        "description",
        "semantic",
        "input_schema",
        "output_schema",
        "errors",
        "handler",
    }
    assert proposal.definition["input_schema"] == {
        "type": "object",
        "properties": {"max_price": {"type": "number"}},
        "required": ["max_price"],
        "additionalProperties": False,
    }
    assert proposal.endpoint.key == ("FIND", "/rooms/cheap")
    found = check_contract(proposal.endpoint, load_bundled(), Policies())
    assert [finding for finding in found if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("method", "impact", "said", "idempotent"),
    [
        ("FIND", None, "informational", True),
        ("SUMMARIZE", None, "informational", True),
        ("BOOK", None, "irreversible", False),
        ("BOOK", "reversible", "reversible", False),
        ("FIND", "irreversible", "irreversible", False),
        ("FROBNICATE", None, "irreversible", False),
    ],
)
def test_impact_is_the_worst_that_is_allowed(method: str, impact: str | None, said: str, idempotent: bool) -> None:
    semantic = define(method, "/rooms", impact=impact).endpoint.semantic
    assert (semantic.impact, semantic.is_idempotent, semantic.confidence) == (said, idempotent, 1.0)


def test_parameters_of_the_path_are_required_inputs() -> None:
    schema = define("FETCH", "/rooms/{room_id}/guests/{id}", given=["id:integer"]).definition["input_schema"]
    assert schema["properties"] == {"id": {"type": "integer"}, "room_id": {"type": "string"}}
    assert sorted(schema["required"]) == ["id", "room_id"]


def test_inputs_without_a_type_take_the_one_that_the_service_uses() -> None:
    known = [
        make_endpoint(
            "QUERY", "/a", echo, properties={"beds": {"type": "integer", "minimum": 1}, "id": {"type": "string"}}
        ),
        make_endpoint("QUERY", "/b", echo, properties={"beds": {"type": "integer"}, "id": {"type": "integer"}}),
        make_endpoint("QUERY", "/c", echo, properties={"kind": {"$ref": "#/$defs/kind"}}),
    ]
    schema = define("FIND", "/x", given=["beds", "id", "kind", "other"], known=known).definition["input_schema"]
    assert schema["properties"] == {
        "beds": {"type": "integer"},
        "id": {"type": "string"},
        "kind": {"type": "string"},
        "other": {"type": "string"},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"impact": "none"}, "impact must be one of informational, reversible, irreversible; got 'none'"),
        ({"given": {"a": {"enum": [object()]}}}, "is not JSON"),
    ],
)
def test_what_cannot_be_proposed_is_refused_before_it_is_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        define("FIND", "/x", **options)


def test_definitions_need_a_method_and_a_path() -> None:
    with pytest.raises(ConfigError, match="without a method and a path"):
        read_proposal({"method": "FIND"})


@pytest.mark.parametrize(
    ("fields", "properties", "required"),
    [
        (["email"], {"email": {}}, ["email"]),
        (["limit:integer"], {"limit": {"type": "integer"}}, ["limit"]),
        (
            ["born:date", "price:number"],
            {"born": {"type": "string", "format": "date"}, "price": {"type": "number"}},
            None,
        ),
        (["tags:string[]"], {"tags": {"type": "array", "items": {"type": "string"}}}, ["tags"]),
        (["tags[]:string"], {"tags": {"type": "array", "items": {"type": "string"}}}, ["tags"]),
        (["max-price", "x$y", "größe"], {"max-price": {}, "x$y": {}, "größe": {}}, None),
        ({"email": str, "limit": int, "price": float, "paid": bool}, None, ["email", "limit", "price", "paid"]),
        (
            {"born": "date", "kind": {"enum": ["a"]}},
            {"born": {"type": "string", "format": "date"}, "kind": {"enum": ["a"]}},
            None,
        ),
    ],
)
def test_fields_become_properties_of_an_object(fields: Any, properties: Any, required: Any) -> None:
    schema = read_fields(fields)
    assert schema["type"] == "object"
    if properties is not None:
        assert schema["properties"] == properties
    assert schema["required"] == (required or list(schema["properties"]))


def test_paths_become_nested_objects_and_arrays() -> None:
    schema = read_fields(["invoices[].total:number", "invoices[].lines[].sku", "customer.name"])
    invoice = schema["properties"]["invoices"]["items"]
    assert invoice["properties"] == {
        "total": {"type": "number"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}}, "required": ["sku"]}},
    }
    assert invoice["required"] == ["total", "lines"]
    assert schema["properties"]["customer"]["required"] == ["name"]
    assert schema["required"] == ["invoices", "customer"]


def test_question_mark_makes_only_the_field_itself_optional() -> None:
    schema = read_fields(["limit?:integer", "owner.phone?"])
    assert schema["required"] == ["owner"]
    assert "required" not in schema["properties"]["owner"]


def test_field_and_what_lies_in_it_may_both_be_named() -> None:
    assert read_fields(["rooms[]", "rooms[].id"]) == read_fields(["rooms[].id"])


def test_schemas_are_returned_as_they_are() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}
    assert read_fields(schema) == schema


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", "a..b", "a b", "a[", "a[0].b", "[]", "a?b", "a:", "a,b", "{a}", ".".join("a" * 17), "a" * 501],
)
def test_texts_that_are_not_fields_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid field; write it like"):
        read_fields([text])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["limit:banana"], "'banana' is not a valid type of the field 'limit:banana'; use one of string, integer"),
        ({"limit": 3}, "3 is not a valid type"),
        ({"limit": complex}, "is not a valid type"),
        (["a:string", "a.b"], "lies in a field that is named as string, not as object"),
        (["a:string", "a:integer"], "is named twice, as string and as integer"),
        (["a[]", "a.b"], "lies in a field that is named as array"),
        ("email", "must be a list, not the string 'email'"),
        ([f"a{number}" for number in range(501)], "At most 500 fields"),
        ([3], "is not a valid field"),
    ],
)
def test_contradictions_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        read_fields(fields)
