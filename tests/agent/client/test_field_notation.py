"""The notation of fields: what it says, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.agent.client.proposal import read_fields
from bespeak.errors import ConfigError


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
