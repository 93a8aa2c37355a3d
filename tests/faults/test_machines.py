"""A machine that loses its power or its link to PostgreSQL neither stops the others nor acts on what it last read.

Killing a process closes its connections, so PostgreSQL notices at once. Here the connections stay open and nothing
arrives any more. `tools.faults.machines` does the same with network namespaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.service import AGENT, echo, make_endpoint
from tests.state.store.relay import Relay, relayed
from tests.state.store.sealing import PlainSealer
from tests.stateful import keeping

from bespeak.contract.agent import Agent
from bespeak.errors import StoreUnavailableError
from bespeak.state.store import postgres_connection
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.commands.audit import AppendAudit, ScanAudit
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.commands.ledger import HELD, SALES, CheckLedger, MoveMoney, OpenAccount, account_of
from bespeak.state.store.opening import open_store
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.store import Command, Conflict, Steps

pytestmark = [pytest.mark.process, pytest.mark.anyio]

ACME, BOB = account_of("acme"), account_of("bob")
RECORD = AppendAudit("agent", {})


class LoseLink(Command, frozen=True):
    """Moves money; then nothing arrives any more, in the middle of the transaction."""

    relay: Relay
    lost: asyncio.Event
    money: MoveMoney

    def steps(self) -> Steps:
        moved = yield from self.money.steps()
        self.relay.swallow()
        self.lost.set()
        return moved


@pytest.fixture
async def survivor(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    async with AsyncExitStack() as stack:
        store = await opened(stack, postgres_dsn, "survivor")
        for account in (ACME, BOB):
            await store.do(OpenAccount(account, "EUR", 100))
        yield store


async def opened(stack: AsyncExitStack, dsn: str, stream: str) -> PostgresStore:
    store = PostgresStore(dsn)
    store.attach(PlainSealer(stream))
    await store.start()
    stack.push_async_callback(store.close)
    return store


async def test_node_lost_inside_a_transaction_stops_no_other_node(
    survivor: PostgresStore, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = asyncio.Event()
    async with AsyncExitStack() as stack:
        relay, dsn = await stack.enter_async_context(relayed(postgres_dsn))
        with monkeypatch.context() as patch:
            patch.setattr(postgres_connection, "COMMAND_SECONDS", 1.0)  # for the connections of the lost node
            lost = await opened(stack, dsn, "lost")
            stack.callback(relay.pass_on)
            cut_off = lost.do(LoseLink(relay, gone, MoveMoney("1/hold", ACME, HELD, "EUR", 1)), RECORD)
            unfinished = asyncio.ensure_future(cut_off)
            await gone.wait()
        same = [
            asyncio.ensure_future(survivor.do(MoveMoney(f"2/{number}", ACME, HELD, "EUR", 1), RECORD))
            for number in range(3)
        ]
        # Other accounts, the accounts of all purchases, and what only has to be recorded go on.
        for number in range(5):
            bought = survivor.do(
                MoveMoney(f"3/{number}", BOB, HELD, "EUR", 1), MoveMoney(f"4/{number}", HELD, SALES, "EUR", 1), RECORD
            )
            assert not isinstance(await bought, Conflict)
            assert not isinstance(await survivor.do(UseNonce("k", f"{number}", 60.0), RECORD), Conflict)
        assert not any(one.done() for one in same)
        # PostgreSQL ends the transaction of the lost node before anybody has waited for too long.
        assert not any(isinstance(one, Conflict) for one in await asyncio.gather(*same))
        with pytest.raises(StoreUnavailableError):
            await unfinished
        assert await survivor.read(CheckLedger()) == []
        assert {row[1] for row in await survivor.read(ScanAudit())} == {"survivor"}


async def test_node_cut_from_the_store_does_not_serve_revoked_agents(
    survivor: PostgresStore, postgres_dsn: str
) -> None:
    endpoints = (make_endpoint("QUERY", "/seat", echo), make_endpoint("BOOK", "/seat", echo, impact="irreversible"))
    desk = Agent(agent_id=AGENT, name="desk", status="active")
    revoke = SetAgentStatus(AGENT, "REVOKE", frozenset({"active"}), "retired", "ops", "lost", "desk", "active")
    flips: asyncio.Queue[bool] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        relay, dsn = await stack.enter_async_context(relayed(postgres_dsn))
        store = open_store(dsn, role="shared")
        bench = await stack.enter_async_context(
            keeping(*endpoints, store=store, agents=(desk,), agents_stale_after=1.0)
        )
        stack.callback(relay.pass_on)
        bench.bench.server.agents.watch_age(flips.put_nowait)
        assert (await bench.send("BOOK", "/seat")).status == 200
        relay.swallow()
        assert not isinstance(await survivor.do(revoke), Conflict)
        assert await asyncio.wait_for(flips.get(), 10) is True
        for method in ("BOOK", "QUERY", "DISCOVER"):
            refused = await bench.send(method, "/seat" if method != "DISCOVER" else "/")
            assert (refused.status, refused.error["code"]) == (503, "agents-stale")
            assert refused.header("Retry-After") == "2"
        assert (await bench.send("BOOK", "/seat", agent=None)).status == 503
        assert (await bench.send("QUERY", "/seat", agent=None)).status == 200
        assert (await bench.send("DISCOVER", agent=None)).status == 200
        relay.pass_on()
        assert await asyncio.wait_for(flips.get(), 30) is False
        assert (await bench.send("QUERY", "/seat")).status == 410
        assert (await bench.send("BOOK", "/seat", agent=None)).status == 200
