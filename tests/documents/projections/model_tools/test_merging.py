"""Schemas in plain form."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools import plain_form
from bespeak.documents.projections.model_tools.plain_form import Merger, TooComplexError, hoist
from bespeak.documents.projections.model_tools.schema import NOTHING, ONE, SAYS, UNFIT

TEXT = {"type": ["string"]}
NUMBER = {"type": ["number"]}


def plain(schema: dict[str, Any]) -> Any:
    raw = hoist(schema)
    made = Merger(raw.definitions).document(raw.root)
    return {key: value for key, value in made.root.items() if key != "$defs"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": 1, "enum": [True, 1.0]}, {"enum": [1.0]}),
        ({"items": True, "additionalProperties": False}, {"items": {}, "additionalProperties": NOTHING}),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": "number"}]}, {"type": ["integer"]}),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, NOTHING),
        ({"allOf": [{"minimum": 1, "maxLength": 4}, {"minimum": 3, "maxLength": 2}]}, {"minimum": 3, "maxLength": 2}),
        ({"allOf": [{"enum": ["a", 1]}, {"enum": [1, "b"]}]}, {"enum": [1]}),
        (
            {"description": "outer", "allOf": [{"type": "string", "description": "inner"}]},
            {**TEXT, "description": "outer"},
        ),
        ({"anyOf": [{"type": "string"}, False]}, TEXT),
        ({"anyOf": [False]}, NOTHING),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [TEXT, NUMBER], ONE: True}),
        (
            {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}]},
            {"anyOf": [TEXT, NUMBER]},
        ),
        ({"type": "no", "enum": "no", "required": 3, "properties": []}, {"type": ["no"]}),
    ],
)
def test_a_schema_becomes_plain(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert plain(schema) == made


def test_objects_in_parts_become_one_object() -> None:
    made = plain(
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"a": {"maxLength": 3}, "b": {"type": "number"}}, "required": ["b"]},
            ]
        }
    )
    assert made == {
        "type": ["object"],
        "properties": {"a": {"type": ["string"], "maxLength": 3}, "b": NUMBER},
        "required": ["a", "b"],
    }


def test_a_closed_part_excludes_the_members_of_the_others() -> None:
    closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    made = plain({"allOf": [closed, {"properties": {"b": {}}}]})
    assert made["properties"] == {"a": {}}
    assert plain({"allOf": [closed, {"properties": {"b": {}}, "required": ["b"]}]}) == NOTHING


def test_unevaluated_members_are_judged_after_the_parts() -> None:
    made = plain({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": False})
    assert made == {"properties": {"b": {}, "a": {}}, "additionalProperties": NOTHING}


def test_keywords_beside_a_union_are_copied_into_it() -> None:
    made = plain(
        {
            "type": "object",
            "properties": {"a": {}},
            "anyOf": [{"properties": {"b": {}}}, {"required": ["a"], "minProperties": 2}],
        }
    )
    assert [option.get("required") for option in made["anyOf"]] == [None, ["a"]]
    assert all(option["type"] == ["object"] and "a" in option["properties"] for option in made["anyOf"])


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"not": {"const": 1}}, 'It also meets this JSON Schema: {"not":{"const":1}}.'),
        ({"dependentRequired": {"a": ["b", "c"]}}, "If a is given, so is b and c."),
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
            "At least one of these must be given: a; b and c.",
        ),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "Exactly one of these must be given: a; b."),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "It matches the pattern b"),
        (
            {"if": {"const": 1}, "then": {"const": 2}},
            'It also meets this JSON Schema: {"if":{"if":{"const":1},"then":{"const":2}}}.',
        ),
    ],
)
def test_what_cannot_be_kept_is_said(schema: dict[str, Any], said: str) -> None:
    assert plain({"type": "object", **schema})[SAYS] == [said]


def test_a_reference_stays_one_unless_something_else_is_said() -> None:
    defs = {"$defs": {"A": {"type": "string", "description": "An A."}}}
    assert plain({"$ref": "#/$defs/A", "description": "Mine.", **defs}) == {"$ref": "#/$defs/A", "description": "Mine."}
    assert plain({"$ref": "#/$defs/A", "minLength": 2, **defs}) == {**TEXT, "minLength": 2, "description": "An A."}


def test_a_reference_that_leads_elsewhere_accepts_everything() -> None:
    assert plain({"$ref": "https://example.com/a.json"}) == {
        UNFIT: "the reference https://example.com/a.json leads nowhere"
    }


@pytest.mark.parametrize(
    "definitions",
    [
        {"A": {"$ref": "#/$defs/A"}},
        {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}},
    ],
)
def test_a_schema_that_is_defined_by_itself_accepts_everything(definitions: dict[str, Any]) -> None:
    raw = hoist({"$ref": "#/$defs/A", "$defs": definitions})
    assert Merger(raw.definitions).document(raw.root).definitions["A"] == {}


def test_recursive_definitions_that_are_merged_come_to_an_end() -> None:
    def tree(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"below": {"$ref": f"#/$defs/{name}"}, name: {"type": "string"}}}

    made = plain({"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": tree("A"), "B": tree("B")}})
    assert made["properties"].keys() == {"below", "A", "B"}
    assert "The service checks further conditions." in str(made)


def test_large_unions_are_not_multiplied() -> None:
    unions = [{"anyOf": [{"type": "object", "properties": {f"{key}{n}": {}}} for n in range(9)]} for key in "ab"]
    made = plain({"allOf": unions})
    assert len(made["anyOf"]) == 9
    assert made[SAYS] == ["The service checks further conditions."]


@pytest.mark.parametrize("limit", ["_MOST_MERGES", "_MOST_NODES"])
def test_a_schema_that_takes_too_much_work_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [{"properties": {f"p{number}": {}, "shared": {"minLength": number}}} for number in range(10)]
    plain({"allOf": parts})
    monkeypatch.setattr(plain_form, limit, 20)
    with pytest.raises(TooComplexError):
        plain({"allOf": parts})
