"""Conditions compare values of one kind, and hold for nothing where nothing is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.monitors.conditions import MISSING, find_fault, find_member, holds

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("gold", "gold", True),
        ("gold", "silver", False),
        (2, 2.0, True),
        ({"gte": 2, "lt": 5}, 3, True),
        ({"gte": 2, "lt": 5}, 5, False),
        ({"gte": 2}, "3", False),
        ({"in": ["a", "b"]}, "b", True),
        ({"contains": "b"}, ["a", "b"], True),
        ({"ne": 1}, MISSING, False),
    ],
)
def test_a_condition_holds(condition: Any, value: Any, expected: bool) -> None:
    assert find_fault(condition) is None
    assert holds(condition, value) is expected


@pytest.mark.parametrize("condition", [{}, {"near": 1}, {"lt": 1, "x": 2}, {"in": 7}])
def test_what_is_not_a_condition_is_found(condition: Any) -> None:
    assert find_fault(condition)


@given(json, json)
def test_any_condition_is_tested_or_has_a_fault(condition: Any, value: Any) -> None:
    if find_fault(condition) is None:
        assert holds(condition, value) in (True, False)


@given(json, st.text())
def test_any_path_leads_somewhere_or_nowhere(value: Any, path: str) -> None:
    find_member(value, path)


def test_a_path_follows_members_and_positions() -> None:
    value = {"rooms": [{"price": 7}], "a": None}
    assert (find_member(value, "rooms.0.price"), find_member(value, "a")) == (7, None)
    for path in ("rooms.1", "rooms.-1", "rooms.0.price.x", "", "rooms.²", "rooms." + "9" * 50):
        assert find_member(value, path) is MISSING
