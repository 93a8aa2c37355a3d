"""INSPECT: agents see their own records, auditors see all, anonymous callers none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.extensions.negotiation.negotiating import lodgings, negotiating
from tests.service import AGENT, build
from tests.state.audit.trails import append_one, make_sealer
from tests.stateful import StatefulBench, keeping

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.commands.agents import PutAgent, ReadLifecycle
from bespeak.state.store.commands.audit import ReadAudit, ReadChainHead
from bespeak.state.store.opening import open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
AUDITOR = "c" * 64


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with keeping(store=open_store("memory", role="sole"), require_known_agents=False) as made:
        made.store.attach(make_sealer())
        yield made


@pytest.mark.requirement("CORE-12-9")
async def test_an_agent_inspects_its_own_record(bench: StatefulBench) -> None:
    record = await append_one(bench.store, AGENT, status=200)
    reply = await bench.send("INSPECT", "/", {"target": "audit", "audit_id": record.audit_id})
    assert reply.status == 200
    result = reply.json["result"]
    assert (result["audit_id"], result["attribution_record"]) == (record.audit_id, record.jws)
    assert (result["record"]["agent_id"], result["record"]["status"]) == (AGENT, 200)
    assert (result["stream"], result["sequence"]) == (record.stream, record.sequence)


@pytest.mark.requirement("CORE-10.1-11")
@pytest.mark.parametrize("owner", [AGENT, ""])
async def test_records_of_others_need_the_scope(bench: StatefulBench, owner: str) -> None:
    record = await append_one(bench.store, owner)
    body = {"target": "audit", "audit_id": record.audit_id}
    refused = await bench.send("INSPECT", "/", body, agent=OTHER, authority_scope="audit:write")
    assert (refused.status, refused.error["code"]) == (403, "inspection-forbidden")
    assert refused.error["required_scopes"] == ["audit:read"]
    missing = await bench.send(
        "INSPECT", "/", body | {"audit_id": "e" * 64}, agent=OTHER, authority_scope="audit:write"
    )
    assert missing.json == refused.json  # a record of another agent is not distinguishable from a missing one
    for audit_id, status in ((record.audit_id, 200), ("e" * 64, 404)):
        asked = {"target": "audit", "audit_id": audit_id}
        assert (await bench.send("INSPECT", "/", asked, agent=AUDITOR, authority_scope="audit:read")).status == status


@pytest.mark.requirement("CORE-12-9")
async def test_the_head_of_a_chain_is_the_latest_record_by_default_of_the_caller(bench: StatefulBench) -> None:
    await append_one(bench.store, AGENT)
    last = await append_one(bench.store, AGENT)
    await append_one(bench.store, OTHER)
    reply = await bench.send("INSPECT", "/", {"target": "chain_head"})
    assert reply.json["result"]["audit_id"] == last.audit_id
    refused = await bench.send("INSPECT", "/", {"target": "chain_head", "agent_id": OTHER})
    assert refused.status == 403


@pytest.mark.requirement("CORE-12-9")
async def test_an_agent_can_inspect_its_own_history(bench: StatefulBench) -> None:
    await bench.store.do(PutAgent(AGENT, "porter", "active", "{}", "operator"))
    reply = await bench.send("INSPECT", "/", {"target": "lifecycle", "agent_id": AGENT})
    assert reply.status == 200
    assert reply.json["result"]["status"] == "active"
    [event] = reply.json["result"]["events"]
    assert (event["event"], event["actor"]) == ("REGISTER", "operator")
    refused = await bench.send("INSPECT", "/", {"target": "lifecycle", "agent_id": AGENT}, agent=OTHER)
    assert refused.status == 403


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"target": "audit", "audit_id": "e" * 64}, 403, "inspection-forbidden"),
        ({"target": "chain_head"}, 404, "record-not-found"),
        ({"target": "lifecycle"}, 404, "agent-not-found"),
        ({"target": "audit"}, 422, "invalid-audit-id"),
        ({"target": "audit", "audit_id": "../etc"}, 422, None),
        ({"target": "secrets"}, 422, None),
        ({}, 422, None),
    ],
)
async def test_unknown_and_ambiguous_targets_are_explained(
    bench: StatefulBench, body: dict[str, str], status: int, code: str | None
) -> None:
    reply = await bench.send("INSPECT", "/", body)
    assert reply.status == status
    assert code is None or reply.error["code"] == code


@pytest.mark.parametrize("target", ["audit", "chain_head", "lifecycle"])
async def test_strangers_inspect_nothing(bench: StatefulBench, target: str) -> None:
    record = await append_one(bench.store, "")
    reply = await bench.send("INSPECT", "/", {"target": target, "audit_id": record.audit_id}, agent=None)
    assert (reply.status, reply.error["code"]) == (262, "authorization-required")


async def test_a_store_that_cannot_be_read_is_a_503_and_no_fault_of_the_method(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unreadable(SqliteStore):
        async def read(self, command: Command) -> Any:
            if isinstance(command, ReadChainHead | ReadAudit | ReadLifecycle):
                raise StoreUnavailableError("The disk does not answer.")
            return await super().read(command)

    bodies = ({"target": "chain_head"}, {"target": "lifecycle"}, {"target": "audit", "audit_id": "e" * 64})
    async with keeping(store=Unreadable.in_memory()) as bench:
        for body in bodies:
            for headers in ({}, {"idempotency_key": "k"}):
                reply = await bench.send("INSPECT", "/", body, **headers)
                assert (reply.status, reply.error["code"]) == (503, "store-unavailable")
                assert reply.header("Retry-After") == "2"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_without_a_store_there_is_nothing_to_inspect() -> None:
    reply = build().send("INSPECT", "/", {"target": "chain_head"}, agent_id=AGENT)
    assert (reply.status, reply.error["code"]) == (501, "not-implemented")


async def test_agent_inspects_its_synthesized_contract() -> None:
    async with negotiating() as bench:
        approved = (await bench.send("PROPOSE", "/", lodgings())).json
        body = {"target": "contract", "synthesis_id": approved["synthesis_id"]}
        shown = (await bench.send("INSPECT", "/", body)).json["result"]
        assert shown["endpoint"] == approved["endpoint"]
        assert (shown["state"], shown["agent_id"], shown["plan"]) == ("approved", AGENT, ["Calls FIND /rooms."])
        refused = await bench.send("INSPECT", "/", body, agent=OTHER)
        unknown = await bench.send("INSPECT", "/", {**body, "synthesis_id": "syn-0"}, agent=OTHER)
        assert refused.status == 403
        assert refused.json == unknown.json
        auditor = await bench.send("INSPECT", "/", body, agent=OTHER, authority_scope="audit:read")
        assert auditor.status == 200
        assert (await bench.send("INSPECT", "/", {"target": "contract"})).status == 422
