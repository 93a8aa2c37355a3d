"""The caller of a request: what its tasks belong to, and what it is told."""

from __future__ import annotations

import pytest
from tests.service import AGENT, build

from bespeak.faces.a2a.calls import Caller
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call


def caller(principal: Principal) -> Caller:
    call = Call(Request("DISCOVER", "/", "", {}, b"", Connection(address="192.0.2.7")), build().server)
    call.principal = principal
    return Caller(None, call)


@pytest.mark.parametrize(
    ("principal", "owner", "known"),
    [(Principal(agent_id=AGENT), AGENT, True), (ANONYMOUS, "anonymous 192.0.2.7", False)],
)
def test_tasks_belong_to_the_agent_or_to_an_address(principal: Principal, owner: str, known: bool) -> None:
    found = caller(principal)
    assert (found.owner, found.is_known) == (owner, known)


def test_everyone_behind_a_call_is_a_party() -> None:
    assert {AGENT, "acme"} <= set(caller(Principal(agent_id=AGENT, principal_id="acme")).parties)


def test_a_refusal_is_noted_for_http() -> None:
    found = caller(ANONYMOUS)
    refused = Refused(429, "rate-limited", "Slowly.")
    assert str(found.refuse(refused)) == "Slowly."
    assert found.refused is refused
