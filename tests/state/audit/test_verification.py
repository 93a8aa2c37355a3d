"""Verification: every manipulation of a trail is detected and named."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.audit import trails

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.checkpoints import make_checkpoint
from bespeak.state.audit.record import (
    FIRST,
    KeptCheckpoint,
    KeptRecord,
    encode_header,
    jws_id,
    parse_compact,
    place_of,
    roll,
)
from bespeak.state.audit.trail import Signing, StoreTrail, StreamHead
from bespeak.state.audit.verification import (
    CheckpointCheck,
    Expectation,
    StreamCheck,
    StreamClaim,
    TrailFault,
    Verification,
)
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.key_files import SigningKey, trusted
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

AGENTS = [trails.ANN, trails.BOB, "", trails.ANN, trails.ANN, trails.BOB]
NEXT = generate_key()


async def make_trail(signing: Signing | None) -> list[bytes]:
    """Make a trail of two processes in turn, with records of the same agents and checkpoints of both."""
    one, two = trails.make_sealer(signing=signing, prefix="a"), trails.make_sealer(signing=signing, prefix="b")
    store = open_store("memory")
    await store.start()
    for sealer in (one, two, one, two):
        store.attach(sealer)
        await trails.append(store, AGENTS)
        if signing is not None:
            await trails.make_checkpointer(store, sealer).write()
    lines = await trails.exported(store)
    await store.close()
    return lines


TRAILS = {signing: asyncio.run(make_trail(signing)) for signing in ("each", "checkpoints", None)}
SIGNED = TRAILS["each"]


def rows(lines: list[bytes], kind: str) -> list[int]:
    return [index for index, line in enumerate(lines) if f'"type":"{kind}"'.encode() in line]


def line(lines: list[bytes], index: int) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(lines[index])
    return found


def check(lines: list[bytes], keys: Any = None, expected: Expectation | None = None) -> list[TrailFault]:
    """Verify lines with the key, or without one if no record among them is signed."""
    if keys is None:
        keys = trails.KEYS if any(b"eyJhbGciOiJFZERTQS" in one for one in lines) else {}
    with TemporaryDirectory() as folder:
        return asyncio.run(trails.faults_of_lines(lines, Path(folder) / "trail.jsonl", keys, expected))


def replaced(lines: list[bytes], index: int, **members: Any) -> list[bytes]:
    return [*lines[:index], msgspec.json.encode(line(lines, index) | members) + b"\n", *lines[index + 1 :]]


def rewritten(lines: list[bytes], index: int, **members: Any) -> list[bytes]:
    """Return the record with other content and the matching id: what an attacker without the key can do."""
    compact = parse_compact(line(lines, index)["jws"])
    payload = msgspec.json.encode(msgspec.json.decode(compact.payload) | members)
    signature = compact.signature
    jws = f"{compact.protected}.{encode64(payload).decode()}.{signature}"
    return replaced(lines, index, jws=jws, audit_id=jws_id(jws))


@pytest.mark.parametrize("signing", TRAILS)
def test_unchanged_trail_has_no_fault(signing: Signing | None) -> None:
    assert check(TRAILS[signing]) == []


def named(faults: list[TrailFault], row: dict[str, Any]) -> bool:
    """Return True if a fault names a record, by its id or its place."""
    place = (row["stream"], row["sequence"])
    return any(fault.audit_id == row["audit_id"] or (fault.stream, fault.sequence) == place for fault in faults)


def covered(signing: Signing | None) -> list[int]:
    """Return the records of a trail; without signatures nothing speaks for the last ones of its streams."""
    lines = TRAILS[signing]
    last = {line(lines, index)["stream"]: index for index in rows(lines, "record")} if signing is None else {}
    return [index for index in rows(lines, "record") if index not in last.values()]


MODES = st.sampled_from(list(TRAILS))


@settings(max_examples=60)
@given(MODES, st.data())
def test_a_changed_record_is_named(signing: Signing | None, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    index = data.draw(st.sampled_from(rows(lines, "record")))
    jws = line(lines, index)["jws"]
    at = data.draw(st.integers(0, len(jws) - 1))
    other = data.draw(st.sampled_from([char for char in "AQgw.9_-" if char != jws[at]]))
    faults = check(replaced(lines, index, jws=jws[:at] + other + jws[at + 1 :]))
    assert [fault.kind for fault in faults] == ["changed"]
    assert named(faults, line(lines, index))


@settings(max_examples=60)
@given(MODES, st.data())
def test_record_rewritten_with_a_matching_id_is_named(signing: Signing | None, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    index = data.draw(st.sampled_from(covered(signing)))
    changed = rewritten(lines, index, method="FORGED")
    faults = check(changed)
    assert named(faults, line(changed, index))
    assert {fault.kind for fault in faults} <= {"changed", "forged", "removed"}


@settings(max_examples=60)
@given(MODES, st.sampled_from(["stream", "sequence", "agent_id", "audit_id"]), st.data())
def test_a_changed_column_is_named(signing: Signing | None, column: str, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    index = data.draw(st.sampled_from(rows(lines, "record")))
    value: Any = 1000 if column == "sequence" else "0" * 64
    row = line(lines, index)
    changed = replaced(lines, index, **{column: value})
    faults = check(changed)
    assert named(faults, row) or named(faults, line(changed, index))
    assert any(fault.kind == "changed" for fault in faults)


@settings(max_examples=60)
@given(MODES, st.data())
def test_a_removed_record_is_named(signing: Signing | None, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    index = data.draw(st.sampled_from(covered(signing)))
    faults = check([*lines[:index], *lines[index + 1 :]])
    assert named(faults, line(lines, index))
    assert {fault.kind for fault in faults} <= {"removed", "truncated"}


@settings(max_examples=60)
@given(MODES, st.data())
def test_swapped_records_are_named(signing: Signing | None, data: st.DataObject) -> None:
    lines = list(TRAILS[signing])
    stream = data.draw(st.sampled_from(["a1", "b1"]))
    candidates = [index for index in rows(lines, "record") if line(lines, index)["stream"] == stream]
    one, two = sorted(data.draw(st.lists(st.sampled_from(candidates), min_size=2, max_size=2, unique=True)))
    moved = line(lines, one)
    lines[one], lines[two] = lines[two], lines[one]
    faults = check(lines)
    assert any(fault.kind == "reordered" and fault.audit_id == moved["audit_id"] for fault in faults)
    assert {fault.kind for fault in faults} == {"reordered"}


@settings(max_examples=60)
@given(MODES, st.data())
def test_a_repeated_record_is_named(signing: Signing | None, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    records = rows(lines, "record")
    index = data.draw(st.sampled_from(records))
    behind = data.draw(st.sampled_from([place for place in records if place >= index]))
    faults = check([*lines[: behind + 1], lines[index], *lines[behind + 1 :]])
    assert [fault.kind for fault in faults] == ["added"]
    assert named(faults, line(lines, index))


@settings(max_examples=40)
@given(st.sampled_from(["each", "checkpoints"]), st.integers(1, 23))
def test_truncation_before_a_checkpoint_is_named(signing: Signing, cut: int) -> None:
    lines = TRAILS[signing]
    faults = check(lines[:-cut])
    assert any(fault.kind == "truncated" and fault.stream == "b1" for fault in faults)


@settings(max_examples=40)
@given(st.sampled_from(["each", "checkpoints"]), st.data())
def test_a_changed_removed_moved_or_unsigned_checkpoint_is_named(signing: Signing, data: st.DataObject) -> None:
    lines = TRAILS[signing]
    checkpoints = rows(lines, "checkpoint")
    index = data.draw(st.sampled_from(checkpoints[:-1]))
    row = line(lines, index)
    header, payload, _ = row["jws"].split(".")
    unsigned = encode_header({"alg": "none", "typ": "checkpoint+jwt"}).decode() + payload + "."
    swapped = list(lines)
    swapped[index], swapped[index + 1] = swapped[index + 1], swapped[index]
    mutations = {
        "changed": replaced(lines, index, jws=f"{header}.{payload}A.x"),
        "removed": [*lines[:index], *lines[index + 1 :]],
        "moved": swapped,
        "repeated": [*lines[: index + 1], lines[index], *lines[index + 1 :]],
        "unsigned": replaced(lines, index, jws=unsigned, checkpoint_id=jws_id(unsigned)),
    }
    faults = check(data.draw(st.sampled_from(list(mutations.values()))))
    assert faults
    assert {fault.kind for fault in faults} == {"checkpoint"}


def test_removed_last_checkpoints_are_reported_by_later_records() -> None:
    last = rows(SIGNED, "checkpoint")[1:]
    faults = check([kept for index, kept in enumerate(SIGNED) if index not in last])
    assert [(fault.kind, fault.checkpoint_id) for fault in faults] == [
        ("checkpoint", line(SIGNED, last[0])["checkpoint_id"])
    ]


def test_checkpoint_by_an_unknown_key_is_named_and_not_trusted() -> None:
    stranger = make_checkpoint(
        SigningKey(generate_key()),
        [StreamHead("a1", 99, bytes(32))],
        server_id="rooms",
        issued_at=trails.NOW,
        previous=FIRST,
        position=0,
    )
    added = msgspec.json.encode({"type": "checkpoint", **msgspec.structs.asdict(stranger)}) + b"\n"
    faults = check([SIGNED[0], added, *SIGNED[1:]])
    assert [(fault.kind, fault.checkpoint_id) for fault in faults] == [("checkpoint", stranger.checkpoint_id)]


def forged(signing: Signing | None, key: Any = trails.KEY, previous: str | None = None) -> bytes:
    sealer = trails.make_sealer(signing=signing, key=key, prefix="forged")
    sealer.learn(trails.ANN, previous)
    sealed = sealer.seal(trails.ANN, {"agent_id": trails.ANN})
    return msgspec.json.encode({"type": "record", **msgspec.structs.asdict(sealed)}) + b"\n"


@pytest.mark.parametrize(
    ("added", "kind"),
    [(forged(None), "unsigned"), *[(forged(mode, generate_key()), "forged") for mode in ("each", "checkpoints")]],
)
@pytest.mark.parametrize("signing", ["each", "checkpoints"])
def test_stream_started_by_an_unknown_key_is_named(signing: Signing, added: bytes, kind: str) -> None:
    lines = TRAILS[signing]
    assert [(fault.kind, fault.stream) for fault in check([*lines, added])] == [(kind, "forged1")]


@pytest.mark.requirement("CORE-12-7")
def test_record_with_removed_signature_is_named() -> None:
    index = rows(SIGNED, "record")[3]
    _, payload, _ = line(SIGNED, index)["jws"].split(".")
    jws = encode_header({"alg": "none", "typ": "JWT"}).decode() + payload + "."
    changed = replaced(SIGNED, index, jws=jws, audit_id=jws_id(jws))
    faults = check(changed)
    assert any(fault.kind == "unsigned" and fault.audit_id == jws_id(jws) for fault in faults)


def test_record_with_a_wrong_predecessor_is_named() -> None:
    other = line(SIGNED, rows(SIGNED, "record")[1])["audit_id"]  # of Bob
    assert [fault.kind for fault in check([*SIGNED, forged("each", previous=other)])] == ["forged"]
    assert [fault.audit_id for fault in check([*SIGNED, forged("each", previous="e" * 64)])] == ["e" * 64]


def test_earlier_keys_are_accepted_and_untrusted_keys_are_not() -> None:
    lines = [*SIGNED, forged("each", NEXT, previous=line(SIGNED, rows(SIGNED, "record")[-2])["audit_id"])]
    assert check(lines, {**trails.KEYS, **trusted([NEXT])}) == []
    assert {fault.kind for fault in check(lines, trusted([NEXT]))} == {"forged", "checkpoint"}


@pytest.mark.anyio
async def test_tally_counts_the_verified_items(store: Store) -> None:
    sealer = trails.make_sealer()
    store.attach(sealer)
    await trails.append(store, [trails.ANN, trails.BOB, "", trails.ANN])
    written = await trails.make_checkpointer(store, sealer).write()
    await trails.append(store, [trails.ANN, trails.BOB])
    for keys in (trails.KEYS, {}):
        verification = Verification(StoreTrail(store, page=2), keys)
        assert [fault async for fault in verification.faults()] == []
        tally = verification.tally
        assert (tally.records, tally.agents, tally.streams, tally.checkpoints, tally.behind) == (6, 3, 1, 1, 2)
        assert (tally.signed, tally.unchecked, tally.unsigned) == ((6, 0, 0) if keys else (0, 6, 0))
        assert tally.last_checkpoint == written[0]


@pytest.mark.anyio
async def test_small_cache_of_heads_gives_the_same_result(memory: Store) -> None:
    memory.attach(trails.make_sealer())
    await trails.append(memory, [f"{number:064x}" for number in range(20)] * 3)
    verification = Verification(StoreTrail(memory), trails.KEYS, most_heads=2)
    assert [fault async for fault in verification.faults()] == []


@pytest.mark.anyio
async def test_two_concurrent_processes_leave_a_valid_trail(first: Store, second: Store) -> None:
    first.attach(trails.make_sealer(prefix="a"))
    second.attach(trails.make_sealer(prefix="b"))
    await asyncio.gather(trails.append(first, AGENTS * 5), trails.append(second, AGENTS * 5))
    assert await trails.faults_in(first) == []


def rewritten_to_the_end(lines: list[bytes], stream: str, start: int) -> list[bytes]:
    """Rewrite a stream from a record on, with matching hashes: all that is possible without the key."""
    made, renamed, digest = list(lines), dict[str, str](), b""
    for index in rows(lines, "record"):
        row = line(lines, index)
        compact = parse_compact(row["jws"])
        payload = msgspec.json.decode(compact.payload)
        before = payload["previous_audit_id"]
        payload["previous_audit_id"] = renamed.get(before, before)
        if row["stream"] != stream or row["sequence"] < start:
            continue
        if row["sequence"] == start:
            payload["method"] = "FORGED"
            digest = bytes.fromhex(payload["stream_digest"])
        payload["stream_digest"] = digest.hex()
        jws = f"{compact.protected}.{encode64(msgspec.json.encode(payload)).decode()}.{compact.signature}"
        renamed[row["audit_id"]] = jws_id(jws)
        digest = roll(digest, bytes.fromhex(jws_id(jws)))
        made = replaced(made, index, jws=jws, audit_id=jws_id(jws))
    return made


@pytest.mark.parametrize("start", [2, 5, 7, 12])
def test_rewritten_stream_is_detected_by_its_checkpoints(start: int) -> None:
    lines = TRAILS["checkpoints"]
    faults = check(rewritten_to_the_end(lines, "b1", start))
    assert any(fault.kind == "changed" and fault.checkpoint_id and fault.stream == "b1" for fault in faults)


def test_rewritten_unsigned_stream_is_only_detected_by_other_streams() -> None:
    lines = TRAILS[None]
    assert check(rewritten_to_the_end(lines, "b1", 8)) == []  # the limit that the guide tells of


def make_records(count: int) -> list[KeptRecord]:
    sealer = trails.make_sealer()
    sealer.learn(trails.ANN, None)
    made = []
    for position in range(count):
        sealed = sealer.seal(trails.ANN, {"agent_id": trails.ANN})
        made.append(KeptRecord(position, sealed.stream, sealed.sequence, trails.ANN, sealed.audit_id, sealed.jws))
    return made


RECORDS = make_records(9)


def follow(records: list[KeptRecord], *claims: StreamClaim) -> list[TrailFault]:
    check = StreamCheck("s1", claims)
    faults = [fault for record in records for fault in check.take(record, place_of(record.jws))]
    return [*faults, *check.end()]


def digest(count: int) -> str:
    return place_of(RECORDS[count].jws).stream_digest


def test_complete_stream_has_no_fault_and_missing_records_are_one_fault_for_each_gap() -> None:
    assert follow(RECORDS, StreamClaim(8, digest(8), "c2"), StreamClaim(3, digest(3), "c1")) == []
    [fault] = follow([*RECORDS[:2], *RECORDS[5:]], StreamClaim(5, digest(5), "c1"), StreamClaim(4, digest(4), "c0"))
    assert (fault.kind, fault.sequence) == ("removed", 3)
    assert fault.message == f"records 3 to 5 of the stream, before {RECORDS[5].audit_id}: 3 records were removed"
    faults = follow([*RECORDS[:2], *RECORDS[5:], RECORDS[3]])
    assert [(fault.kind, fault.sequence) for fault in faults] == [("reordered", 4), ("removed", 3), ("removed", 5)]


def test_checkpoints_report_removed_and_contradicting_records_and_odd_ones_do_not_raise() -> None:
    [fault] = follow([], StreamClaim(2, digest(2), "c1"), StreamClaim(5, digest(5), "c2"))
    assert (fault.kind, fault.sequence, fault.checkpoint_id) == ("truncated", 1, "c2")
    assert "5 records were cut off" in fault.message
    [fault] = follow(RECORDS, StreamClaim(4, "f" * 64, "c1"))
    assert (fault.kind, fault.audit_id, fault.sequence) == ("changed", RECORDS[3].audit_id, 4)
    odd = KeptRecord(1, "s1", 1, "", "not hexadecimal", "\udcff")
    assert [fault.kind for fault in follow([odd, RECORDS[1]])] == ["changed"]


def make_chain(count: int) -> list[KeptCheckpoint]:
    previous, made = FIRST, []
    for number in range(1, count + 1):
        head = StreamHead("s1", number, bytes([number]) * 32)
        one = make_checkpoint(
            SigningKey(trails.KEY), [head], server_id="rooms", issued_at=trails.NOW, previous=previous, position=number
        )
        previous = one.checkpoint_id
        made.append(KeptCheckpoint(number, one.checkpoint_id, one.jws))
    return made


CHAIN = make_chain(4)


def checkpoint_check_follow(chain: list[KeptCheckpoint]) -> tuple[list[TrailFault], CheckpointCheck]:
    check = CheckpointCheck(trails.KEYS)
    faults = [fault for kept in chain for fault in check.take(kept)]
    return [*faults, *check.end()], check


def test_complete_chain_yields_its_claims_and_an_invalid_checkpoint_none() -> None:
    faults, check = checkpoint_check_follow(CHAIN)
    assert faults == []
    assert check.claims["s1"][-1] == StreamClaim(4, "04" * 32, CHAIN[3].checkpoint_id)
    assert (check.count, check.last) == (4, CHAIN[3].checkpoint_id)
    faults, check = checkpoint_check_follow(
        [KeptCheckpoint(1, "0" * 64, CHAIN[0].jws), KeptCheckpoint(2, "x", "nonsense")]
    )
    assert [fault.kind for fault in faults] == ["checkpoint", "checkpoint"]
    assert check.claims == {}


@pytest.mark.parametrize(("order", "wrong"), [([0, 2, 3], [1]), ([2, 3], [1]), ([0, 2, 1, 3, 3], [1, 3])])
def test_missing_moved_or_repeated_checkpoint_is_named(order: list[int], wrong: list[int]) -> None:
    faults, _ = checkpoint_check_follow([CHAIN[number] for number in order])
    assert [fault.checkpoint_id for fault in faults] == [CHAIN[number].checkpoint_id for number in wrong]


def test_fault_as_json_omits_unknown_fields() -> None:
    fault = TrailFault("removed", "record 2 is gone", stream="s", sequence=2)
    expected = {"kind": "removed", "message": "record 2 is gone", "stream": "s", "sequence": 2}
    assert msgspec.json.decode(msgspec.json.encode(fault)) == expected
