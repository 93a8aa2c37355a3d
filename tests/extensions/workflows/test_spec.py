"""A stored workflow acts with the authority that its caller had, or less."""

from __future__ import annotations

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.extensions.workflows.spec import Spec, StepSpec, decode, encode, restore_call
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus

pytestmark = pytest.mark.anyio

AUTHORITY = Authority(agent_id=AGENT, scopes=("a:b",), headers={"task-id": "t"}, verified="token", expires=4e9)


def test_a_spec_is_stored_and_read_unchanged() -> None:
    spec = Spec(method="CHAIN", steps=(StepSpec("BOOK", "/x", {"a": 1}, "n"),), authority=AUTHORITY, deadline=5.0)
    assert decode(encode(spec)) == spec
    assert (spec.name_of(1), spec.authority.headers) == ("n", {"task-id": "t"})


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


async def test_a_workflow_of_a_method_that_was_disabled_does_not_go_on() -> None:
    async with keeping(make_endpoint("BOOK", "/rooms", dict), methods=("CHAIN",)) as bench:
        assert isinstance(restore_call(AUTHORITY, bench.bench.server, "RUN"), Refused)


def test_the_path_of_a_step_may_name_its_parameters() -> None:
    step = StepSpec("FETCH", "/rooms/{room}/{part}", {"room": {"$from": "1"}})
    assert step.sought == "/rooms/-/{part}"
    assert step.path_for({"room": "a b", "part": 7}) == "/rooms/a%20b/7"
    assert StepSpec("FETCH", "/rooms/12").path_for({"room": "x"}) == "/rooms/12"
