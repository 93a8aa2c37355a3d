"""Records and checkpoints in the store: appended in order, read by id, agent and position."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bespeak.state.store.commands.audit import (
    CHECKPOINTS,
    AppendAudit,
    AppendCheckpoint,
    AuditExtent,
    CountAuditAgents,
    LastCheckpoint,
    LatestAudit,
    ReadAudit,
    ReadChainHead,
    ReadCheckpoint,
    ScanAudit,
    ScanCheckpoints,
)
from bespeak.state.store.store import Command, Conflict, Sealed, Statement, Steps, Store

pytestmark = pytest.mark.anyio


async def append(store: Store, *agents: str) -> list[Sealed]:
    done = await store.do(*(AppendAudit(agent, {"n": number}) for number, agent in enumerate(agents)))
    assert not isinstance(done, Conflict)
    return list(done)


async def test_records_are_read_in_write_order(store: Store) -> None:
    records = [await append(store, agent) for agent in ("ann", "bob", "ann", "")]
    rows = await store.read(ScanAudit())
    assert [row[4] for row in rows] == [record[0].audit_id for record in records]
    assert [row[2] for row in rows] == [1, 2, 3, 4]
    page = await store.read(ScanAudit(after=rows[1][0], limit=1))
    assert [tuple(row) for row in page] == [tuple(rows[2])]
    assert [row[3] for row in await store.read(ScanAudit(agent_id="ann"))] == ["ann", "ann"]
    assert await store.read(AuditExtent()) == rows[-1][0]
    assert await store.read(CountAuditAgents()) == 3


async def test_latest_records_can_be_read_first(store: Store) -> None:
    for agent in ("ann", "bob", "ann"):
        await append(store, agent)
    assert [row[2] for row in await store.read(LatestAudit(2))] == [3, 2]
    assert [row[2] for row in await store.read(LatestAudit(5, "ann"))] == [3, 1]


async def test_a_record_is_found_by_its_id_and_as_the_head_of_its_agent(store: Store) -> None:
    [first] = await append(store, "ann")
    [second] = await append(store, "ann")
    row, head = await store.read(ReadAudit(first.audit_id)), await store.read(ReadChainHead("ann"))
    assert (row[4], row[5]) == (first.audit_id, first.jws)
    assert head[4] == second.audit_id
    assert await store.read(ReadAudit("none")) is None
    assert await store.read(ReadChainHead("bob")) is None


class PutRecord(Command, frozen=True):
    """Store a record at a position, as an import does."""

    position: int
    audit_id: str

    def steps(self) -> Steps:
        sql = "INSERT INTO audit (position, stream, sequence, agent_id, audit_id, jws) VALUES (?, 's', 1, 'a', ?, '')"
        yield Statement(sql, (self.position, self.audit_id))


async def test_a_record_is_found_by_its_id_at_any_position(store: Store) -> None:
    ids = {position: f"{position % 2:06x}{position:058x}" for position in (1, 2, 1023, 1024, 99_999, 1 << 50)}
    await store.do(*(PutRecord(position, audit_id) for position, audit_id in ids.items()))
    found = {position: (await store.read(ReadAudit(audit_id)))[0] for position, audit_id in ids.items()}
    assert found == {position: position for position in ids}
    assert await store.read(ReadAudit("0" * 64)) is None


async def test_an_empty_trail_has_no_extent(store: Store) -> None:
    assert await store.read(AuditExtent()) == 0
    assert await store.read(CountAuditAgents()) == 0


async def test_records_of_other_streams_are_distinguished(first: Store, second: Store) -> None:
    await append(first, "ann")
    [other] = await append(second, "ann")
    rows = await first.read(ScanAudit(other_than="first"))
    assert [(row[1], row[4]) for row in rows] == [("second", other.audit_id)]


async def test_checkpoints_follow_each_other(store: Store) -> None:
    heard = asyncio.Event()
    store.watch(CHECKPOINTS, heard.set)
    assert await store.do(LastCheckpoint()) == [None]
    await store.do(AppendCheckpoint("c1", "jws 1"))
    await store.do(AppendCheckpoint("c2", "jws 2"))
    last = await store.do(LastCheckpoint())
    assert not isinstance(last, Conflict)
    assert tuple(last[0]) == ("c2", "jws 2")
    rows = await store.read(ScanCheckpoints())
    assert [tuple(row[1:]) for row in rows] == [("c1", "jws 1"), ("c2", "jws 2")]
    assert (await store.read(ReadCheckpoint("c1")))[2] == "jws 1"
    assert await store.read(ReadCheckpoint("c3")) is None
    await heard.wait()


async def test_checkpoints_of_two_processes_make_one_chain(first: Store, second: Store) -> None:
    await first.do(AppendCheckpoint("0", ""))

    async def write(store: Store, name: str) -> None:
        for number in range(8):

            def then(results: Any, number: int = number) -> list[AppendCheckpoint]:
                return [AppendCheckpoint(f"{name}{number}", results[0][0])]

            await store.do(LastCheckpoint(), then=then)

    await asyncio.gather(write(first, "a"), write(second, "b"))
    rows = await first.read(ScanCheckpoints())
    assert [row[2] for row in rows[1:]] == [row[1] for row in rows[:-1]]
