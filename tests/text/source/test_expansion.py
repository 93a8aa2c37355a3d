"""Documents with shorthand fields: their schemas, and the places of the shorthand."""

from __future__ import annotations

import copy

import pytest

from bespeak.text.source.shorthand import expand_shorthand, expand_tree
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

TEXT = """\
agis: "1.0"
endpoints:
  - method: BOOK
    input:
      required: [room (int), size (integer, minimum: 1, maximum: 20), late]
      optional:
        - note (string)
    output: {code, rooms: [array]}
    errors: {gone, full}
  - method: FIND
    input: {type: object, properties: {}}
    output: [code]
    errors: [gone]
"""


def tree() -> YamlTree:
    parsed = parse_yaml(TEXT, "x.agis")
    assert isinstance(parsed, YamlTree)
    return parsed


def test_short_fields_in_yaml_become_schemas() -> None:
    data = expand_shorthand(tree().data)
    book, find = data["endpoints"]
    assert book["input"] == {
        "type": "object",
        "properties": {
            "room": {"type": "integer"},
            "size": {"type": "integer", "minimum": 1, "maximum": 20},
            "late": {},
            "note": {"type": "string"},
        },
        "required": ["room", "size", "late"],
        "additionalProperties": False,
    }
    assert book["output"]["properties"] == {"code": {}, "rooms": {"type": "array"}}
    assert book["errors"] == ["gone", "full"]
    assert find["input"] == {"type": "object", "properties": {}}
    assert find["output"]["required"] == ["code"]


def test_input_data_is_not_changed() -> None:
    data = tree().data
    before = copy.deepcopy(data)
    once = expand_shorthand(data)
    assert data == before
    assert expand_shorthand(once) is once


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("/endpoints/0/input/properties/room", "room (int)"),
        ("/endpoints/0/input/properties/room/type", "room (int)"),
        ("/endpoints/0/input/properties/late", "late"),
        ("/endpoints/0/input/required/2", "late"),
        ("/endpoints/0/input/properties/note", "note (string)"),
        ("/endpoints/0/output/properties/rooms", "[array]"),
        ("/endpoints/0/method", "BOOK"),
        ("/endpoints/1/output/required/0", "code"),
        ("/endpoints/1/input/type", "object"),
    ],
)
def test_part_of_a_schema_has_the_place_of_its_short_form(at: str, value: str) -> None:
    parsed = tree()
    expand_tree(parsed)
    span = parsed.value_span(at)
    assert span is not None
    assert TEXT[span.start : span.end] == value


def test_an_error_and_a_missing_field_have_places_too() -> None:
    parsed = tree()
    expand_tree(parsed)
    assert str(parsed.locate("/endpoints/0/errors/1", key=True)) == "x.agis:9:20"
    assert str(parsed.locate("/endpoints/0/input/properties/none")) == "x.agis:4:5"


def test_expanding_a_tree_twice_loses_no_place() -> None:
    parsed = tree()
    expand_tree(parsed)
    before = parsed.locate("/endpoints/0/input/properties/late")
    expand_tree(parsed)
    assert parsed.locate("/endpoints/0/input/properties/late") == before


def test_only_shorthand_is_expanded() -> None:
    parsed = tree()
    assert not parsed.is_made("/endpoints/0/input/required")
    expand_tree(parsed)
    assert parsed.is_made("/endpoints/0/input/required")
    assert parsed.is_made("/endpoints/0/input")
    assert not parsed.is_made("/endpoints/0")
    assert not parsed.is_made("/endpoints/1/input")


@pytest.mark.parametrize("data", [None, [], "text", {"endpoints": {}}, {"endpoints": [1, None]}, {}])
def test_other_data_is_unchanged(data: object) -> None:
    assert expand_shorthand(data) is data
