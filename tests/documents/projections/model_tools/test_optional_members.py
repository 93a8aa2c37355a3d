"""Optional members and null."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.projections.model_tools.passes import join_null, note_optional, require_all
from bespeak.documents.projections.model_tools.schema import ONE, OPTIONAL, UNFIT

TEXT, NULL = {"type": "string"}, {"type": "null"}


def test_an_optional_member_is_required_and_may_be_null() -> None:
    node = {"type": "object", "properties": {"a": TEXT, "b": {**TEXT, "description": "B."}}, "required": ["a"]}
    assert require_all(node, {}) == {
        "type": "object",
        "properties": {"a": TEXT, "b": {"anyOf": [TEXT, NULL], "description": "B."}},
        "required": ["a", "b"],
        OPTIONAL: ["b"],
    }


def test_a_union_gets_null_as_one_more_alternative() -> None:
    union = {"anyOf": [TEXT, {"type": "integer"}], ONE: True}
    made = require_all({"type": "object", "properties": {"a": union}}, {})
    assert made["properties"]["a"] == {"anyOf": [*union["anyOf"], NULL], ONE: True}


@pytest.mark.parametrize(("texts", "unfit"), [({"default": None}, False), ({"default": "x"}, True), ({}, True)])
def test_null_stands_for_a_missing_member_only_if_it_is_the_default(texts: dict[str, Any], unfit: bool) -> None:
    node = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NULL], **texts}}}
    made = require_all(node, {})
    assert (UNFIT in made["properties"]["a"]) is unfit


def test_where_members_stay_optional_a_null_that_is_no_value_is_tolerated() -> None:
    node = {"type": "object", "properties": {"a": TEXT, "b": {"anyOf": [TEXT, NULL]}, "c": TEXT}, "required": ["c"]}
    assert note_optional(node, {}) == {**node, OPTIONAL: ["a"]}


@pytest.mark.parametrize(
    ("node", "made"),
    [
        ({"anyOf": [TEXT, NULL], "description": "x"}, {"type": ["string", "null"], "description": "x"}),
        ({"anyOf": [NULL, {"type": "integer"}]}, {"type": ["integer", "null"]}),
        ({"anyOf": [NULL, {"type": "object", "properties": {}}]}, None),
        ({"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}, None),
        ({"anyOf": [{"$ref": "#/$defs/A"}, NULL]}, None),
        ({"anyOf": [TEXT, {"type": "integer"}, NULL]}, None),
    ],
)
def test_a_union_with_null_becomes_a_list_of_types(node: dict[str, Any], made: dict[str, Any] | None) -> None:
    assert join_null(node, {}) == (made or node)
