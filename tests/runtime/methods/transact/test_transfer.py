"""TRANSFER moves an entity to another owner, with the authority for its type, and keeps the chain."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.runtime.entities.methods import entity_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.records import FindRecord

pytestmark = pytest.mark.anyio

OTHER = "b" * 64
METHODS = ("REGISTER", "TRANSFER")


async def owned(bench: StatefulBench) -> str:
    reply = await bench.send("REGISTER", "/", {"entity_type": "contract", "data": 1})
    entity_id: str = reply.json["result"]["entity_id"]
    return entity_id


async def move(bench: StatefulBench, entity_id: str, sender: str = AGENT, to: str = OTHER, **fields: Any) -> Any:
    scope = fields.pop("scope", "contract:transfer")
    body = {"resource_id": entity_id, "from_principal": sender, "to_principal": to, "reason": "sold"}
    return await bench.send("TRANSFER", "/", body, authority_scope=scope, **fields)


@pytest.mark.requirement("METHODS-5.6-2", "METHODS-10.6-1")
async def test_the_new_owner_holds_it_and_the_chain_says_how() -> None:
    async with keeping(methods=METHODS) as bench:
        entity_id = await owned(bench)
        receipt = (await move(bench, entity_id)).json["result"]
        assert (receipt["from_principal"], receipt["to_principal"], receipt["version"]) == (AGENT, OTHER, 2)
        back = await move(bench, entity_id, OTHER, AGENT, agent=OTHER)
        assert back.status == 200
        record = await bench.store.read(FindRecord(("entity",), entity_id))
        chain = [(one.from_principal, one.to_principal, one.reason) for one in entity_of(record).owners]
        assert (record.owner, chain) == (AGENT, [(AGENT, OTHER, "sold"), (OTHER, AGENT, "sold")])


@pytest.mark.requirement("METHODS-10.6-2")
async def test_the_audit_record_names_both_owners() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(methods=METHODS, document=document) as bench:
        moved = await move(bench, await owned(bench))
        body = {"target": "audit", "audit_id": moved.header("Audit-ID")}
        record = (await bench.send("INSPECT", "/", body)).json["result"]
        assert AGENT in str(record)
        assert OTHER in str(record)


@pytest.mark.requirement("METHODS-5.6-3", "METHODS-5.6-4", "METHODS-5.6-5")
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"scope": "contract:read"}, 455, "scope-violation"),
        ({"agent": OTHER}, 404, "resource-not-found"),
        ({"sender": OTHER}, 403, "not-the-owner"),
        ({"to": AGENT}, 409, "already-owned"),
    ],
)
async def test_a_transfer_without_authority_or_sense_is_refused(fields: Any, status: int, code: str) -> None:
    async with keeping(methods=METHODS) as bench:
        entity_id = await owned(bench)
        reply = await move(bench, entity_id, **fields)
        assert (reply.status, reply.error["code"]) == (status, code)
        assert (await bench.store.read(FindRecord(("entity",), entity_id))).owner == AGENT
