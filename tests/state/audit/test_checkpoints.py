"""Writing checkpoints: at start, at the end, in between, and over what other processes left."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.state.audit.trails import (
    ANN,
    BOB,
    KEY,
    KEYS,
    NOW,
    append,
    append_one,
    faults_in,
    make_checkpointer,
    make_sealer,
    sealing,
)

from bespeak.errors import StoreError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.checkpoints import BoundStream, make_checkpoint, read_checkpoint
from bespeak.state.audit.record import FIRST, encode_header, jws_id, parse_compact, payload_of
from bespeak.state.audit.trail import StreamHead
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.key_files import SigningKey, check_signature
from bespeak.state.store.commands import audit
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement, Steps, Store

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[3]


async def bound(store: Store) -> list[dict[str, int]]:
    """Return the counts of each checkpoint, by stream."""
    found = []
    previous = FIRST
    for _, checkpoint_id, jws in await store.read(audit.ScanCheckpoints()):
        checkpoint = read_checkpoint(jws)
        assert checkpoint.previous_checkpoint_id == previous
        previous = checkpoint_id
        found.append({entry.stream: entry.count for entry in checkpoint.streams})
    return found


async def changes(store: Store) -> list[str]:
    """Return what each checkpoint records about signing."""
    found = [read_checkpoint(jws) for _, _, jws in await store.read(audit.ScanCheckpoints())]
    return [checkpoint.signing for checkpoint in found if checkpoint is not None]


async def test_first_start_records_that_signing_begins(store: Store) -> None:
    for _ in range(2):
        checkpointer = make_checkpointer(store, make_sealer())
        await checkpointer.start()
        await checkpointer.stop()
    assert await bound(store) == [{}]
    assert await changes(store) == ["begins"]


async def test_signing_that_ends_and_begins_again_is_recorded_with_the_streams_between(store: Store) -> None:
    sealer = make_sealer(prefix="signed")
    store.attach(sealer)
    await make_checkpointer(store, sealer).start()
    await append(store, [ANN])
    for prefix in ("plain", "other"):
        plain = make_sealer(signing=None, prefix=prefix)
        store.attach(plain)
        await make_checkpointer(store, plain).end()
        await append(store, [ANN, BOB])
    again = make_sealer(prefix="again")
    await make_checkpointer(store, again).start()
    assert await changes(store) == ["begins", "ends", "begins"]
    assert {"plain1": 2, "other1": 2}.items() <= (await bound(store))[-1].items()


async def test_end_stays_recorded_while_another_process_still_signs(store: Store) -> None:
    _, running = sealing(store)
    await running.start()
    await make_checkpointer(store, make_sealer(signing=None, prefix="plain")).end()
    await append(store, [ANN])
    await running.stop()
    assert await changes(store) == ["begins", "ends", "ends"]


async def test_new_key_vouches_at_once_for_the_checkpoints_before_it(store: Store) -> None:
    await make_checkpointer(store, make_sealer()).start()
    await make_checkpointer(store, make_sealer(), key=generate_key()).start()
    assert await changes(store) == ["begins", ""]


async def test_untrusted_checkpoint_does_not_end_signing(store: Store) -> None:
    await make_checkpointer(store, make_sealer()).start()
    forged = make_checkpoint(
        SigningKey(generate_key()), [], server_id="rooms", issued_at=1.0, previous=FIRST, position=0, signing="ends"
    )
    await store.do(audit.AppendCheckpoint(forged.checkpoint_id, forged.jws))
    await make_checkpointer(store, make_sealer(prefix="b")).start()
    assert await changes(store) == ["begins", "ends", ""]


async def test_stopping_writes_a_checkpoint(store: Store) -> None:
    _, checkpointer = sealing(store)
    await checkpointer.start()
    await append(store, [ANN, BOB, ANN])
    await checkpointer.stop()
    assert await bound(store) == [{}, {"s1": 3}]
    assert await faults_in(store) == []


async def test_checkpoint_holds_only_new_records(store: Store) -> None:
    _, checkpointer = sealing(store)
    await append(store, [ANN, BOB])
    assert len(await checkpointer.write()) == 1
    assert await checkpointer.write() == []
    await append(store, [ANN])
    await checkpointer.write()
    assert await bound(store) == [{"s1": 2}, {"s1": 3}]


async def test_checkpoint_is_written_after_the_configured_number_of_records(memory: Store) -> None:
    _, checkpointer = sealing(memory, every=3)
    written = asyncio.Event()
    await checkpointer.start()
    memory.watch(audit.CHECKPOINTS, written.set)
    await append(memory, [ANN, BOB, ANN])
    await written.wait()
    assert await bound(memory) == [{}, {"s1": 3}]
    await checkpointer.stop()


async def test_start_writes_a_checkpoint_for_records_of_a_killed_process(store: Store) -> None:
    store.attach(make_sealer(prefix="old"))
    await append(store, [ANN, BOB, ANN])  # and then it was killed: no checkpoint
    sealer = make_sealer(prefix="new")
    store.attach(sealer)
    checkpointer = make_checkpointer(store, sealer)
    await checkpointer.start()
    record = await append_one(store, ANN)
    await checkpointer.stop()
    assert await bound(store) == [{"old1": 3}, {"new1": 1}]
    assert payload_of(record.jws)["checkpoint_id"] == (await store.read(audit.ScanCheckpoints()))[0][1]
    assert await faults_in(store) == []


async def test_start_continues_after_the_last_checkpoint(store: Store) -> None:
    old = make_sealer(prefix="old")
    store.attach(old)
    await append(store, [ANN] * 4)
    await make_checkpointer(store, old).write()
    await append(store, [ANN] * 2)
    sealer = make_sealer(prefix="new")
    await make_checkpointer(store, sealer).start()
    assert await bound(store) == [{"old1": 4}, {"old1": 6}]


async def test_two_processes_checkpoint_each_others_streams(first: Store, second: Store) -> None:
    one, two = make_sealer(prefix="a"), make_sealer(prefix="b")
    first.attach(one)
    second.attach(two)
    mine, theirs = make_checkpointer(first, one), make_checkpointer(second, two)
    await mine.start()
    await theirs.start()
    for _ in range(3):
        await append(first, [ANN, BOB])
        await append(second, [ANN])
    await mine.write()
    await append(second, [BOB])
    await theirs.stop()
    await mine.stop()
    assert (await bound(first))[:3] == [{}, {"a1": 6, "b1": 3}, {"a1": 6, "b1": 4}]
    assert await faults_in(first) == []


class Failing(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("INSERT INTO no_such_table (a) VALUES (1)")


async def test_abandoned_stream_is_checkpointed(store: Store) -> None:
    sealer, checkpointer = sealing(store)
    await append(store, [ANN, BOB])
    sealer.seal(ANN, {})
    sealer.discard()
    await append(store, [ANN])
    await checkpointer.write()
    assert await bound(store) == [{"s1": 2, "s2": 1}]
    assert await faults_in(store) == []


async def test_stored_records_of_a_failed_commit_are_checkpointed(memory: Store) -> None:
    sealer, checkpointer = sealing(memory)
    await append(memory, [ANN])
    record = sealer.seal(ANN, {"agent_id": ANN})
    sealer.discard()
    await memory.do(Kept(record.stream, record.sequence, ANN, record.audit_id, record.jws))
    await append(memory, [ANN])
    await checkpointer.write()
    assert await bound(memory) == [{"s1": 2, "s2": 1}]
    assert await faults_in(memory) == []


async def test_sole_process_does_not_read_its_own_stream_again(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sealer, checkpointer = sealing(memory)
    await checkpointer.write()
    asked: list[Command] = []
    read = memory.read
    monkeypatch.setattr(memory, "read", lambda command: asked.append(command) or read(command))
    await append(memory, [ANN, BOB])
    await checkpointer.write()
    assert not any(isinstance(command, audit.ScanAudit) for command in asked)
    sealer.seal(ANN, {})
    sealer.discard()
    await append(memory, [ANN])
    await checkpointer.write()
    assert any(isinstance(command, audit.ScanAudit) for command in asked)
    assert await bound(memory) == [{"s1": 2}, {"s2": 1}]


class Kept(Command, frozen=True):
    """A row that is stored unchanged and not sealed."""

    stream: str
    sequence: int
    agent_id: str
    audit_id: str
    jws: str

    def steps(self) -> Steps:
        yield Statement(
            "INSERT INTO audit (stream, sequence, agent_id, audit_id, jws) VALUES (?, ?, ?, ?, ?)",
            (self.stream, self.sequence, self.agent_id, self.audit_id, self.jws),
        )


@pytest.mark.parametrize("row", [("x", 1, "", "zz", "no jws"), ("x", 3, "", "00", "e30.e30."), ("x", 0, "", "", "")])
async def test_invalid_rows_do_not_stop_the_checkpointer(memory: Store, row: tuple[Any, ...]) -> None:
    await memory.do(Kept(*row))
    sealer = make_sealer()
    memory.attach(sealer)
    await append(memory, [ANN])
    await make_checkpointer(memory, sealer).start()
    assert await bound(memory) == [{"s1": 1}]


async def test_last_checkpoint_by_an_unknown_key_is_not_trusted(memory: Store) -> None:
    stranger, sealer = make_sealer(prefix="x"), make_sealer()
    memory.attach(stranger)
    await append(memory, [ANN] * 3)
    other = generate_key()
    await make_checkpointer(memory, stranger, key=other).write()
    await memory.do(audit.AppendCheckpoint("0" * 64, "no checkpoint"))
    await make_checkpointer(memory, sealer).start()
    checkpoint = read_checkpoint((await memory.read(audit.ScanCheckpoints()))[-1][2])
    assert checkpoint is not None
    assert [entry.count for entry in checkpoint.streams] == [3]


async def test_store_outage_does_not_stop_the_checkpointer(memory: Store) -> None:
    _, checkpointer = sealing(memory)
    await append(memory, [ANN])
    with pytest.raises(StoreError):
        await memory.do(Failing(), audit.AppendAudit(ANN, {}))
    await memory.do(Drop())
    await checkpointer.stop()


class Drop(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("DROP TABLE checkpoints")


WRITER = """
import asyncio, sys
from tests.state.audit.trails import ANN, BOB, append, make_sealer
from bespeak.state.store.settings import open_store

async def main():
    store = open_store(sys.argv[1])
    await store.start()
    store.attach(make_sealer(signing=None, prefix=sys.argv[2]))
    while True:
        for record in await append(store, [ANN, BOB, ANN, ""]):
            print(record.audit_id, flush=True)

asyncio.run(main())
"""


@pytest.mark.process
async def test_records_survive_a_kill_and_are_checkpointed_by_the_next_process(tmp_path: Path) -> None:
    place = str(tmp_path / "bespeak.db")
    told: list[str] = []
    for prefix in ("one", "two"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, place, prefix, stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        told += [(await process.stdout.readline()).decode().strip() for _ in range(10)]
        process.kill()
        told += [line.decode().strip() async for line in process.stdout if line.endswith(b"\n")]
        await process.wait()
    store = open_store(place)
    await store.start()
    try:
        sealer = make_sealer(prefix="three")
        store.attach(sealer)
        checkpointer = make_checkpointer(store, sealer)
        await checkpointer.start()
        await checkpointer.stop()
        assert await faults_in(store) == []
        rows = await store.read(audit.ScanAudit(limit=100_000))
        assert {row[4] for row in rows} >= set(told)
        counts = Counter(row[1] for row in rows)
        assert await bound(store) == [dict(counts)]
    finally:
        await store.close()


def test_checkpoint_is_signed_and_holds_the_position_of_each_stream() -> None:
    head = StreamHead("s1", 7, bytes(range(32)))
    made = make_checkpoint(SigningKey(KEY), [head], server_id="rooms", issued_at=NOW, previous=FIRST, position=12)
    compact, read = parse_compact(made.jws), read_checkpoint(made.jws)
    assert compact is not None
    assert read is not None
    assert check_signature(compact, KEYS) == "good"
    assert made.checkpoint_id == jws_id(made.jws)
    assert read.streams == (BoundStream("s1", 7, bytes(range(32)).hex()),)
    assert (read.server_id, read.previous_checkpoint_id, read.position) == ("rooms", FIRST, 12)
    assert read.issued_at == "2026-05-01T12:00:00.000Z"


def test_record_is_not_accepted_as_checkpoint() -> None:
    sealer = make_sealer()
    sealer.learn(ANN, None)
    assert read_checkpoint(sealer.seal(ANN, {}).jws) is None


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"streams": 1}'])
def test_text_without_claims_is_not_a_checkpoint(payload: bytes) -> None:
    header = encode_header(SigningKey(KEY).header("checkpoint+jwt"))
    assert read_checkpoint((header + encode64(payload)).decode() + ".x") is None
