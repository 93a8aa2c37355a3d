"""Calls that must be confirmed: requested once, confirmed by another agent, run exactly as confirmed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.confirmations import MOST_SUBJECT, Confirmations, call_digest
from bespeak.state.store.commands.cases import KINDS, DecideCase, OpenCase, ReadCase, UseCase
from bespeak.state.store.settings import CaseSettings, open_store
from bespeak.state.store.store import Command, Conflict, Store

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible", properties={"guest": {"type": "string"}})
POLICIES = Policies(confirm_irreversible=True)
SERVER = build(BOOK, policies=POLICIES).server


def booking(guest: str = "g", agent: str | None = AGENT, confirmation: str | None = None, **headers: str) -> RoutedCall:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if confirmation is not None:
        given["confirmation-id"] = confirmation
    call = Call(Request("BOOK", "/room", "", given, b"", Connection()), SERVER)
    call.principal = Principal(agent_id=agent, principal_id="Acme")
    routed = RoutedCall(call, SERVER.routes.direct["/room"]["BOOK"])
    routed.input = {"guest": guest}
    return routed


async def admit(store: Store, call: RoutedCall, settings: CaseSettings | None = None) -> Refused | None:
    """Do what the settlement does."""
    confirmations = Confirmations(settings or CaseSettings())
    asked = confirmations.ask(call)
    if not isinstance(asked, Command):
        return asked
    done = await store.do(asked)
    return confirmations.judge(call, done if isinstance(done, Conflict) else done[0])


async def code(store: Store, call: RoutedCall) -> tuple[int, str]:
    refused = await admit(store, call)
    assert refused is not None
    return refused.status, refused.code


async def pending(store: Store, **fields: Any) -> str:
    refused = await admit(store, booking(**fields))
    assert refused is not None
    confirmation_id: str = refused.details["confirmation_id"]
    return confirmation_id


async def decide(store: Store, case_id: str, status: str = "accepted", **fields: Any) -> None:
    done = await store.do(DecideCase(case_id, status, "operator:desk", "att-1", kinds=KINDS, **fields))
    assert not isinstance(done, Conflict)


@rows(
    "confirm, policy, impact, needed",
    (None, False, "irreversible", False),
    (None, True, "irreversible", True),
    (None, True, "reversible", False),
    (True, False, "informational", True),
    (False, True, "irreversible", False),
)
def test_endpoint_takes_precedence_over_policy(confirm: bool | None, policy: bool, impact: str, needed: bool) -> None:
    endpoint = replace(make_endpoint("BOOK", "/room", echo, impact=impact), confirm=confirm)
    assert needs_confirmation(endpoint, Policies(confirm_irreversible=policy)) is needed


def test_deciding_needs_no_decision() -> None:
    confirm = SERVER.routes.endpoints["CONFIRM", "/"]
    assert confirm.semantic.impact == "irreversible"
    assert not needs_confirmation(confirm, POLICIES)


async def test_a_call_that_needs_none_passes(store: Store) -> None:
    call = booking()
    call.route = build(BOOK).routes.direct["/room"]["BOOK"]
    assert await admit(store, call) is None


async def test_a_call_without_confirmation_is_262_with_the_next_step(store: Store) -> None:
    refused = await admit(store, booking(task_id="t-1"), CaseSettings(default_recipient="desk", confirmation=60))
    assert (refused.status, refused.code) == (262, "confirmation-required")
    details = refused.details
    assert (details["type"], details["routed_to"]) == ("confirmation-required", "desk")
    assert details["digest"] == "sha-256:" + call_digest(AGENT, "BOOK", "/room", {"guest": "g"})
    assert details["expires"].endswith("Z")
    case = await store.read(ReadCase(details["confirmation_id"]))
    assert (case.kind, case.agent_id, case.state) == ("confirmation", AGENT, "pending")
    assert case.expires - case.created == pytest.approx(60, abs=1)
    assert '"guest":"g"' in case.subject
    assert '"task_id":"t-1"' in case.subject


async def test_the_same_call_gets_the_same_confirmation_and_another_call_another(store: Store) -> None:
    first = await pending(store)
    assert await pending(store) == first
    assert await pending(store, guest="h") != first
    assert await pending(store, agent=OTHER) != first
    assert await pending(store, agent=None) != first


async def test_a_confirmed_call_runs_once_and_exactly_as_confirmed(store: Store) -> None:
    case_id = await pending(store)
    waiting = await admit(store, booking(confirmation=case_id))
    assert (waiting.status, waiting.details["confirmation_status"]) == (262, "pending")
    await decide(store, case_id)
    confirmed = await admit(store, booking())
    assert (confirmed.details["confirmation_id"], confirmed.details["confirmation_status"]) == (case_id, "accepted")
    assert await code(store, booking("h", confirmation=case_id)) == (409, "confirmation-differs")
    assert await admit(store, booking(confirmation=case_id)) is None
    assert await code(store, booking(confirmation=case_id)) == (409, "confirmation-used")
    assert await pending(store) != case_id


async def test_a_call_is_confirmed_in_the_name_it_was_shown_in(store: Store) -> None:
    def acting_for(*delegators: str, confirmation: str | None = None) -> Call:
        call = booking(confirmation=confirmation)
        call.principal = Principal(agent_id=AGENT, delegators=delegators)
        return call

    refused = await admit(store, acting_for(OTHER))
    case_id = refused.details["confirmation_id"]
    await decide(store, case_id)
    for call in (acting_for(confirmation=case_id), acting_for("d" * 64, OTHER, confirmation=case_id)):
        assert await code(store, call) == (409, "confirmation-differs")
    assert await admit(store, acting_for(OTHER, confirmation=case_id)) is None


async def test_the_confirmation_of_another_agent_is_as_if_it_were_not_there(store: Store) -> None:
    case_id = await pending(store)
    await decide(store, case_id)
    for call in (booking(agent=OTHER, confirmation=case_id), booking(confirmation="conf-0")):
        assert await code(store, call) == (404, "confirmation-not-found")


async def test_a_rejected_call_gets_the_reason(store: Store) -> None:
    case_id = await pending(store)
    await decide(store, case_id, "rejected", reason="too dear")
    refused = await admit(store, booking(confirmation=case_id))
    assert (refused.status, refused.code, refused.details["reason"]) == (403, "confirmation-rejected", "too dear")


async def test_a_late_confirmation_is_408(store: Store) -> None:
    digest = call_digest(AGENT, "BOOK", "/room", {"guest": "g"})
    await store.do(OpenCase("conf-1", "confirmation", AGENT, "desk", digest, "{}", lifetime=0.0))
    assert await code(store, booking(confirmation="conf-1")) == (408, "confirmation-expired")


@pytest.mark.parametrize("text", ["", "a b", "x" * 129, "é"])
def test_an_invalid_confirmation_id_is_refused_without_the_store(text: str) -> None:
    refused = Confirmations(CaseSettings()).ask(booking(confirmation=text))
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (400, "invalid-confirmation-id")


def test_nothing_is_confirmed_without_a_store_or_if_too_large() -> None:
    refused = Confirmations(CaseSettings()).ask(booking("x" * MOST_SUBJECT))
    assert isinstance(refused, Refused)
    assert refused.status == 413
    assert isinstance(Confirmations(CaseSettings()).ask(booking(confirmation="c")), UseCase)
    bench = build(BOOK, policies=POLICIES)
    for headers in ({}, {"confirmation-id": "conf-1"}):
        assert bench.send("BOOK", "/room", {"guest": "g"}, **headers).refusal == (501, "not-implemented")
    assert build(BOOK).send("BOOK", "/room", {"guest": "g"}).status == 200


@given(st.dictionaries(st.text(alphabet="abc"), st.integers() | st.text(alphabet="xyz") | st.booleans()))
def test_the_digest_does_not_depend_on_the_order_of_members_and_on_everything_else(given: dict[str, Any]) -> None:
    backwards = dict(reversed(given.items()))
    digest = call_digest(AGENT, "BOOK", "/room", given)
    assert call_digest(AGENT, "BOOK", "/room", backwards) == digest
    others = [(OTHER, "BOOK", "/room", given), (AGENT, "BUY", "/room", given), (AGENT, "BOOK", "/suite", given)]
    assert digest not in [call_digest(*other) for other in others]
    assert call_digest(AGENT, "BOOK", "/room", {**given, "more": 1}) != digest


async def test_a_call_is_confirmed_over_the_wire_and_runs_once_after_a_restart(tmp_path: Path) -> None:
    place, guests = str(tmp_path / "store.db"), []
    desk = "d" * 64
    document = ServerDocument(cases=CaseSettings(default_recipient=desk))

    def book(guest: str) -> dict[str, Any]:
        guests.append(guest)
        return {}

    given: dict[str, Any] = {"properties": {"guest": {"type": "string"}}, "required": ("guest",)}
    endpoint = make_endpoint("BOOK", "/room", book, impact="irreversible", **given)
    served: dict[str, Any] = {"policies": POLICIES, "document": document}
    async with keeping(endpoint, store=open_store(place, role="sole"), **served) as bench:
        refused = await bench.send("BOOK", "/room", {"guest": "g"})
        assert (refused.status, refused.error["code"]) == (262, "confirmation-required")
        asked = refused.error["confirm_with"]
        own = await bench.send(asked["method"], asked["path"], asked["input"], authority_scope="confirmation:decide")
        assert own.error["code"] == "own-case"
        decided = await bench.send(asked["method"], asked["path"], asked["input"], agent=desk)
        assert decided.json["result"]["status"] == "accepted"
    assert guests == []
    confirmation_id = refused.error["retry_with"]["Confirmation-ID"]
    async with keeping(endpoint, store=open_store(place, role="sole"), **served) as bench:
        other = await bench.send("BOOK", "/room", {"guest": "h"}, confirmation_id=confirmation_id)
        assert other.error["code"] == "confirmation-differs"
        confirmed = {"confirmation_id": confirmation_id, "idempotency_key": "k-1"}
        assert (await bench.send("BOOK", "/room", {"guest": "g"}, **confirmed)).status == 200
        assert (await bench.send("BOOK", "/room", {"guest": "g"}, **confirmed)).status == 200  # the same answer again
        again = await bench.send("BOOK", "/room", {"guest": "g"}, confirmation_id=confirmation_id)
        assert again.error["code"] == "confirmation-used"
    assert guests == ["g"]
