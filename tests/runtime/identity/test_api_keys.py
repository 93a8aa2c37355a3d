"""What was set going with an API key ends with the key: workflows, grants and delegations."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.app.server.test_workers import eventually
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.message import decode_origin
from bespeak.extensions.messages.methods_broadcast import Fanout
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.credentials import NewKey, make_key
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.commands.agents import AddApiKey, RevokeApiKey
from bespeak.state.store.commands.records import FindRecord, ListRecords

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
SCOPES = ("news:read", "news:write")
KEYS = ServerDocument(auth=AuthSettings(modes=("key",)))


class Desk:
    def __init__(self, bench: StatefulBench) -> None:
        self.bench = bench
        self.server = bench.bench.server

    async def new(self, agent_id: str = AGENT) -> NewKey:
        made = make_key()
        await self.bench.store.do(AddApiKey(made.key_id, made.digest, agent_id, "porter", ", ".join(SCOPES), "", None))
        return made

    async def revoke(self, key: NewKey) -> None:
        await self.bench.store.do(RevokeApiKey(key.key_id))
        await self.server.agents.refresh()

    async def send(self, key: NewKey, method: str, target: str, body: Any = None, **headers: str) -> Any:
        return await self.bench.send(method, target, body, agent=None, authorization=f"Bearer {key.text}", **headers)


@asynccontextmanager
async def serve(*endpoints: Any, **fields: Any) -> AsyncIterator[Desk]:
    async with keeping(*endpoints, document=KEYS, **fields) as bench:
        yield Desk(bench)


async def test_no_step_of_a_workflow_begins_after_its_key_was_revoked() -> None:
    called: list[str] = []

    async def first(_: dict[str, Any]) -> dict[str, Any]:
        called.append("one")
        await desk.revoke(key)
        return {}

    async def second(_: dict[str, Any]) -> dict[str, Any]:
        called.append("two")
        return {}

    endpoints = [
        make_endpoint("BOOK", path, act, scopes=("news:write",), impact="reversible")
        for path, act in (("/one", first), ("/two", second))
    ]
    async with serve(*endpoints, methods=("CHAIN",)) as desk:
        key = await desk.new()
        steps = [{"method": "BOOK", "path": path} for path in ("/one", "/two")]
        reply = await desk.send(key, "CHAIN", "/", {"steps": steps})
        assert called == ["one"], reply.json
        assert "revoked" in str(reply.json)
        [record] = await desk.bench.store.read(ListRecords("workflow"))
        assert record.state == "failed"
        assert (await desk.send(key, "BOOK", "/two")).error["code"] == "key-revoked"


async def test_an_authority_is_judged_by_the_key_that_proved_it() -> None:
    async with serve() as desk:
        key, other = await desk.new(), await desk.new()
        await desk.server.agents.refresh()
        request = Request("QUERY", "/", "", {}, b"", Connection())
        authority = Authority.of(Principal(AGENT, Scopes(SCOPES), verified="key", key_id=key.key_id), request)
        assert isinstance(authority.judge(desk.server.principals), Principal)
        revision = desk.server.agents.revision
        await desk.revoke(other)
        assert isinstance(authority.judge(desk.server.principals), Principal)
        await desk.revoke(key)
        assert desk.server.agents.revision == revision + 2
        ended = authority.judge(desk.server.principals)
        assert isinstance(ended, Refused)
        assert (ended.code, "revoked" in ended.message) == ("authority-expired", True)


async def test_a_delegation_ends_with_the_key_by_which_its_delegator_was_known() -> None:
    agents = (
        Agent(agent_id=AGENT, name="porter", scopes=SCOPES),
        Agent(agent_id=FRIEND, name="friend", scopes=SCOPES),
    )
    fetch = make_endpoint("FETCH", "/news", lambda _: {}, scopes=("news:read",))
    async with serve(fetch, agents=agents, methods=("DELEGATE",)) as desk:
        desk.server.signer = Signer(generate_key())
        desk.server.principals._server_key = desk.server.signer.private_key.public_key()
        key, friends = await desk.new(), await desk.new(FRIEND)
        body = {"target_agent_id": FRIEND, "task": "read", "authority_scope": "news:read", "delegation_token": "issue"}
        body["deadline"] = write_instant(time.time() + 600)
        made = await desk.send(key, "DELEGATE", "/", body)
        assert made.status == 200, made.json
        chain = made.json["result"]["delegation_chain"]
        assert (await desk.send(friends, "FETCH", "/news", delegation_chain=chain)).status == 200
        await desk.revoke(key)
        refused = await desk.send(friends, "FETCH", "/news", delegation_chain=chain)
        assert (refused.status, refused.error["reason"]) == (551, "key-ended")


async def test_a_subscription_receives_nothing_after_its_key_was_revoked() -> None:
    async with serve(methods=("REGISTER", "PUBLISH", "RECEIVE")) as desk:
        key, writer = await desk.new(), await desk.new(FRIEND)
        subscription = {"entity_type": "subscription", "data": {"channel": "news", "api_key": None}}
        assert (await desk.send(key, "REGISTER", "/", subscription)).status == 200
        seen = []
        for content in ("first", "second"):
            due = await desk.send(writer, "PUBLISH", "/", {"channel": "news", "content": content})
            wanted = FindRecord(("publication",), due.json["result"]["content_id"])

            async def is_carried(wanted: FindRecord = wanted) -> bool:
                record = await desk.bench.store.read(wanted)
                await Fanout(desk.server).carry([record])  # or the server itself does
                return not decode_origin(record.data).pending

            await eventually(is_carried)
            found = await desk.bench.store.read(ListRecords("message", owner=AGENT))
            seen.append(len(found))
            await desk.revoke(key)
        assert seen == [1, 1]
