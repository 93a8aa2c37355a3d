"""Stored workflows: their authority, and references to what earlier steps returned."""

from __future__ import annotations

import re
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.extensions.workflows.journal import StepError
from bespeak.extensions.workflows.spec import (
    Spec,
    StepSpec,
    check_references,
    decode,
    encode,
    repeat_commands,
    resolve,
)
from bespeak.extensions.workflows.store import JournalSteps, StepRow
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus
from bespeak.state.store.commands.records import ChangeRecord, Record

pytestmark = pytest.mark.anyio

AUTHORITY = Authority(agent_id=AGENT, scopes=("a:b",), headers={"task-id": "t"}, verified="token", expires=4e9)


def test_a_spec_is_stored_unchanged_and_its_nesting_bounded() -> None:
    spec = Spec(method="CHAIN", steps=(StepSpec("BOOK", "/x", {"a": 1}, "n"),), authority=AUTHORITY, deadline=5.0)
    assert decode(encode(spec)) == spec
    assert spec.authority.headers == {"task-id": "t"}
    value: object = 1
    for _ in range(40):
        value = [value]
    assert "nested more than" in str(check_references(value, ()))


async def test_the_restored_call_has_the_authority_of_the_caller() -> None:
    async with keeping(make_endpoint("BOOK", "/rooms", dict), methods=("CHAIN",)) as bench:
        call = restore_call(AUTHORITY, bench.bench.server, "CHAIN")
        assert isinstance(call, RoutedCall)
        assert (call.agent_id, list(call.principal.scopes), call.principal.verified) == (AGENT, ["a:b"], "token")
        assert Authority.of(call.principal, call.request) == AUTHORITY


async def test_an_agent_that_was_suspended_since_does_not_act_any_more() -> None:
    async with keeping(make_endpoint("BOOK", "/rooms", dict), methods=("CHAIN",)) as bench:
        document = f'{{"agent_id": "{AGENT}", "name": "porter"}}'
        await bench.store.do(PutAgent(AGENT, "porter", "active", document, "operator"))
        await bench.store.do(SetAgentStatus(AGENT, "DEACTIVATE", frozenset({"active"}), "suspended", "operator", ""))
        await bench.bench.server.agents.follow(bench.store)
        assert isinstance(restore_call(AUTHORITY, bench.bench.server, "CHAIN"), Refused)


async def test_disabled_methods_and_undone_workflows_do_not_go_on() -> None:
    async with keeping(make_endpoint("BOOK", "/rooms", dict), methods=("CHAIN",)) as bench:
        assert isinstance(restore_call(AUTHORITY, bench.bench.server, "RUN"), Refused)
    undone = msgspec.structs.replace(DONE, state="undone")
    assert repeat_commands(RECORD, (undone, BROKEN)) == "steps of chain-1 have been undone"


def test_the_path_of_a_step_may_name_its_parameters() -> None:
    step = StepSpec("FETCH", "/rooms/{room}/{part}", {"room": {"$from": "1"}})
    assert step.sought == "/rooms/-/{part}"


OUTPUTS = {"search": {"items": [{"id": 7}, {"id": 8}], "a b": 1}, "1": None}


@pytest.mark.parametrize(
    ("path", "value"), [("search.items[1].id", 8), ("search.items[0]", {"id": 7}), ("search.a b", 1), ("1", None)]
)
def test_a_reference_is_replaced_wherever_it_stands(path: str, value: object) -> None:
    parameters = {"deep": [{"x": {"$from": path}}], "plain": "$from"}
    assert check_references(parameters, OUTPUTS) is None
    assert resolve(parameters, OUTPUTS) == {"deep": [{"x": value}], "plain": "$from"}


@pytest.mark.parametrize("path", ["search.items[2].id", "search.items.id", "search.none", "1.x", "search[0]"])
def test_a_reference_that_leads_nowhere_is_a_fault(path: str) -> None:
    with pytest.raises(StepError, match=re.escape(path)):
        resolve([{"x": {"$from": path}}], OUTPUTS)


@pytest.mark.parametrize("value", [{"$from": 3}, {"$from": "later"}, {"$from": "a..b"}, {"$from": "search", "x": 1}])
def test_a_reference_that_is_not_valid_is_reported(value: dict[str, object]) -> None:
    assert check_references({"x": value}, ("search",)) is not None


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_values_without_references_stay_as_they_are(value: object) -> None:
    if "$from" not in repr(value):
        assert resolve(value, {}) == value


SPEC = Spec(
    method="CHAIN", steps=(StepSpec("BOOK"), StepSpec("PAY")), authority=Authority("a" * 64, (), {}), deadline=1060.0
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
