"""References take values from what earlier steps returned, and lead nowhere else."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.extensions.workflows.spec import Spec, StepSpec, check_references, decode, encode, repeat_commands, resolve
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.commands.steps import JournalSteps, StepRow

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


SPEC = Spec(
    method="CHAIN",
    steps=(StepSpec("BOOK"), StepSpec("PAY")),
    authority=Authority("a" * 64, (), {}),
    deadline=1060.0,
)
RECORD = Record(
    "chain-1", "workflow", "a" * 64, None, "failed", 3, encode(SPEC).decode(), 1000.0, 1001.0, None, 2, 1e15
)
DONE, BROKEN = StepRow(1, 1, "done", 200, "{}"), StepRow(2, 1, "failed", 500, "{}")


def test_only_failed_steps_are_tried_again() -> None:
    before = time.time()
    commands = repeat_commands(RECORD, (DONE, BROKEN))
    assert isinstance(commands, tuple)
    change, journal = commands
    assert isinstance(change, ChangeRecord)
    assert isinstance(journal, JournalSteps)
    assert journal.rows == (msgspec.structs.replace(BROKEN, state="pending"),)
    assert decode(change.data or "").deadline >= before + 60.0


def test_a_workflow_whose_steps_were_undone_is_not_repeated() -> None:
    undone = msgspec.structs.replace(DONE, state="undone")
    assert repeat_commands(RECORD, (undone, BROKEN)) == "steps of chain-1 have been undone"
