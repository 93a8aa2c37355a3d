"""Pruning of JSON data by a closed schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.validation import Pruner

TEXT = {"type": "string"}
USER = {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "additionalProperties": False}
ADMIN = {
    "type": "object",
    "properties": {"name": TEXT, "rights": TEXT},
    "required": ["name", "rights"],
    "additionalProperties": False,
}
ROW = {"name": "Ada", "key": 1}


@pytest.mark.parametrize(
    ("schema", "value", "kept", "dropped"),
    [
        (USER, ROW, {"name": "Ada"}, {"key"}),
        ({"type": "object"}, ROW, ROW, set()),
        ({**USER, "additionalProperties": True}, ROW, ROW, set()),
        ({"type": "array", "items": USER}, [ROW, ROW], [{"name": "Ada"}] * 2, {"key"}),
        ({"type": "array", "items": USER}, (ROW,), [{"name": "Ada"}], {"key"}),
        ({"prefixItems": [USER], "items": False}, [ROW, 1], [{"name": "Ada"}], {"key", "[1]"}),
        ({"additionalProperties": USER}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
        ({"patternProperties": {"^x": USER}}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
        ({"patternProperties": {"^x": USER, "^y": ADMIN}}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
        ({"anyOf": [USER, ADMIN]}, {**ROW, "rights": "all"}, {"name": "Ada", "rights": "all"}, {"key"}),
        ({"oneOf": [USER, ADMIN]}, {**ROW, "rights": 1}, {"name": "Ada"}, {"key", "rights"}),
        ({"anyOf": [USER, {"type": "null"}]}, {"key": 1}, {"key": 1}, set()),
        ({"anyOf": [{"type": "array", "items": USER}, USER]}, [ROW], [{"name": "Ada"}], {"key"}),
        ({"anyOf": [True, USER]}, ROW, ROW, set()),
        ({"$ref": "#/$defs/User", "$defs": {"User": USER}}, ROW, {"name": "Ada"}, {"key"}),
        ({"$ref": "#/$defs/Lost", "$defs": {}}, ROW, ROW, set()),
    ],
)
def test_fields_that_the_schema_refuses_are_dropped_and_named(
    schema: dict[str, Any], value: Any, kept: Any, dropped: set[str]
) -> None:
    assert Pruner(schema).prune(value) == (kept, dropped)


_JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["name", "left", "key"]), part),
    max_leaves=20,
)
_NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": TEXT, "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "additionalProperties": False,
}


@given(_JSON)
def test_any_data_ends_in_data_that_is_valid_or_was_not_valid_before(value: Any) -> None:
    pruner = Pruner({"$ref": "#/$defs/Node", "$defs": {"Node": _NODE}})
    kept, dropped = pruner.prune(value)
    assert dropped <= {"key"}
    assert not isinstance(kept, dict) or "key" not in kept
    assert pruner.prune(kept) == (kept, frozenset())
