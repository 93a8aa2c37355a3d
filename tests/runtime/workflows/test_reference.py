"""References take values from what earlier steps returned, and lead nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.workflows.spec import check_references, resolve

OUTPUTS = {"search": {"items": [{"id": 7}, {"id": 8}], "a b": 1}, "1": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [("search.items[1].id", 8), ("search.items[0]", {"id": 7}), ("search.a b", 1), ("1", None)],
)
def test_a_reference_is_replaced_wherever_it_stands(path: str, value: object) -> None:
    parameters = {"deep": [{"x": {"$from": path}}], "plain": "$from"}
    assert check_references(parameters, OUTPUTS) is None
    assert resolve(parameters, OUTPUTS) == {"deep": [{"x": value}], "plain": "$from"}


@pytest.mark.parametrize("path", ["search.items[2].id", "search.items.id", "search.none", "1.x", "search[0]"])
def test_a_reference_that_leads_nowhere_is_a_fault(path: str) -> None:
    assert isinstance(resolve([{"x": {"$from": path}}], OUTPUTS), Fault)


@pytest.mark.parametrize("value", [{"$from": 3}, {"$from": "later"}, {"$from": "a..b"}, {"$from": "search", "x": 1}])
def test_a_reference_that_is_not_valid_is_reported(value: dict[str, object]) -> None:
    assert check_references({"x": value}, ("search",)) is not None


def test_nesting_is_bounded() -> None:
    value: object = 1
    for _ in range(40):
        value = [value]
    assert "nested more than" in str(check_references(value, ()))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_values_without_references_stay_as_they_are(value: object) -> None:
    if "$from" not in repr(value):
        assert resolve(value, {}) == value
