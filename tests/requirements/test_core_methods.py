"""Floor methods with state (core 4.8 to 4.11): their requirements and their limits."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import pytest
from tests.runtime.methods.test_delegate import FIRST, SECOND, THIRD, granted, served, wish
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import keeping

from bespeak.state.identity.key_text import generate_key
from bespeak.state.store.commands.cases import ReadCase

pytestmark = pytest.mark.anyio

DESK = "d" * 64
GIVEN: dict[str, dict[str, Any]] = {
    "DELEGATE": {
        "target_agent_id": DESK,
        "task": "book",
        "authority_scope": "booking:room",
        "delegation_token": "issue",
    },
    "ESCALATE": {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 12}},
    "CONFIRM": {"target_id": "esc-1", "status": "accepted"},
    "SUSPEND": {"session_id": "s-1"},
}


@pytest.mark.requirement("CORE-4.8-1", "CORE-4.9-1", "CORE-4.10-1", "CORE-4.11-1")
@pytest.mark.parametrize(("method", "name"), [(method, name) for method, given in GIVEN.items() for name in given])
async def test_a_call_without_a_parameter_it_must_have_is_422(method: str, name: str) -> None:
    async with keeping() as bench:
        less = {key: value for key, value in GIVEN[method].items() if key != name}
        reply = await bench.send(method, "/", less)
        assert (reply.status, name in str(reply.error)) == (422, True)
        whole = await bench.send(method, "/", GIVEN[method])
        assert whole.status != 422


@pytest.mark.requirement("CORE-4.9-2", "CORE-4.10-2")
@pytest.mark.parametrize(
    ("method", "member", "value"),
    [
        ("ESCALATE", "reason", "tired"),
        ("ESCALATE", "priority", "whenever"),
        ("CONFIRM", "status", "maybe"),
        ("SUSPEND", "reason", "tired"),
    ],
)
async def test_a_word_that_the_draft_does_not_have_is_422(method: str, member: str, value: str) -> None:
    async with keeping() as bench:
        reply = await bench.send(method, "/", {**GIVEN[method], member: value})
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")


async def test_an_escalated_task_waits_for_a_confirmation() -> None:
    async with keeping() as bench:
        asked = (await bench.send("ESCALATE", "/", {**GIVEN["ESCALATE"], "recipient": DESK})).json["result"]
        assert (asked["status"], asked["task_paused"]) == ("pending", True)
        answer = {"target_id": asked["escalation_id"], "status": "deferred", "reason": "later"}
        assert (await bench.send("CONFIRM", "/", answer, agent=DESK)).status == 200
        again = (await bench.send("ESCALATE", "/", {**GIVEN["ESCALATE"], "recipient": DESK})).json["result"]
        assert (again["escalation_id"], again["status"]) == (asked["escalation_id"], "deferred")
        resolved = await bench.send("CONFIRM", "/", {**answer, "status": "accepted"}, agent=DESK)
        assert resolved.json["result"]["attestation_id"]
        assert (await bench.store.read(ReadCase(asked["escalation_id"]))).state == "accepted"


@pytest.mark.requirement("CORE-4.11-7")
async def test_a_suspended_session_does_not_suspend_the_agent() -> None:
    session, other = secrets.token_hex(16), secrets.token_hex(16)
    async with keeping(make_endpoint("FETCH", "/menu", echo)) as bench:
        assert (await bench.send("FETCH", "/menu", session_id=session)).status == 200
        assert (await bench.send("SUSPEND", "/", {"session_id": session})).status == 200
        assert (await bench.send("FETCH", "/menu", session_id=session)).status == 409
        assert (await bench.send("FETCH", "/menu", session_id=other)).status == 200
        assert (await bench.send("FETCH", "/menu", agent=AGENT)).status == 200


@pytest.mark.requirement("CORE-7.6-3")
async def test_each_hop_of_a_chain_in_use_is_logged_and_no_token_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with served(generate_key()) as bench:
            first = await granted(bench, wish(scope="booking:*", depth=1))
            second = await granted(bench, wish(THIRD), SECOND, delegation_chain=first["delegation_chain"])
            for _ in range(3):
                reply = await bench.send("BOOK", "/room", agent=THIRD, delegation_chain=second["delegation_chain"])
                assert reply.status == 200
    lines = [record.getMessage() for record in caplog.records]
    for delegator, delegate, scope in ((FIRST, SECOND, "booking:*"), (SECOND, THIRD, "booking:room")):
        assert len([line for line in lines if delegator in line and delegate in line and scope in line]) == 1
    for grant in (first, second):
        assert grant["delegation_token"] not in caplog.text
