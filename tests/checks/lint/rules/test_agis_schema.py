from __future__ import annotations

from typing import Any

import pytest
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, of_endpoint


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
def test_an_input_is_an_object(schema: Any) -> None:
    assert of_endpoint(input=schema) == ["J623"]


@pytest.mark.parametrize("schema", [{"room_id": "string"}, {"type": "object", "room_id": {"type": "string"}}])
def test_a_parameter_beside_the_keywords_is_none(schema: Any) -> None:
    found = advice("J623", document(endpoint(input=schema)))
    assert found.pointer == "/endpoints/0/input/room_id"
    assert "properties: {room_id: {type: ...}}" in found.help


def test_an_output_may_be_a_list() -> None:
    assert of_endpoint(output={"type": "array", "items": {"type": "string"}}) == []


@pytest.mark.parametrize("field", ["input", "output"])
def test_what_is_required_is_a_property(field: str) -> None:
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
    assert of_endpoint(input={**schema, "required": []}) == []


@pytest.mark.parametrize("name", ["room", "room_id", "room2", "x_1"])
def test_parameters_are_in_snake_case(name: str) -> None:
    assert of_endpoint(input=closed(**{name: {}})) == []


@pytest.mark.requirement("AGIS-7-3")
@pytest.mark.parametrize(
    ("name", "meant"), [("roomId", "room_id"), ("room-id", "room_id"), ("HTTPCode", "http_code"), ("数", "party_size")]
)
def test_other_names_are_a_warning_on_the_key(name: str, meant: str) -> None:
    found = advice("J628", document(endpoint(input=closed(**{name: {}}))))
    assert found.on_key
    assert meant in found.help


@pytest.mark.requirement("AGIS-5-7")
def test_a_path_parameter_is_a_property_of_the_input() -> None:
    assert of_endpoint(path="/room/{id}") == ["J629"]
    assert of_endpoint(path="/room/{id}", input=closed(id={"type": "string"})) == []


@pytest.mark.requirement("AGIS-7-8")
@pytest.mark.parametrize("value", [5, "object", [], True])
def test_what_is_no_schema_at_all_is_left_to_the_reader(value: Any) -> None:
    assert of_endpoint(input=value) == ["D121"]
    assert of_endpoint(output=value) == ["D121"]
