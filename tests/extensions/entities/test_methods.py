"""Entities, owners, grants, signatures and events of agents, and how they are cancelled."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.queues import queue_of
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping
from tests.things import contracts, joining

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.entities.methods import MOST_ENTITY_DATA, MOST_EVENT_DATA, decode_entity
from bespeak.protocol.exchange.principal import Scopes
from bespeak.runtime.identity.signer import Signer
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.delegation import Chain, grant_authority
from bespeak.state.identity.jws import generate_key, public_jwk
from bespeak.state.identity.key_files import trusted
from bespeak.state.identity.signed_document import SignedDocument, read_signed
from bespeak.state.store.commands.agents import PutAgent
from bespeak.state.store.commands.records import FindRecord, ListRecords, PutRecord

pytestmark = pytest.mark.anyio


FRIEND = "b" * 64
SCOPES = "authorization:grant, news:read"
NEWS = make_endpoint("FETCH", "/news", lambda _: {}, scopes=("news:read",))
METHODS = ("AUTHORIZE", "CANCEL")


async def grant(bench: StatefulBench, held: str = SCOPES, **fields: Any) -> Any:
    body = {"subject": FRIEND, "resource": "/news", "scope": "news:read", "ttl": 60, **fields}
    return await bench.send("AUTHORIZE", "/", body, authority_scope=held)


async def reads(bench: StatefulBench, agent: str = FRIEND) -> int:
    status: int = (await bench.send("FETCH", "/news", agent=agent)).status
    return status


@pytest.mark.requirement("METHODS-5.4-3", "METHODS-5.4-10", "METHODS-5.5-8")
async def test_the_subject_may_call_until_the_grant_is_cancelled() -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        assert await reads(bench) == 455
        receipt = (await grant(bench)).json["result"]
        assert (receipt["scope"], receipt["granted_by"]) == (["news:read"], AGENT)
        assert (await reads(bench), await reads(bench, "c" * 64)) == (200, 455)
        await bench.send("CANCEL", "/", {"target_id": receipt["grant_id"]})
        await bench.bench.server.grants.refresh()
        assert await reads(bench) == 455


@pytest.mark.requirement("METHODS-5.4-1")
async def test_a_grant_for_a_principal_holds_for_its_agents() -> None:
    other = "c" * 64
    agents = (
        Agent(agent_id=AGENT, name="owner", scopes=("authorization:grant", "news:read"), principal_id="acme"),
        Agent(agent_id=FRIEND, name="friend", principal_id="ann"),
        Agent(agent_id=other, name="other", principal_id="bob"),
    )
    async with keeping(NEWS, methods=METHODS, agents=agents) as bench:
        receipt = (await grant(bench, subject="ann")).json["result"]
        assert receipt["subject"] == "ann"
        assert (await reads(bench), await reads(bench, other)) == (200, 455)
        again = {"subject": other, "resource": "/news", "scope": "news:read"}
        assert (await bench.send("AUTHORIZE", "/", again, agent=FRIEND)).status == 455
        await bench.send("CANCEL", "/", {"target_id": receipt["grant_id"]})
        await bench.bench.server.grants.refresh()
        assert await reads(bench) == 455
        assert (await grant(bench, subject="carl")).refusal == (403, "unknown-subject")


@pytest.mark.requirement("METHODS-5.4-10")
async def test_a_grant_for_another_resource_does_not_help() -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        assert (await grant(bench, resource="/weather")).status == 200
        assert await reads(bench) == 455


@pytest.mark.requirement("METHODS-5.4-3", "METHODS-5.4-4", "METHODS-5.4-5", "METHODS-10.2-1")
async def test_nobody_grants_more_than_it_holds(caplog: pytest.LogCaptureFixture) -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        refused = await grant(bench, "authorization:grant, news:write")
        assert (refused.status, refused.error["missing_scopes"]) == (455, ["news:read"])
        assert "tried to grant" in caplog.text
        assert (await grant(bench, "news:read")).status == 455
        assert await reads(bench) == 455


@pytest.mark.requirement("METHODS-5.4-4")
async def test_what_was_granted_cannot_be_granted_again() -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        await grant(bench)
        body = {"subject": "c" * 64, "resource": "/news", "scope": "news:read"}
        passed = await bench.send("AUTHORIZE", "/", body, agent=FRIEND, authority_scope="authorization:grant")
        assert passed.status == 455


@pytest.mark.requirement("METHODS-5.4-6")
@rows(
    "fields, status, code",
    ({"subject": "porter"}, 403, "unknown-subject"),
    ({"resource": "the repository"}, 422, "invalid-resource"),
    ({"scope": "not a scope"}, 422, "invalid-scope"),
)
async def test_a_grant_that_means_nothing_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        assert (await grant(bench, **fields)).refusal == (status, code)


@pytest.mark.requirement("METHODS-5.4-6")
async def test_the_same_grant_is_given_once() -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        first = (await grant(bench)).json["result"]["grant_id"]
        again = await grant(bench)
        assert (again.status, again.error["code"], again.error["grant_id"]) == (409, "already-granted", first)


@pytest.mark.requirement("METHODS-5.4-2")
async def test_a_grant_ends_after_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        assert (await grant(bench, ttl=60)).status == 200
        assert await reads(bench) == 200
        monkeypatch.setattr(bench.bench.server.principals, "clock", lambda: time.time() + 61)
        assert await reads(bench) == 455


async def test_delegated_authority_cannot_be_turned_into_a_grant() -> None:
    key = generate_key()
    private: Any = key.private_key
    agents = (
        Agent(agent_id=AGENT, name="owner", scopes=("authorization:grant", "news:read"), public_key=public_jwk(key)),
        Agent(agent_id=FRIEND, name="friend"),
    )
    async with keeping(NEWS, methods=METHODS, agents=agents) as bench:
        delegation = grant_authority(
            delegator=AGENT,
            delegate=FRIEND,
            scopes=("authorization:grant", "news:read"),
            held=Scopes(["*:*"]),
            server_id="test.example",
            key=private,
            now=time.time(),
            lifetime=600,
        )
        assert isinstance(delegation, Chain)
        chain = delegation.tokens[0]
        assert (await bench.send("FETCH", "/news", agent=FRIEND, delegation_chain=chain)).status == 200
        body = {"subject": FRIEND, "resource": "/news", "scope": "news:read", "ttl": 86400}
        refused = await bench.send("AUTHORIZE", "/", body, agent=FRIEND, delegation_chain=chain)
        assert (refused.status, refused.error["code"]) == (455, "scope-violation")
        assert await reads(bench) == 455


async def test_a_grant_ends_with_the_authority_of_its_granter() -> None:
    document = '{{"agent_id": "{}", "name": "{}", "scopes_accepted": {}}}'
    async with keeping(NEWS, methods=METHODS) as bench:
        for scopes, status in ((["authorization:grant", "news:read"], 200), (["authorization:grant"], 455)):
            for agent_id, name, held in ((AGENT, "owner", scopes), (FRIEND, "friend", [])):
                text = document.format(agent_id, name, msgspec.json.encode(held).decode())
                await bench.store.do(PutAgent(agent_id, name, "active", text, "operator"))
            await bench.bench.server.agents.refresh()
            await bench.send("AUTHORIZE", "/", {"subject": FRIEND, "resource": "/news", "scope": "news:read"})
            assert await reads(bench) == status


OTHER = "b" * 64
TRANSFER_METHODS = ("REGISTER", "TRANSFER")
CONTRACTS = joining(contracts)


async def owned(bench: StatefulBench) -> str:
    reply = await bench.send("REGISTER", "/", {"entity_type": "contract", "data": {"title": "Lease"}})
    entity_id: str = reply.json["result"]["entity_id"]
    return entity_id


async def move(bench: StatefulBench, entity_id: str, sender: str = AGENT, to: str = OTHER, **fields: Any) -> Any:
    scope = fields.pop("scope", "contract:transfer")
    body = {"resource_id": entity_id, "from_principal": sender, "to_principal": to, "reason": "sold"}
    return await bench.send("TRANSFER", "/", body, authority_scope=scope, **fields)


@pytest.mark.requirement("METHODS-5.6-2", "METHODS-10.6-1", "METHODS-5.6-7")
async def test_the_new_owner_holds_it_and_the_chain_says_how() -> None:
    async with keeping(participants=CONTRACTS, methods=TRANSFER_METHODS) as bench:
        entity_id = await owned(bench)
        receipt = (await move(bench, entity_id)).json["result"]
        assert (receipt["from_principal"], receipt["to_principal"], receipt["version"]) == (AGENT, OTHER, 2)
        assert (await move(bench, entity_id, OTHER, AGENT, agent=OTHER)).status == 200
        record = await bench.store.read(FindRecord(("entity",), entity_id))
        chain = [(one.from_principal, one.to_principal, one.reason) for one in decode_entity(record.data).owners]
        assert (record.owner, chain) == (AGENT, [(AGENT, OTHER, "sold"), (OTHER, AGENT, "sold")])


@pytest.mark.requirement("METHODS-10.6-2")
async def test_the_audit_record_names_both_owners() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(participants=CONTRACTS, methods=TRANSFER_METHODS, document=document) as bench:
        moved = await move(bench, await owned(bench))
        body = {"target": "audit", "audit_id": moved.header("Audit-ID")}
        record = (await bench.send("INSPECT", "/", body)).json["result"]
        assert AGENT in str(record)
        assert OTHER in str(record)


@pytest.mark.requirement("METHODS-5.6-3", "METHODS-5.6-4", "METHODS-5.6-5")
@rows(
    "fields, status, code",
    ({"scope": "contract:read"}, 455, "scope-violation"),
    ({"agent": OTHER}, 404, "resource-not-found"),
    ({"sender": OTHER}, 403, "not-the-owner"),
    ({"to": AGENT}, 409, "already-owned"),
)
async def test_a_transfer_without_authority_or_sense_is_refused(fields: Any, status: int, code: str) -> None:
    async with keeping(participants=CONTRACTS, methods=TRANSFER_METHODS) as bench:
        entity_id = await owned(bench)
        assert (await move(bench, entity_id, **fields)).refusal == (status, code)
        assert (await bench.store.read(FindRecord(("entity",), entity_id))).owner == AGENT


@pytest.mark.requirement("METHODS-5.2-3", "METHODS-5.2-5")
async def test_an_entity_is_stored_with_its_owner() -> None:
    async with keeping(participants=CONTRACTS, methods=("REGISTER",)) as bench:
        reply = await bench.send("REGISTER", "/", {"entity_type": "contract", "data": {"title": "Lease"}})
        receipt = reply.json["result"]
        assert (reply.status, receipt["owner"], receipt["version"]) == (200, AGENT, 1)
        record = await bench.store.read(FindRecord(("entity",), receipt["entity_id"]))
        assert (record.owner, decode_entity(record.data).data) == (AGENT, {"title": "Lease", "pages": 1})


@pytest.mark.requirement("METHODS-5.2-2")
async def test_the_same_key_registers_once() -> None:
    async with keeping(participants=CONTRACTS, methods=("REGISTER",)) as bench:
        body = {"entity_type": "contract", "data": {"title": "Lease"}, "idempotency_key": "k"}
        first, again = await bench.send("REGISTER", "/", body), await bench.send("REGISTER", "/", body)
        assert first.json == again.json
        assert len(await bench.store.read(ListRecords("entity"))) == 1


@pytest.mark.requirement("METHODS-5.2-4", "METHODS-5.2-5")
async def test_an_agent_subscribes_once_to_a_channel() -> None:
    async with keeping(participants=CONTRACTS, methods=("REGISTER",)) as bench:
        body = {"entity_type": "subscription", "data": {"channel": "news"}}
        assert (await bench.send("REGISTER", "/", body)).status == 200
        assert (await bench.send("REGISTER", "/", body)).refusal == (409, "already-registered")
        assert (await bench.send("REGISTER", "/", body, agent="b" * 64)).status == 200


@pytest.mark.requirement("METHODS-5.2-4")
@pytest.mark.parametrize(
    "body",
    [
        {"entity_type": "subscription", "data": {}},
        {"entity_type": "contract", "data": {"title": "x" * MOST_ENTITY_DATA}},
    ],
)
async def test_data_that_cannot_be_kept_are_refused(body: dict[str, Any]) -> None:
    async with keeping(participants=CONTRACTS, methods=("REGISTER",)) as bench:
        assert (await bench.send("REGISTER", "/", body)).refusal == (422, "invalid-data")


async def test_a_subscription_can_be_made_again_after_it_was_cancelled() -> None:
    async with keeping(methods=("REGISTER", "CANCEL")) as bench:
        body = {"entity_type": "subscription", "data": {"channel": "news"}}
        made = (await bench.send("REGISTER", "/", body)).json["result"]
        await bench.send("CANCEL", "/", {"target_id": made["entity_id"]})
        assert (await bench.send("REGISTER", "/", body)).status == 200


async def test_a_callback_must_agree_before_it_is_used() -> None:
    async with keeping(participants=CONTRACTS, methods=("REGISTER",)) as bench:
        for callback, code in ((7, "invalid-data"), ("", "invalid-data"), ("http://127.0.0.1:9/", "callback-refused")):
            body = {"entity_type": "subscription", "data": {"channel": "news", "callback": callback}}
            assert (await bench.send("REGISTER", "/", body)).refusal == (422, code), callback
        assert await bench.store.read(ListRecords("subscription")) == []


KEY = generate_key()
SCOPE = "documents:sign"


def with_key(bench: StatefulBench) -> StatefulBench:
    bench.bench.server.signer = Signer(KEY)
    return bench


@pytest.mark.requirement("METHODS-5.8-3")
async def test_the_signature_says_what_was_signed_for_whom_and_when() -> None:
    async with keeping(methods=("SIGN",)) as kept:
        bench = with_key(kept)
        result = (await bench.send("SIGN", "/", {"payload": {"b": 1, "a": 2}}, authority_scope=SCOPE)).json["result"]
        signed = read_signed(result["signature"], trusted([KEY]))
        assert isinstance(signed, SignedDocument)
        assert (signed.payload, signed.agent_id, signed.signed_at) == ({"b": 1, "a": 2}, AGENT, result["signed_at"])


@pytest.mark.requirement("METHODS-5.8-2", "METHODS-5.8-4")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [({"key_id": "x"}, 403, "key-refused"), ({"algorithm": "RS256"}, 422, "unknown-algorithm")],
)
async def test_another_key_or_algorithm_is_refused(fields: dict[str, str], status: int, code: str) -> None:
    async with keeping(methods=("SIGN",)) as kept:
        reply = await with_key(kept).send("SIGN", "/", {"payload": 1, **fields}, authority_scope=SCOPE)
        assert (reply.status, reply.error["code"]) == (status, code)


async def test_signing_needs_a_scope_and_a_key() -> None:
    async with keeping(methods=("SIGN",)) as bench:
        assert (await bench.send("SIGN", "/", {"payload": 1}, authority_scope="a:b")).status == 455
        assert (await bench.send("SIGN", "/", {"payload": 1}, authority_scope=SCOPE)).status == 501


@pytest.mark.requirement("METHODS-5.9-3", "METHODS-5.9-4", "METHODS-5.9-6", "METHODS-5.9-8")
async def test_an_event_is_kept_and_its_receipt_names_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with keeping(methods=("LOG",)) as bench:
        sent = {"event_type": "wire", "data": {"secret": 7}, "severity": "warning", "correlation_id": "t-1"}
        reply = await bench.send("LOG", "/", sent)
        receipt = reply.json["result"]
        assert (reply.status, receipt["event_type"], receipt["severity"]) == (200, "wire", "warning")
        record = await bench.store.read(FindRecord(("log",), receipt["record_id"]))
        assert (record.owner, record.content()) == (AGENT, sent)
        assert f"{AGENT} reported wire: {record.record_id}" in caplog.text
        assert "secret" not in caplog.text


@pytest.mark.requirement("METHODS-5.9-5")
async def test_a_record_is_bounded_and_not_for_anonymous_callers() -> None:
    async with keeping(methods=("LOG",)) as bench:
        reply = await bench.send("LOG", "/", {"event_type": "wire", "data": "x" * MOST_EVENT_DATA})
        assert (reply.status, reply.json["error"]["code"]) == (400, "invalid-data")
        assert (await bench.send("LOG", "/", {"event_type": "x", "data": 1}, agent=None)).status == 262


CANCEL_METHODS = ("REGISTER", "CANCEL", "SUBMIT")


async def cancel(bench: StatefulBench, target_id: str, **fields: Any) -> Any:
    agent = {"agent": fields.pop("agent")} if "agent" in fields else {}
    return await bench.send("CANCEL", "/", {"target_id": target_id, **fields}, **agent)


async def registered(bench: StatefulBench, entity_type: str = "channel") -> str:
    body = {"entity_type": entity_type, "data": {"channel": "news"}}
    target_id: str = (await bench.send("REGISTER", "/", body)).json["result"]["entity_id"]
    return target_id


@pytest.mark.requirement("METHODS-5.5-3", "METHODS-5.5-4", "METHODS-5.5-5")
@pytest.mark.parametrize("entity_type", ["channel", "subscription"])
async def test_what_was_registered_is_cancelled_once(entity_type: str) -> None:
    async with keeping(methods=CANCEL_METHODS) as bench:
        target_id = await registered(bench, entity_type)
        done = await cancel(bench, target_id, reason="mistake")
        assert (done.status, done.json["result"]["status"]) == (200, "cancelled")
        assert (await cancel(bench, target_id)).refusal == (409, "already-cancelled")


@pytest.mark.requirement("METHODS-5.5-5")
async def test_others_cannot_tell_that_it_exists() -> None:
    async with keeping(methods=CANCEL_METHODS) as bench:
        target_id = await registered(bench)
        theirs = await cancel(bench, target_id, agent="b" * 64)
        nothing = await cancel(bench, "ent-0", agent="b" * 64)
        assert (
            (theirs.status, theirs.error["code"])
            == (nothing.status, nothing.error["code"])
            == (404, "target-not-found")
        )


@pytest.mark.requirement("METHODS-5.5-5", "METHODS-5.5-8")
async def test_submitted_items_are_withdrawn_and_what_costs_nothing_is_not_refunded() -> None:
    async with keeping(methods=CANCEL_METHODS, participants=(queue_of(),)) as bench:
        reply = await cancel(bench, await registered(bench), refund_policy="full")
        assert (reply.status, reply.error["code"]) == (422, "refund-impossible")
        await bench.store.do(PutRecord("item-1", "submission", AGENT, "queued", "{}"))
        assert (await cancel(bench, "item-1")).json["result"]["kind"] == "submission"


@pytest.mark.requirement("METHODS-5.5-6", "METHODS-5.5-2")
async def test_the_subject_of_a_revoked_grant_is_told_if_the_caller_wants_that() -> None:
    async with keeping(methods=(*CANCEL_METHODS, "AUTHORIZE")) as bench:
        for wanted in (False, True):
            given = {"subject": "b" * 64, "resource": "*", "scope": "news:read"}
            granted = await bench.send("AUTHORIZE", "/", given, authority_scope="authorization:grant, news:read")
            target_id = granted.json["result"]["grant_id"]
            done = await cancel(bench, target_id, notify_parties=wanted, reason={"code": "moved"})
            assert done.json["result"]["notified"] == (["b" * 64] if wanted else [])
        inbox = (await bench.send("QUERY", "/messages", {}, agent="b" * 64)).json["result"]["messages"]
        assert [(one["kind"], one["content"]) for one in inbox] == [
            (
                "cancellation",
                {"target_id": target_id, "kind": "grant", "status": "cancelled", "reason": {"code": "moved"}},
            )
        ]
