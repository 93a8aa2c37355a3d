"""AUTHORIZE gives another agent part of the caller's authority, for a time, and never more."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.protocol.exchange.principal import Scopes
from bespeak.state.identity.delegation import Chain, grant_authority
from bespeak.state.identity.key_text import generate_key, public_jwk
from bespeak.state.store.commands.agents import PutAgent

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


@pytest.mark.requirement("METHODS-5.4-3")
async def test_the_subject_may_call_until_the_grant_is_cancelled() -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        assert await reads(bench) == 455
        receipt = (await grant(bench)).json["result"]
        assert (receipt["scope"], receipt["granted_by"]) == (["news:read"], AGENT)
        assert (await reads(bench), await reads(bench, "c" * 64)) == (200, 455)
        await bench.send("CANCEL", "/", {"target_id": receipt["grant_id"]})
        await bench.bench.server.grants.refresh()
        assert await reads(bench) == 455


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
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"subject": "porter"}, 403, "unknown-subject"),
        ({"resource": "the repository"}, 422, "invalid-resource"),
        ({"scope": "not a scope"}, 422, "invalid-scope"),
    ],
)
async def test_a_grant_that_means_nothing_is_refused(fields: dict[str, Any], status: int, code: str) -> None:
    async with keeping(NEWS, methods=METHODS) as bench:
        reply = await grant(bench, **fields)
        assert (reply.status, reply.error["code"]) == (status, code)


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
