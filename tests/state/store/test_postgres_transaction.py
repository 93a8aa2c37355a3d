"""Turns to seal: one at a time, kept after the commit, taken back otherwise, and settled after an outage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.state.store.sealing import PlainSealer

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.postgres_connection import Address, Connection
from bespeak.state.store.postgres_transaction import LateTurn, Sealing
from bespeak.state.store.store import Seal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def connection(postgres_dsn: str) -> AsyncIterator[Connection]:
    store = PostgresStore(postgres_dsn)
    store.attach(PlainSealer("earlier"))
    await store.start()
    await store.do(AppendAudit("known", {}))
    await store.do(AppendAudit("known", {}))
    await store.close()
    connection = await Address(postgres_dsn, "full").connect()
    yield connection
    await connection.close()


@pytest.fixture
def sealing() -> Sealing:
    sealing = Sealing()
    sealing.sealer = PlainSealer()
    return sealing


async def test_heads_of_all_chains_are_read_at_once(sealing: Sealing, connection: Connection) -> None:
    async with sealing.turn():
        await sealing.learn(connection, ["known", "new", "known"])
        assert sealing.seal(Seal("known", {})).audit_id == "plain-1<earlier-2"
        assert sealing.seal(Seal("new", {})).audit_id == "plain-2<"
        assert (await sealing.learn_and_seal(connection, Seal("known", {}))).audit_id == "plain-3<plain-1"


async def test_records_sealed_before_an_error_are_discarded(sealing: Sealing, connection: Connection) -> None:
    async def fail() -> None:
        async with sealing.turn():
            await sealing.learn_and_seal(connection, Seal("a", {}))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    async with sealing.turn():
        assert (await sealing.learn_and_seal(connection, Seal("a", {}))).audit_id == "plain-1<"


@pytest.mark.parametrize("committed", [True, False])
async def test_chain_continues_from_stored_records_after_an_outage(
    sealing: Sealing, connection: Connection, committed: bool
) -> None:
    async def lose() -> None:
        async with sealing.turn():
            sealed = await sealing.learn_and_seal(connection, Seal("a", {}))
            if committed:
                await connection.fetch(
                    "INSERT INTO audit (stream, sequence, agent_id, audit_id, jws) VALUES ($1, $2, $3, $4, $5)",
                    *(sealed.stream, sealed.sequence, sealed.agent_id, sealed.audit_id, sealed.jws),
                )
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await lose()
    async with sealing.turn():
        pass  # nothing is sealed, so nothing is decided
    async with sealing.turn():
        following = await sealing.learn_and_seal(connection, Seal("a", {}))
    assert following.audit_id == ("plain-2<plain-1" if committed else "plain-1<")


async def test_those_behind_a_lost_database_are_refused_at_once(sealing: Sealing) -> None:
    begun = asyncio.Event()

    async def lose() -> None:
        async with sealing.turn():
            begun.set()
            await asyncio.sleep(0)
            raise ConnectionResetError

    async def wait() -> None:
        await begun.wait()
        async with sealing.turn():
            raise AssertionError("the turn was taken")

    lost, *behind = await asyncio.gather(lose(), wait(), wait(), return_exceptions=True)
    assert isinstance(lost, ConnectionResetError)
    assert [type(error) for error in behind] == [StoreUnavailableError] * 2
    async with sealing.turn():
        pass


async def test_turn_is_taken_at_the_first_record_only(sealing: Sealing, connection: Connection) -> None:
    async with LateTurn(sealing) as first, LateTurn(sealing) as second:
        await second.seal(connection, Seal("a", {}))
        await second.seal(connection, Seal("b", {}))
        first.discard()  # it has sealed nothing, so this concerns nobody
    async with LateTurn(sealing) as third:
        assert (await third.seal(connection, Seal("a", {}))).audit_id == "plain-3<plain-1"
        third.discard()
    async with LateTurn(sealing) as last:
        assert (await last.seal(connection, Seal("b", {}))).audit_id == "plain-3<plain-2"


async def test_sealing_out_of_turn_or_without_a_sealer_is_refused(sealing: Sealing, connection: Connection) -> None:
    await sealing.learn(connection, ["a"])
    with pytest.raises(StoreError, match="only in its turn"):
        sealing.seal(Seal("a", {}))
    async with Sealing().turn():
        with pytest.raises(StoreError, match="no sealer"):
            await Sealing().learn(connection, ["a"])
