"""Parameters are placed, styled and typed as each version of OpenAPI says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.openapi.reading import OK, document, read, read_operation, rules

from bespeak.documents.openapi.description import Parameter


def one(parameter: Any, version: str = "3.0.3", **parts: Any) -> tuple[Parameter | None, list[str]]:
    operation, found = read_operation({"parameters": [parameter]}, version, **parts)
    return (operation.parameters[0] if operation.parameters else None), rules(found)


@pytest.mark.parametrize(
    ("place", "extra", "style", "explode"),
    [
        ("query", {}, "form", True),
        ("query", {"explode": False}, "form", False),
        ("query", {"style": "pipeDelimited"}, "pipeDelimited", False),
        ("query", {"style": "deepObject"}, "deepObject", True),
        ("header", {}, "simple", False),
        ("cookie", {}, "form", True),
    ],
)
def test_style_and_explode_have_their_defaults_by_place(place: str, extra: Any, style: str, explode: bool) -> None:
    made, found = one({"name": "a", "in": place, "schema": {"type": "string"}, **extra})
    assert made is not None
    assert (made.style, made.explode, made.place, made.required, found) == (style, explode, place, False, [])


@pytest.mark.parametrize(
    ("place", "collection", "style", "explode"),
    [
        ("query", None, "form", False),
        ("query", "csv", "form", False),
        ("query", "multi", "form", True),
        ("query", "ssv", "spaceDelimited", False),
        ("query", "pipes", "pipeDelimited", False),
        ("header", "csv", "simple", False),
        ("header", "pipes", "simple", False),
    ],
)
def test_collections_of_2_0_are_styles(place: str, collection: str | None, style: str, explode: bool) -> None:
    given = {"name": "a", "in": place, "type": "array", "items": {"type": "integer"}}
    made, _ = one({**given, **({"collectionFormat": collection} if collection else {})}, "2.0")
    assert made is not None
    assert (made.style, made.explode) == (style, explode)
    assert made.schema == {"type": "array", "items": {"type": "integer"}}


def test_a_parameter_of_2_0_is_its_own_schema() -> None:
    given = {"name": "n", "in": "query", "required": True, "type": "integer", "maximum": 9, "description": "How many."}
    made, _ = one(given, "2.0")
    assert made is not None
    assert (made.schema, made.required, made.description) == ({"type": "integer", "maximum": 9}, True, "How many.")


@pytest.mark.parametrize(
    ("parameter", "rule"),
    [
        ("text", "D104"),
        ({"in": "query"}, "D164"),
        ({"name": "a", "in": "body"}, "D164"),
        ({"name": "a"}, "D164"),
        ({"name": "a", "in": ["query"]}, "D164"),
        ({"name": "Authorization", "in": "header"}, "D164"),
        ({"$ref": "#/components/parameters/None"}, "D161"),
        ({"$ref": "https://x.example/p.json"}, "D161"),
    ],
)
def test_unusable_parameter_is_dropped_and_reported(parameter: Any, rule: str) -> None:
    assert one(parameter) == (None, [rule])


@pytest.mark.parametrize(
    ("extra", "rule"),
    [({"style": "matrix", "schema": {}}, "D164"), ({}, "D164"), ({"content": {"text/csv": {"schema": {}}}}, "D164")],
)
def test_guessed_serialization_is_reported(extra: Any, rule: str) -> None:
    made, found = one({"name": "a", "in": "query", **extra})
    assert made is not None
    assert (made.style, found) == ("form", [rule])


def test_a_parameter_with_content_is_json() -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    made, found = one({"name": "a", "in": "query", "content": content})
    assert made is not None
    assert (made.is_json, made.schema, found) == (True, {"type": "object"}, [])


def test_a_reference_leads_to_a_parameter() -> None:
    parts = {
        "parameters": {"Limit": {"name": "limit", "in": "query", "deprecated": True, "schema": {"type": "integer"}}}
    }
    made, found = one({"$ref": "#/components/parameters/Limit"}, components=parts)
    assert made is not None
    assert (made.name, made.deprecated, found) == ("limit", True, [])


def test_an_operation_overrides_the_parameters_of_its_path() -> None:
    item = {
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "lang", "in": "header", "schema": {"type": "string"}},
        ],
        "get": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}},
            ],
            "responses": OK,
        },
    }
    made, found = read(document({"/room/{id}": item}))
    assert [(p.name, p.place, p.schema["type"]) for p in made.operations[0].parameters] == [
        ("id", "path", "integer"),
        ("lang", "header", "string"),
        ("id", "query", "string"),
    ]
    assert found == []


def test_path_parameters_match_the_path_template() -> None:
    given = [{"name": "gone", "in": "path", "required": True, "schema": {"type": "string"}}]
    operation, found = read_operation({"parameters": given}, path="/room/{room_id}/{room_id}")
    assert [(p.name, p.place, p.required, p.style, p.explode) for p in operation.parameters] == [
        ("room_id", "path", True, "simple", False)
    ]
    assert rules(found) == ["D164", "D164"]


def test_a_parameter_that_is_described_twice_counts_once() -> None:
    given = {"name": "a", "in": "query", "schema": {"type": "string"}}
    operation, found = read_operation({"parameters": [given, {**given, "schema": {"type": "integer"}}]})
    assert [p.schema for p in operation.parameters] == [{"type": "string"}]
    assert rules(found) == ["D109"]


def test_parameters_must_be_a_list_of_limited_length() -> None:
    assert rules(read_operation({"parameters": {"a": 1}})[1]) == ["D104"]
    many = [{"name": f"p{n}", "in": "query", "schema": {}} for n in range(500)]
    operation, found = read_operation({"parameters": many})
    assert (len(operation.parameters), rules(found)) == (200, ["D164"])
