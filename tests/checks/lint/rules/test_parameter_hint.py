from __future__ import annotations

import pytest
from tests.checks.lint.agis_text import advice, document, endpoint, of_endpoint, rules


@pytest.mark.requirement("AGIS-6.2-13")
def test_hints_for_parameters_are_right() -> None:
    assert of_endpoint(semantic={"parameter_hints": {"room_id": ["the blue room", "number 5"]}}) == []


def test_a_hint_for_a_path_parameter_is_right() -> None:
    hints = {"parameter_hints": {"hotel_id": ["at the Ritz"]}}
    assert of_endpoint(path="/hotel/{hotel_id}", semantic=hints) == ["J629"]


@pytest.mark.requirement("AGIS-6.2-13")
def test_hint_for_an_unknown_parameter_suggests_a_similar_name() -> None:
    found = advice("S440", document(endpoint(semantic={"parameter_hints": {"room": ["the blue room"]}})))
    assert found.severity == "warning"
    assert found.on_key
    assert found.help == "Did you mean room_id?"
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].key) == (False, "room_id")


def test_where_the_input_refers_elsewhere_nothing_is_known() -> None:
    schemas = {"Room": {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]}}
    schema = {"type": "object", "properties": {"nights": {"type": "integer"}}, "allOf": [{"$ref": "#/schemas/Room"}]}
    entry = endpoint(input=schema, semantic={"parameter_hints": {"room": ["the blue room"]}})
    assert rules(document(entry, schemas=schemas)) == []


@pytest.mark.parametrize("phrases", [[], ["", "two"], ["two", "Two "]])
def test_a_hint_says_something_and_says_it_once(phrases: list[str]) -> None:
    assert of_endpoint(semantic={"parameter_hints": {"room_id": phrases}}) == ["S441"]
