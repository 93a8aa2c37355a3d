"""Alternatives that a value can meet at the same time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bespeak.documents.projections.model_tools.passes import (
    are_disjoint,
    describe_items,
    inline_described,
    inline_leaves,
    join_null,
    join_positions,
    list_members,
    mark_ambiguous,
    note_optional,
    require_all,
    with_root_object,
    without_patterns,
    wording,
    wrap_described,
)
from bespeak.documents.projections.model_tools.schema import (
    MAP,
    ONE,
    OPTIONAL,
    RENAMED,
    REST,
    SAYS,
    UNFIT,
    WRAPPED,
    ToolSchema,
)

TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def thing(*names: str, kind: str | None = None, **marks: Any) -> dict[str, Any]:
    properties: dict[str, Any] = dict.fromkeys(names, TEXT)
    if kind is not None:
        properties["kind"] = {"type": "string", "enum": [kind]}
    return {"type": "object", "properties": properties, "required": list(properties), **marks}


@pytest.mark.parametrize(
    ("options", "disjoint"),
    [
        ([TEXT, COUNT, NULL], True),
        ([COUNT, {"type": "number"}], False),
        ([TEXT, {}], False),
        ([{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}], True),
        ([{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a", "b"]}], False),
        ([thing("a"), thing("a", "b")], True),
        ([thing("a"), {**thing("a", "b"), "required": ["a"]}], False),
        ([{**thing("a"), "additionalProperties": TEXT}, thing("a", "b")], False),
        ([thing("a", kind="x"), thing("a", kind="y")], True),
        ([thing("a"), thing("a")], False),
        ([{"$ref": "#/$defs/A"}, TEXT], True),
        ([{"$ref": "#/$defs/A"}, COUNT], False),
        ([{"type": "array", "items": TEXT}, {"type": "array", "items": COUNT}], False),
    ],
)
def test_types_values_and_members_tell_alternatives_apart(options: list[Any], disjoint: bool) -> None:
    assert are_disjoint(options, {"A": {"anyOf": [COUNT, NULL]}}) is disjoint


def test_more_alternatives_than_can_be_compared_count_as_overlapping() -> None:
    assert not are_disjoint([{"type": "string", "enum": [str(number)]} for number in range(100)], {})


@pytest.mark.parametrize(
    ("options", "ambiguous"),
    [
        ([thing("a", "b", **{OPTIONAL: ["a"]}), thing("a", "b", **{OPTIONAL: ["b"]})], True),
        ([thing("a", "b", **{OPTIONAL: ["a"]}), thing("a", "b", **{OPTIONAL: ["a"]})], False),
        ([thing("a", **{OPTIONAL: ["a"]}), thing("a", "b")], False),
        ([thing("a"), thing("a")], False),
        ([{"type": "array", "items": TEXT, MAP: True}, {"type": "array", "items": TEXT}], True),
        ([{"type": "array", "items": TEXT, MAP: True}, TEXT], False),
        ([{"$ref": "#/$defs/Changing"}, thing("a")], True),
        ([{"$ref": "#/$defs/Plain"}, thing("a")], False),
    ],
)
def test_a_union_is_marked_if_a_value_may_mean_two_things(options: list[Any], ambiguous: bool) -> None:
    definitions = {
        "Changing": thing("a", **{OPTIONAL: ["a"]}),
        "Plain": {**thing("a"), "properties": {"a": {"$ref": "#/$defs/Other"}}},
        "Other": TEXT,
    }
    made = mark_ambiguous(ToolSchema({"anyOf": options}, definitions))
    assert (UNFIT in made.root) is ambiguous


OPEN_MAPS_COUNT = {"type": "integer"}
PAIR = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "value": OPEN_MAPS_COUNT},
    "required": ["key", "value"],
    "additionalProperties": False,
}
SAID = "Pairs of key and value, one for each member."


def test_an_object_of_undeclared_members_becomes_a_list_of_pairs() -> None:
    node = {"type": "object", "additionalProperties": OPEN_MAPS_COUNT, "minProperties": 2, "description": "Stock."}
    assert list_members(node, {}) == {
        "type": "array",
        "items": PAIR,
        "minItems": 2,
        "description": "Stock.",
        MAP: True,
        SAYS: [SAID],
    }


def test_undeclared_members_beside_declared_ones_are_a_member_with_a_free_name() -> None:
    node = {"type": "object", "properties": {"other_members": {}}, "additionalProperties": OPEN_MAPS_COUNT}
    made = list_members(node, {})
    assert made[REST] == "other_members_"
    assert made["properties"]["other_members_"] == {"type": "array", "items": PAIR, SAYS: [SAID]}
    assert made["required"] == ["other_members_"]


def test_members_by_pattern_are_undeclared_members_with_a_rule_for_keys() -> None:
    node = {"type": "object", "patternProperties": {"^x": OPEN_MAPS_COUNT}, "additionalProperties": False}
    assert list_members(node, {})[SAYS] == [SAID, "Keys match ^x."]
    assert without_patterns(node, {}) == {
        "type": "object",
        "additionalProperties": OPEN_MAPS_COUNT,
        SAYS: ["Keys match ^x."],
    }


@pytest.mark.parametrize(
    ("node", "unfit"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "properties": {}}, True),
        ({"type": "object", "additionalProperties": {}}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}, True),
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"type": "object", "additionalProperties": False}, False),
    ],
)
def test_members_of_any_kind_cannot_be_listed(node: dict[str, Any], unfit: bool) -> None:
    assert (UNFIT in list_members(node, {})) is unfit


OPTIONAL_MEMBERS_TEXT, OPTIONAL_MEMBERS_NULL = {"type": "string"}, {"type": "null"}


def test_an_optional_member_is_required_and_may_be_null() -> None:
    node = {
        "type": "object",
        "properties": {"a": OPTIONAL_MEMBERS_TEXT, "b": {**OPTIONAL_MEMBERS_TEXT, "description": "B."}},
        "required": ["a"],
    }
    assert require_all(node, {}) == {
        "type": "object",
        "properties": {
            "a": OPTIONAL_MEMBERS_TEXT,
            "b": {"anyOf": [OPTIONAL_MEMBERS_TEXT, OPTIONAL_MEMBERS_NULL], "description": "B."},
        },
        "required": ["a", "b"],
        OPTIONAL: ["b"],
    }


def test_a_union_gets_null_as_one_more_alternative() -> None:
    union = {"anyOf": [OPTIONAL_MEMBERS_TEXT, {"type": "integer"}], ONE: True}
    made = require_all({"type": "object", "properties": {"a": union}}, {})
    assert made["properties"]["a"] == {"anyOf": [*union["anyOf"], OPTIONAL_MEMBERS_NULL], ONE: True}


@pytest.mark.parametrize(("texts", "unfit"), [({"default": None}, False), ({"default": "x"}, True), ({}, True)])
def test_null_stands_for_a_missing_member_only_if_it_is_the_default(texts: dict[str, Any], unfit: bool) -> None:
    node = {"type": "object", "properties": {"a": {"anyOf": [OPTIONAL_MEMBERS_TEXT, OPTIONAL_MEMBERS_NULL], **texts}}}
    made = require_all(node, {})
    assert (UNFIT in made["properties"]["a"]) is unfit


def test_where_members_stay_optional_a_null_that_is_no_value_is_tolerated() -> None:
    node = {
        "type": "object",
        "properties": {
            "a": OPTIONAL_MEMBERS_TEXT,
            "b": {"anyOf": [OPTIONAL_MEMBERS_TEXT, OPTIONAL_MEMBERS_NULL]},
            "c": OPTIONAL_MEMBERS_TEXT,
        },
        "required": ["c"],
    }
    assert note_optional(node, {}) == {**node, OPTIONAL: ["a"]}


@pytest.mark.parametrize(
    ("node", "made"),
    [
        (
            {"anyOf": [OPTIONAL_MEMBERS_TEXT, OPTIONAL_MEMBERS_NULL], "description": "x"},
            {"type": ["string", "null"], "description": "x"},
        ),
        ({"anyOf": [OPTIONAL_MEMBERS_NULL, {"type": "integer"}]}, {"type": ["integer", "null"]}),
        ({"anyOf": [OPTIONAL_MEMBERS_NULL, {"type": "object", "properties": {}}]}, None),
        ({"anyOf": [{"type": "string", "enum": ["a"]}, OPTIONAL_MEMBERS_NULL]}, None),
        ({"anyOf": [{"$ref": "#/$defs/A"}, OPTIONAL_MEMBERS_NULL]}, None),
        ({"anyOf": [OPTIONAL_MEMBERS_TEXT, {"type": "integer"}, OPTIONAL_MEMBERS_NULL]}, None),
    ],
)
def test_a_union_with_null_becomes_a_list_of_types(node: dict[str, Any], made: dict[str, Any] | None) -> None:
    assert join_null(node, {}) == (made or node)


NAMES = re.compile(r"[A-Za-z0-9_.-]{1,64}")
IDENTIFIERS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def root(node: dict[str, Any], names: re.Pattern[str] = NAMES, **definitions: Any) -> dict[str, Any]:
    return with_root_object(ToolSchema(node, definitions), names).root


@pytest.mark.parametrize("node", [{}, {"type": "object"}, {"$ref": "#/$defs/A"}, {"description": "x", "anyOf": [{}]}])
def test_a_root_that_declares_nothing_takes_no_arguments(node: dict[str, Any]) -> None:
    made = root(node, A={"type": "object"})
    assert (made["type"], made["properties"], made["additionalProperties"]) == ("object", {}, False)


def test_undeclared_arguments_are_taken_if_the_contract_says_so() -> None:
    assert root({"type": "object", "additionalProperties": {}})["additionalProperties"] == {}
    assert "additionalProperties" not in root({"type": "object", "patternProperties": {"^x": {}}})


@pytest.mark.parametrize("node", [{"anyOf": [{"type": "object"}, {"type": "object"}]}, {"type": "string"}])
def test_a_union_is_wrapped(node: dict[str, Any]) -> None:
    made = root(node)
    assert made["properties"] == {"input": node}
    assert (made["required"], made[WRAPPED]) == (["input"], "input")


def test_arguments_get_names_that_the_provider_takes() -> None:
    parts = {"$top": {}, "top": {}, "filter[name]": {}, "größe": {}, "9": {}, "x" * 70: {}, "": {}, "a.b": {}}
    made = root({"type": "object", "properties": parts, "required": ["$top", "top"]})
    assert list(made["properties"]) == ["top_2", "top", "filter_name", "gr_e", "9", f"{'x' * 64}", "arg", "a.b"]
    assert made["required"] == ["top_2", "top"]
    assert [name for _, name in made[RENAMED]] == ["$top", "filter[name]", "größe", "x" * 70, ""]
    renamed = root({"type": "object", "properties": {"9": {}, "a.b": {}, "a_b": {}}}, IDENTIFIERS)
    assert list(renamed["properties"]) == ["arg_9", "a_b_2", "a_b"]


def test_names_that_are_cut_to_the_same_text_stay_apart() -> None:
    made = root({"type": "object", "properties": {f"{'x' * 70}{number}": {} for number in range(120)}})
    assert len(made["properties"]) == 120
    assert all(NAMES.fullmatch(name) for name in made["properties"])


REFERENCES_ALONE_TEXT = {"type": "string", "description": "An id."}
GUEST = {"type": "object", "properties": {"id": {"$ref": "#/$defs/Id", "description": "Mine."}}}
DESCRIBED = {"$ref": "#/$defs/Guest", "description": "Who stays."}


def test_a_definition_without_parts_is_copied_to_where_it_is_used() -> None:
    definitions = {"Id": REFERENCES_ALONE_TEXT, "Guest": GUEST}
    assert inline_leaves({"$ref": "#/$defs/Id"}, definitions) == REFERENCES_ALONE_TEXT
    assert inline_leaves({"$ref": "#/$defs/Id", "description": "Mine."}, definitions)["description"] == "Mine."
    assert inline_leaves(DESCRIBED, definitions) == DESCRIBED


def test_a_described_reference_becomes_a_union_of_one() -> None:
    assert wrap_described(DESCRIBED, {}) == {"anyOf": [{"$ref": "#/$defs/Guest"}], "description": "Who stays."}
    assert wrap_described({"$ref": "#/$defs/Guest"}, {}) == {"$ref": "#/$defs/Guest"}


def test_small_definitions_are_copied_to_where_they_are_described() -> None:
    made = inline_described(ToolSchema({"items": DESCRIBED}, {"Guest": GUEST, "Id": REFERENCES_ALONE_TEXT})).pruned()
    inner = {
        "type": "object",
        "properties": {"id": {**REFERENCES_ALONE_TEXT, "description": "Mine."}},
        "description": "Who stays.",
    }
    assert (made.root, made.definitions) == ({"items": inner}, {})


def test_large_and_recursive_definitions_stay_and_lose_the_description() -> None:
    large: dict[str, Any] = {"properties": {str(number): {} for number in range(200)}}
    circle = {"properties": {"below": {"$ref": "#/$defs/Guest"}}}
    for definition in (large, circle):
        made = inline_described(ToolSchema({"items": DESCRIBED}, {"Guest": definition}))
        assert made.root == {"items": {"$ref": "#/$defs/Guest"}}


def test_copies_of_copies_do_not_multiply() -> None:
    definitions: dict[str, Any] = {"0": {"type": "string"}}
    for number in range(1, 60):
        twice = {"$ref": f"#/$defs/{number - 1}", "description": "x"}
        definitions[str(number)] = {"type": "object", "properties": {"a": twice, "b": twice}}
    made = inline_described(ToolSchema({"$ref": "#/$defs/59"}, definitions)).pruned()
    assert len(repr(made.schema())) < 100_000


def test_keywords_that_are_not_kept_follow_the_description() -> None:
    worded = wording(lambda keyword, _: keyword == "minLength")
    node = {"type": "string", "minLength": 1, "maxLength": 3, "default": "a", "description": "A code", SAYS: ["Said."]}
    assert worded(node, {}) == {
        "type": "string",
        "minLength": 1,
        "description": "A code. Said. At most 3 characters. Default: a.",
    }


def test_a_description_that_needs_no_sentence_stays_as_it_is() -> None:
    node = {"type": "string", "description": " As written "}
    assert wording(lambda *_: True)(node, {}) == node


def test_alternatives_that_exclude_each_other_are_announced_only_if_they_overlap() -> None:
    worded = wording(lambda *_: True)
    text, count = {"type": "string"}, {"type": "integer"}
    assert "description" not in worded({"anyOf": [text, count], ONE: True}, {})
    assert "Exactly one" in worded({"anyOf": [text, {"type": "string", "maxLength": 2}], ONE: True}, {})["description"]


def test_a_description_is_bounded() -> None:
    assert len(wording(lambda *_: True)({SAYS: ["x" * 10_000]}, {})["description"]) == 2_000


DAY = {"type": "string", "description": "First day."}
LIST_ITEMS_COUNT = {"$ref": "#/$defs/Count"}
DEFINITIONS = {"Count": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}


def test_every_list_describes_its_items() -> None:
    assert describe_items({"type": "array"}, {}) == {"type": "array", "items": {}}
    assert describe_items({"type": "array", "prefixItems": [DAY]}, {}) == {"type": "array", "prefixItems": [DAY]}
    assert describe_items({"type": "object"}, {}) == {"type": "object"}


def test_positions_become_a_union_and_a_sentence() -> None:
    made = join_positions({"type": "array", "prefixItems": [DAY, LIST_ITEMS_COUNT, DAY], "maxItems": 3}, DEFINITIONS)
    said = "The items are, in this order: string (First day), integer or null, string (First day)."
    assert made == {"type": "array", "items": {"anyOf": [DAY, LIST_ITEMS_COUNT]}, "maxItems": 3, SAYS: [said]}


def test_items_after_the_positions_may_be_what_the_schema_says() -> None:
    assert join_positions({"type": "array", "prefixItems": [DAY]}, {})["items"] == {}
    assert join_positions({"type": "array", "prefixItems": [DAY], "items": DAY}, {})["items"] == DAY
