"""Alternatives that a value can meet at the same time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.projections.model_tools.passes import (
    Mark,
    ToolSchema,
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

TEXT, COUNT, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def thing(*names: str, kind: str | None = None, **marks: Any) -> dict[str, Any]:
    properties: dict[str, Any] = dict.fromkeys(names, TEXT)
    if kind is not None:
        properties["kind"] = {"type": "string", "enum": [kind]}
    return {"type": "object", "properties": properties, "required": list(properties), **marks}


@rows(
    "options, ambiguous",
    ([thing("a", "b", **{Mark.OPTIONAL: ["a"]}), thing("a", "b", **{Mark.OPTIONAL: ["b"]})], True),
    ([thing("a", "b", **{Mark.OPTIONAL: ["a"]}), thing("a", "b", **{Mark.OPTIONAL: ["a"]})], False),
    ([thing("a", **{Mark.OPTIONAL: ["a"]}), thing("a", "b")], False),
    ([thing("a"), thing("a")], False),
    ([{"type": "array", "items": TEXT, Mark.MAP: True}, {"type": "array", "items": TEXT}], True),
    ([{"type": "array", "items": TEXT, Mark.MAP: True}, TEXT], False),
    ([{"$ref": "#/$defs/Changing"}, thing("a")], True),
    ([{"$ref": "#/$defs/Plain"}, thing("a")], False),
)
def test_a_union_is_marked_if_a_value_may_mean_two_things(options: list[Any], ambiguous: bool) -> None:
    definitions = {
        "Changing": thing("a", **{Mark.OPTIONAL: ["a"]}),
        "Plain": {**thing("a"), "properties": {"a": {"$ref": "#/$defs/Other"}}},
        "Other": TEXT,
    }
    made = mark_ambiguous(ToolSchema({"anyOf": options}, definitions))
    assert (Mark.UNFIT in made.root) is ambiguous


PAIR = {
    "type": "object",
    "properties": {"key": {"type": "string"}, "value": COUNT},
    "required": ["key", "value"],
    "additionalProperties": False,
}
SAID = "Pairs of key and value, one for each member."


def test_undeclared_members_become_pairs_or_a_member_with_a_free_name() -> None:
    node = {"type": "object", "additionalProperties": COUNT, "minProperties": 2, "description": "Stock."}
    pairs = {"type": "array", "items": PAIR, "minItems": 2, "description": "Stock."}
    assert list_members(node, {}) == {**pairs, Mark.MAP: True, Mark.SAYS: [SAID]}
    node = {"type": "object", "properties": {"other_members": {}}, "additionalProperties": COUNT}
    made = list_members(node, {})
    assert made[Mark.REST] == "other_members_"
    assert made["properties"]["other_members_"] == {"type": "array", "items": PAIR, Mark.SAYS: [SAID]}
    assert made["required"] == ["other_members_"]


def test_members_by_pattern_are_undeclared_members_with_a_rule_for_keys() -> None:
    node = {"type": "object", "patternProperties": {"^x": COUNT}, "additionalProperties": False}
    assert list_members(node, {})[Mark.SAYS] == [SAID, "Keys match ^x."]
    assert without_patterns(node, {}) == {
        "type": "object",
        "additionalProperties": COUNT,
        Mark.SAYS: ["Keys match ^x."],
    }


@rows(
    "node, unfit",
    ({"type": "object"}, True),
    ({"type": "object", "properties": {}}, True),
    ({"type": "object", "additionalProperties": {}}, True),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {}}, True),
    ({"type": "object", "properties": {"a": {}}}, False),
    ({"type": "object", "additionalProperties": False}, False),
)
def test_members_of_any_kind_cannot_be_listed(node: dict[str, Any], unfit: bool) -> None:
    assert (Mark.UNFIT in list_members(node, {})) is unfit


def test_optional_member_or_union_is_required_and_may_be_null() -> None:
    node = {"type": "object", "properties": {"a": TEXT, "b": {**TEXT, "description": "B."}}, "required": ["a"]}
    properties = {"a": TEXT, "b": {"anyOf": [TEXT, NULL], "description": "B."}}
    made = {"type": "object", "properties": properties, "required": ["a", "b"], Mark.OPTIONAL: ["b"]}
    assert require_all(node, {}) == made
    union = {"anyOf": [TEXT, {"type": "integer"}], Mark.ONE: True}
    made = require_all({"type": "object", "properties": {"a": union}}, {})
    assert made["properties"]["a"] == {"anyOf": [*union["anyOf"], NULL], Mark.ONE: True}


@pytest.mark.parametrize(("texts", "unfit"), [({"default": None}, False), ({"default": "x"}, True), ({}, True)])
def test_null_stands_for_a_missing_member_only_if_it_is_the_default(texts: dict[str, Any], unfit: bool) -> None:
    node = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NULL], **texts}}}
    made = require_all(node, {})
    assert (Mark.UNFIT in made["properties"]["a"]) is unfit


def test_where_members_stay_optional_a_null_that_is_no_value_is_tolerated() -> None:
    properties = {"a": TEXT, "b": {"anyOf": [TEXT, NULL]}, "c": TEXT}
    node = {"type": "object", "properties": properties, "required": ["c"]}
    assert note_optional(node, {}) == {**node, Mark.OPTIONAL: ["a"]}


@rows(
    "node, made",
    ({"anyOf": [TEXT, NULL], "description": "x"}, {"type": ["string", "null"], "description": "x"}),
    ({"anyOf": [NULL, {"type": "integer"}]}, {"type": ["integer", "null"]}),
    ({"anyOf": [NULL, {"type": "object", "properties": {}}]}, None),
    ({"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}, None),
    ({"anyOf": [{"$ref": "#/$defs/A"}, NULL]}, None),
    ({"anyOf": [TEXT, {"type": "integer"}, NULL]}, None),
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


def test_undeclared_arguments_need_the_contract_and_cut_names_stay_apart() -> None:
    assert root({"type": "object", "additionalProperties": {}})["additionalProperties"] == {}
    assert "additionalProperties" not in root({"type": "object", "patternProperties": {"^x": {}}})
    made = root({"type": "object", "properties": {f"{'x' * 70}{number}": {} for number in range(120)}})
    assert len(made["properties"]) == 120
    assert all(NAMES.fullmatch(name) for name in made["properties"])


@pytest.mark.parametrize("node", [{"anyOf": [{"type": "object"}, {"type": "object"}]}, {"type": "string"}])
def test_a_union_is_wrapped(node: dict[str, Any]) -> None:
    made = root(node)
    assert made["properties"] == {"input": node}
    assert (made["required"], made[Mark.WRAPPED]) == (["input"], "input")


def test_arguments_get_names_that_the_provider_takes() -> None:
    parts = {"$top": {}, "top": {}, "filter[name]": {}, "größe": {}, "9": {}, "x" * 70: {}, "": {}, "a.b": {}}
    made = root({"type": "object", "properties": parts, "required": ["$top", "top"]})
    assert list(made["properties"]) == ["top_2", "top", "filter_name", "gr_e", "9", f"{'x' * 64}", "arg", "a.b"]
    assert made["required"] == ["top_2", "top"]
    assert [name for _, name in made[Mark.RENAMED]] == ["$top", "filter[name]", "größe", "x" * 70, ""]
    renamed = root({"type": "object", "properties": {"9": {}, "a.b": {}, "a_b": {}}}, IDENTIFIERS)
    assert list(renamed["properties"]) == ["arg_9", "a_b_2", "a_b"]


ID = {"type": "string", "description": "An id."}
GUEST = {"type": "object", "properties": {"id": {"$ref": "#/$defs/Id", "description": "Mine."}}}
DESCRIBED = {"$ref": "#/$defs/Guest", "description": "Who stays."}


def test_leaf_and_small_definitions_are_copied_and_described_references_become_unions() -> None:
    definitions = {"Id": ID, "Guest": GUEST}
    assert inline_leaves({"$ref": "#/$defs/Id"}, definitions) == ID
    assert inline_leaves({"$ref": "#/$defs/Id", "description": "Mine."}, definitions)["description"] == "Mine."
    assert inline_leaves(DESCRIBED, definitions) == DESCRIBED
    assert wrap_described(DESCRIBED, {}) == {"anyOf": [{"$ref": "#/$defs/Guest"}], "description": "Who stays."}
    assert wrap_described({"$ref": "#/$defs/Guest"}, {}) == {"$ref": "#/$defs/Guest"}
    made = inline_described(ToolSchema({"items": DESCRIBED}, {"Guest": GUEST, "Id": ID})).pruned()
    properties = {"id": {**ID, "description": "Mine."}}
    inner = {"type": "object", "properties": properties, "description": "Who stays."}
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
    node = {
        "type": "string",
        "minLength": 1,
        "maxLength": 3,
        "default": "a",
        "description": "A code",
        Mark.SAYS: ["Said."],
    }
    said = "A code. Said. At most 3 characters. Default: a."
    assert worded(node, {}) == {"type": "string", "minLength": 1, "description": said}


def test_description_stays_as_written_and_is_bounded() -> None:
    node = {"type": "string", "description": " As written "}
    assert wording(lambda *_: True)(node, {}) == node
    assert len(wording(lambda *_: True)({Mark.SAYS: ["x" * 10_000]}, {})["description"]) == 2_000


def test_alternatives_that_exclude_each_other_are_announced_only_if_they_overlap() -> None:
    worded = wording(lambda *_: True)
    assert "description" not in worded({"anyOf": [TEXT, COUNT], Mark.ONE: True}, {})
    assert (
        "Exactly one"
        in worded({"anyOf": [TEXT, {"type": "string", "maxLength": 2}], Mark.ONE: True}, {})["description"]
    )


DAY = {"type": "string", "description": "First day."}
MANY = {"$ref": "#/$defs/Count"}
DEFINITIONS = {"Count": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}


def test_lists_describe_their_items_and_positions_become_a_union() -> None:
    assert describe_items({"type": "array"}, {}) == {"type": "array", "items": {}}
    assert describe_items({"type": "array", "prefixItems": [DAY]}, {}) == {"type": "array", "prefixItems": [DAY]}
    assert describe_items({"type": "object"}, {}) == {"type": "object"}
    made = join_positions({"type": "array", "prefixItems": [DAY, MANY, DAY], "maxItems": 3}, DEFINITIONS)
    said = "The items are, in this order: string (First day), integer or null, string (First day)."
    assert made == {"type": "array", "items": {"anyOf": [DAY, MANY]}, "maxItems": 3, Mark.SAYS: [said]}
    assert join_positions({"type": "array", "prefixItems": [DAY]}, {})["items"] == {}
    assert join_positions({"type": "array", "prefixItems": [DAY], "items": DAY}, {})["items"] == DAY
