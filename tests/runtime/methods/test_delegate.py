"""DELEGATE: a part of one's authority in other hands, never more."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.service import Bench, build, echo, make_endpoint
from tests.stateful import ReadDelegation, StatefulBench

from bespeak.app.server.assembly import Keeper, assemble
from bespeak.contract.agent import Agent
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.principal import Scopes
from bespeak.state.identity.delegation import Chain, grant_authority
from bespeak.state.identity.jws import generate_key, public_jwk
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD, FOURTH = ("1" * 64, "2" * 64, "3" * 64, "4" * 64)
SERVER = "test.example"
FIRST_KEY = generate_key()


def agent(agent_id: str, name: str, *scopes: str, **fields: Any) -> Agent:
    return Agent(agent_id=agent_id, name=name, scopes=scopes, **fields)


@asynccontextmanager
async def served(key: OKPKey | None = None, **fields: Any) -> AsyncIterator[StatefulBench]:
    """Serve four agents, of which the first may book rooms and read calendars."""
    service = Service(
        identity=ServerIdentity(server_id=SERVER, operator="Test", contact="ops@test.example"),
        endpoints=(
            make_endpoint(
                "BOOK", "/room", lambda context: {"for": list(context.principal.delegators)}, scopes=("booking:room",)
            ),
            make_endpoint("FETCH", "/calendar", echo, scopes=("calendar:read",)),
        ),
        agents=(
            agent(FIRST, "first", "booking:*", "calendar:read", public_key=public_jwk(FIRST_KEY), **fields),
            agent(SECOND, "second", "mail:send"),
            agent(THIRD, "third"),
            agent(FOURTH, "fourth"),
        ),
    )
    assembled = assemble(service, updated="2026-01-01T00:00:00Z", signing_key=key)
    store = open_store("memory", role="sole")
    keeper = Keeper(assembled, store, ServerDocument())
    await keeper.start()
    try:
        yield StatefulBench(Bench(assembled, keeper.dispatcher), store)
    finally:
        await keeper.stop()


def wish(target: str = SECOND, scope: Any = "booking:room", token: str = "issue", **more: Any) -> dict[str, Any]:
    return {"target_agent_id": target, "task": "book", "authority_scope": scope, "delegation_token": token, **more}


async def granted(bench: StatefulBench, body: dict[str, Any], agent: str = FIRST, **headers: str) -> dict[str, Any]:
    reply = await bench.send("DELEGATE", "/", body, agent=agent, **headers)
    assert reply.status == 200, reply.json
    result: dict[str, Any] = reply.json["result"]
    return result


@pytest.mark.requirement("CORE-7.5-5")
async def test_a_delegate_has_only_the_delegated_authority() -> None:
    async with served(generate_key()) as bench:
        assert (await bench.send("BOOK", "/room", agent=SECOND)).status == 455
        result = await granted(bench, wish())
        assert (result["delegator"], result["delegate"], result["authority_scope"]) == (FIRST, SECOND, ["booking:room"])
        chain = result["delegation_chain"]
        reply = await bench.send("BOOK", "/room", agent=SECOND, delegation_chain=chain)
        assert (reply.status, reply.json) == (200, {"for": [FIRST]})
        assert (await bench.send("FETCH", "/calendar", agent=SECOND, delegation_chain=chain)).status == 455
        # Somebody else who holds the token holds nothing.
        stolen = await bench.send("BOOK", "/room", agent=THIRD, delegation_chain=chain)
        assert (stolen.status, stolen.error["reason"]) == (551, "not-the-caller")


@pytest.mark.requirement("CORE-2.3-4")
async def test_authority_scope_narrows_the_delegated_and_not_the_own_authority() -> None:
    async with served(generate_key()) as bench:
        chain = (await granted(bench, wish(scope=["booking:*"])))["delegation_chain"]
        sent = {"agent": SECOND, "delegation_chain": chain}
        assert (await bench.send("BOOK", "/room", **sent, authority_scope="booking:room")).status == 200
        assert (await bench.send("BOOK", "/room", **sent, authority_scope="booking:table")).status == 455
        beyond = await bench.send("BOOK", "/room", **sent, authority_scope="mail:send")
        assert (beyond.status, beyond.error["code"]) == (262, "scope-claim-invalid")


@pytest.mark.requirement("CORE-4.8-2", "CORE-6.2-1", "CORE-7.6-2", "CORE-4.8-7")
async def test_more_than_one_holds_is_refused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with served(generate_key()) as bench:
        reply = await bench.send("DELEGATE", "/", wish(scope="booking:room, payments:purchase"), agent=FIRST)
        assert (reply.status, reply.error["code"]) == (262, "scope-claim-invalid")
        assert (reply.error["type"], reply.error["invalid"]) == ("scope-required", ["payments:purchase"])
        assert "payments:purchase" in caplog.text
        assert (await bench.send("DELEGATE", "/", wish(), agent=FIRST, authority_scope="calendar:read")).status == 262


@pytest.mark.requirement("CORE-7.6-1", "CORE-7.6-4")
async def test_a_chain_of_hops_names_all_delegators_and_can_only_shrink() -> None:
    async with served(generate_key()) as bench:
        first = await granted(bench, wish(scope="booking:*", depth=1))
        wider = await bench.send(
            "DELEGATE", "/", wish(THIRD, "mail:send"), agent=SECOND, delegation_chain=first["delegation_chain"]
        )
        assert wider.status == 262
        second = await granted(bench, wish(THIRD), SECOND, delegation_chain=first["delegation_chain"])
        reply = await bench.send("BOOK", "/room", agent=THIRD, delegation_chain=second["delegation_chain"])
        assert reply.json == {"for": [FIRST, SECOND]}
        further = await bench.send(
            "DELEGATE", "/", wish(FOURTH), agent=THIRD, delegation_chain=second["delegation_chain"]
        )
        assert (further.status, further.error["code"]) == (262, "delegation-depth-exceeded")
        back = await bench.send("DELEGATE", "/", wish(FIRST), agent=THIRD, delegation_chain=second["delegation_chain"])
        assert (back.status, back.error["code"]) == (422, "delegation-to-itself")
        last = await bench.store.read(ReadDelegation(second["delegation_id"]))
        hops = [await bench.store.read(ReadDelegation(last.parent)), last]
        assert [(hop.delegator, hop.delegate, hop.scope) for hop in hops] == [
            (FIRST, SECOND, "booking:*"),
            (SECOND, THIRD, "booking:room"),
        ]


@pytest.mark.requirement("CORE-7.6-5")
async def test_a_suspended_delegator_breaks_the_chain() -> None:
    async with served(generate_key()) as bench:
        chain = (await granted(bench, wish()))["delegation_chain"]
        stop = SetAgentStatus(FIRST, "DEACTIVATE", frozenset({"active"}), "suspended", "op", "", "first", "active")
        await bench.store.do(stop)
        await bench.bench.server.agents.refresh()
        reply = await bench.send("BOOK", "/room", agent=SECOND, delegation_chain=chain)
        assert (reply.status, reply.error["reason"]) == (551, "delegator-not-active")


def signed(scopes: tuple[str, ...] = ("booking:room",), key: OKPKey = FIRST_KEY, **fields: Any) -> str:
    """Sign a token with the delegator's own key."""
    private: Any = key.private_key
    chain = grant_authority(
        delegator=FIRST,
        delegate=SECOND,
        scopes=scopes,
        held=Scopes(["*:*"]),
        server_id=SERVER,
        key=private,
        now=time.time(),
        lifetime=600,
        **fields,
    )
    assert isinstance(chain, Chain)
    return chain.tokens[0]


@pytest.mark.requirement("CORE-4.8-3")
async def test_a_delegator_may_sign_for_itself_once() -> None:
    async with served() as bench:
        token = signed()
        result = await granted(bench, wish(token=token))
        assert result["delegation_token"] == token
        reply = await bench.send("BOOK", "/room", agent=SECOND, delegation_chain=result["delegation_chain"])
        assert reply.status == 200
        again = await bench.send("DELEGATE", "/", wish(token=token), agent=FIRST)
        assert (again.status, again.error["code"]) == (409, "delegation-token-used")


@pytest.mark.requirement("CORE-4.8-3", "CORE-4.8-7")
async def test_a_token_that_proves_something_else_is_refused() -> None:
    async with served() as bench:
        forged = await bench.send("DELEGATE", "/", wish(token=signed(key=generate_key())), agent=FIRST)
        assert (forged.status, forged.error["reason"]) == (551, "signature-invalid")
        assert (await bench.send("DELEGATE", "/", wish(token="yes"), agent=FIRST)).status == 551
        other = await bench.send("DELEGATE", "/", wish(scope="calendar:read", token=signed()), agent=FIRST)
        assert (other.status, other.error["code"]) == (422, "delegation-token-mismatch")
        wide = await bench.send("DELEGATE", "/", wish(token=signed(("payments:buy",))), agent=FIRST)
        assert (wide.status, wide.error["reason"]) == (551, "scope-exceeded")


@pytest.mark.requirement("CORE-7.6-6", "CORE-4.8-7")
@pytest.mark.parametrize("fields", [{"delegation_permitted": False}, {"max_delegation_depth": 0}])
async def test_a_document_may_forbid_it(fields: dict[str, Any]) -> None:
    async with served(generate_key(), **fields) as bench:
        assert (await bench.send("DELEGATE", "/", wish(), agent=FIRST)).refusal == (403, "delegation-not-permitted")
        assert (await bench.send("BOOK", "/room", agent=SECOND, delegation_chain=signed())).status == 551


@pytest.mark.requirement("CORE-7.6-6")
async def test_a_document_bounds_how_far_authority_travels() -> None:
    async with served(generate_key(), max_delegation_depth=1) as bench:
        assert (await bench.send("DELEGATE", "/", wish(depth=1), agent=FIRST)).told("max_delegation_depth") == (403, 1)
        direct = await bench.send("BOOK", "/room", agent=SECOND, delegation_chain=signed(depth=1))
        assert (direct.status, direct.error["reason"]) == (551, "depth-exceeded")
        assert (await bench.send("DELEGATE", "/", wish(), agent=FIRST)).status == 200


async def test_it_takes_two_agents_that_are_known() -> None:
    async with served(generate_key()) as bench:
        assert (await bench.send("DELEGATE", "/", wish("9" * 64), agent=FIRST)).status == 404
        assert (await bench.send("DELEGATE", "/", wish(), agent="9" * 64)).status == 401
        assert (await bench.send("DELEGATE", "/", wish(), agent=None)).status == 262
        assert (await bench.send("DELEGATE", "/", wish(FIRST), agent=FIRST)).status == 422


@pytest.mark.requirement("CORE-4.8-4")
async def test_a_delegation_ends_at_its_deadline_and_after_a_day_at_most() -> None:
    async with served(generate_key()) as bench:
        soon = datetime.fromtimestamp(int(time.time()) + 100, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert (await granted(bench, wish(deadline=soon)))["expires_at"] == soon
        late = datetime.fromisoformat((await granted(bench, wish(deadline="2999-01-01")))["expires_at"])
        assert late.timestamp() <= time.time() + 86400
        for deadline in ("2001-01-01T00:00:00Z", "tomorrow", "9999-99-99"):
            refused = await bench.send("DELEGATE", "/", wish(deadline=deadline), agent=FIRST)
            assert (refused.status, refused.error["code"]) == (400, "invalid-time")


@rows(
    "task, expected",
    ("a\x00b", (422, "invalid-task")),
    ("x" * 65_537, (413, "task-too-large")),
    ({"x": "\u00fc" * 40_000}, (413, "task-too-large")),
)
async def test_a_task_that_cannot_be_stored_is_refused(task: Any, expected: tuple[int, str]) -> None:
    async with served(generate_key()) as bench:
        assert (await bench.send("DELEGATE", "/", wish() | {"task": task}, agent=FIRST)).told("code") == expected
        await granted(bench, wish() | {"task": {"a": "\x00"}})


@pytest.mark.parametrize("scope", ["", "booking", ["booking:room", 7], [], "a:b\x1f", ["A:B"]])
async def test_an_invalid_scope_cannot_be_delegated(scope: Any) -> None:
    async with served(generate_key()) as bench:
        reply = await bench.send("DELEGATE", "/", wish(scope=scope), agent=FIRST)
        assert (reply.status, reply.error["code"]) == (422, "invalid-authority-scope")


async def test_without_a_key_the_server_refuses_and_names_the_key() -> None:
    async with served() as bench:
        reply = await bench.send("DELEGATE", "/", wish(), agent=FIRST)
        assert reply.status == 501
        assert "signing_key" in reply.error["missing"]


def test_without_a_store_nothing_is_delegated() -> None:
    agents = (agent(FIRST, "first", "booking:*"), agent(SECOND, "second"))
    reply = build(agents=agents).send("DELEGATE", "/", wish(), agent_id=FIRST)
    assert (reply.status, reply.error["missing"]) == (501, "a store to keep state in")
