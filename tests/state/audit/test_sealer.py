"""Sealing: places in chains and streams, signatures, and what happens when a transaction fails."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest
from tests.state.audit.trails import ANN, BOB, KEYS, append, append_one, faults_in, make_sealer

from bespeak.errors import StoreError
from bespeak.state.audit.record import FIRST, parse_compact, payload_of, roll
from bespeak.state.audit.trail import ChainSealer, StreamHead
from bespeak.state.identity.key_files import check_signature
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.store import Command, Sealed, Statement, Steps, Store


def sealed(sealer: ChainSealer, agent: str, **payload: Any) -> tuple[Sealed, dict[str, Any]]:
    if not sealer.knows(agent):
        sealer.learn(agent, None)
    record = sealer.seal(agent, payload)
    content = payload_of(record.jws)
    assert content is not None
    return record, content


@pytest.mark.requirement("CORE-12-5")
def test_record_refers_to_its_predecessors_by_agent_and_stream() -> None:
    sealer = make_sealer()
    one, first = sealed(sealer, ANN, method="BOOK")
    two, second = sealed(sealer, BOB)
    _, third = sealed(sealer, ANN)
    assert (first["previous_audit_id"], second["previous_audit_id"]) == (FIRST, FIRST)
    assert third["previous_audit_id"] == one.audit_id
    assert [content["sequence"] for content in (first, second, third)] == [1, 2, 3]
    assert first["stream_digest"] == FIRST
    rolled = roll(roll(bytes(32), bytes.fromhex(one.audit_id)), bytes.fromhex(two.audit_id))
    assert third["stream_digest"] == rolled.hex()
    assert first["method"] == "BOOK"


@pytest.mark.requirement("CORE-10.3-2", "CORE-12-4")
def test_the_audit_id_is_the_hash_of_the_signed_text() -> None:
    record, _ = sealed(make_sealer(), ANN)
    compact = parse_compact(record.jws)
    assert compact is not None
    assert record.audit_id == sha256(record.jws.encode()).hexdigest()
    assert check_signature(compact, KEYS) == "good"
    assert compact.header["typ"] == "JWT"


@pytest.mark.requirement("CORE-12-6")
def test_records_without_a_key_are_marked_as_unsigned_and_empty_payloads_are_sealed_too() -> None:
    record, content = sealed(make_sealer(signing=None), ANN)
    compact = parse_compact(record.jws)
    assert (compact.header["alg"], compact.signature) == ("none", "")
    assert content["signing"] == "none"
    record, content = sealed(make_sealer(), "")
    assert content.keys() == {"stream", "sequence", "stream_digest", "previous_audit_id", "signing"}
    assert record.agent_id == ""


def test_with_checkpoints_only_the_first_record_of_a_stream_is_signed() -> None:
    sealer = make_sealer(signing="checkpoints")
    verdicts = []
    for _ in range(3):
        compact = parse_compact(sealed(sealer, ANN)[0].jws)
        assert compact is not None
        verdicts.append(check_signature(compact, KEYS))
    assert verdicts == ["good", "unsigned", "unsigned"]


def test_first_record_follows_the_stored_head_and_heads_contain_only_committed_records() -> None:
    sealer = make_sealer()
    sealer.learn(ANN, "e" * 64)
    _, content = sealed(sealer, ANN)
    assert content["previous_audit_id"] == "e" * 64
    sealer = make_sealer()
    record, _ = sealed(sealer, ANN)
    assert sealer.heads() == (StreamHead("s1", 0, bytes(32)),)
    sealer.keep()
    assert sealer.heads() == (StreamHead("s1", 1, roll(bytes(32), bytes.fromhex(record.audit_id))),)


def test_after_a_failed_commit_another_stream_begins_and_the_heads_are_read_again() -> None:
    sealer = make_sealer()
    one, _ = sealed(sealer, ANN)
    sealer.keep()
    sealed(sealer, ANN)
    sealed(sealer, BOB)
    sealer.discard()
    assert not sealer.knows(ANN)
    assert not sealer.knows(BOB)
    sealer.learn(ANN, one.audit_id)
    record, content = sealed(sealer, ANN)
    assert (record.stream, record.sequence) == ("s2", 1)
    assert (content["previous_audit_id"], content["stream_digest"]) == (one.audit_id, FIRST)
    sealer.keep()
    assert [(head.stream, head.count) for head in sealer.heads()] == [("s1", 1), ("s2", 1)]


def test_discarding_without_sealed_records_keeps_the_stream() -> None:
    sealer = make_sealer()
    sealed(sealer, ANN)
    sealer.keep()
    sealer.discard()
    sealer.learn(BOB, None)
    sealer.discard()
    assert sealer.stream == "s1"
    assert not sealer.knows(BOB)
    assert sealer.knows(ANN)


def test_cache_of_heads_is_bounded_and_keeps_uncommitted_ones() -> None:
    sealer = make_sealer(heads=2)
    for agent in (ANN, BOB, "c" * 64):
        sealed(sealer, agent)
    assert sealer.knows(ANN)
    sealer.keep()
    assert not sealer.knows(ANN)
    assert sealer.knows(BOB)


def test_callback_runs_after_the_given_number_of_committed_records() -> None:
    calls: list[int] = []
    sealer = make_sealer()
    sealer.call_every(3, lambda: calls.append(sealer.heads()[-1].count))
    for _ in range(7):
        sealed(sealer, ANN)
        sealer.keep()
    assert calls == [3, 6]


def test_the_first_record_behind_a_checkpoint_names_it_also_after_a_failure() -> None:
    sealer = make_sealer()
    sealer.anchor("c" * 64)
    assert sealed(sealer, ANN)[1]["checkpoint_id"] == "c" * 64
    sealer.discard()
    assert sealed(sealer, ANN)[1]["checkpoint_id"] == "c" * 64
    sealer.keep()
    assert "checkpoint_id" not in sealed(sealer, ANN)[1]
    sealer.discard()
    assert "checkpoint_id" not in sealed(sealer, ANN)[1]


class Failing(Command, frozen=True):
    """Something that the database refuses after a record was sealed."""

    def steps(self) -> Steps:
        yield Statement("INSERT INTO no_such_table (a) VALUES (1)")


@pytest.mark.anyio
async def test_a_unit_that_fails_leaves_a_trail_without_a_fault(store: Store) -> None:
    store.attach(make_sealer())
    await append(store, [ANN, BOB])
    with pytest.raises(StoreError):
        await store.do(Failing(), AppendAudit(ANN, {"agent_id": ANN}))
    await append(store, [ANN, BOB, ""])
    assert await faults_in(store) == []


@pytest.mark.anyio
async def test_evicted_heads_are_found_again_in_the_store(store: Store) -> None:
    store.attach(make_sealer(heads=1))
    records = await append(store, [ANN, BOB, ANN, BOB])
    contents = [payload_of(record.jws) for record in records]
    assert contents[2] is not None
    assert contents[2]["previous_audit_id"] == records[0].audit_id
    assert await faults_in(store) == []


@pytest.mark.anyio
async def test_event_of_an_operator_is_read_back_unchanged(memory: Store) -> None:
    memory.attach(make_sealer())
    value = {'"stream"': 'äöü \u2028 " \\', "n": 1.5}
    record = await append_one(memory, ANN, extra={"input": value})
    content = payload_of(record.jws)
    assert content["extra"] == {"input": value}
    assert msgspec.json.encode(content)
