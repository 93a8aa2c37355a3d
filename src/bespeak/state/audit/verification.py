"""Verification of a trail: each stream by itself, then against the checkpoints that claim something about it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal

import msgspec

from bespeak.protocol.exchange.instant import read_instant
from bespeak.state.audit import record as records
from bespeak.state.audit.checkpoints import BEGINS, ENDS, Checkpoint, read_checkpoint
from bespeak.state.audit.record import FIRST, KeptCheckpoint, KeptRecord, RecordPlace, jws_id, parse_compact
from bespeak.state.audit.trail import RECORD, Trail
from bespeak.state.identity.jws import Jws
from bespeak.state.identity.key_files import SignatureStatus, TrustedKeys, check_signature

Faults = Iterator["TrailFault"]
_MOST_HEADS: Final = 100_000  # limit of chains whose last record is in memory; others are looked up


@dataclass(frozen=True, slots=True)
class Expectation:
    """The configuration of the server, as far as it is known."""

    sign: str | None = None  # `each`, `checkpoints` or `none`; None if the configuration is not known
    server_ids: frozenset[str] = frozenset()  # ids that the server has had; empty for any
    replaced: Mapping[str, float] = field(default_factory=dict)  # when keys were replaced, since 1970, by key id


TrailFaultKind = Literal[
    "changed", "removed", "reordered", "added", "forged", "unsigned", "truncated", "checkpoint", "foreign"
]
"""Kind of a fault. `forged`: the signature is not by a trusted key; `checkpoint`: the fault is in a checkpoint;
`foreign`: it is of another server.
"""


class TrailFault(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: TrailFaultKind
    message: str
    audit_id: str = ""  # id of the record; empty if the record is missing and its id is unknown
    stream: str = ""
    sequence: int = 0
    checkpoint_id: str = ""


class StreamClaim(msgspec.Struct, frozen=True):
    count: int
    digest: str
    checkpoint_id: str
    begins: bool = False  # True if signing began with this checkpoint
    replaced: float = inf  # time at which the key that vouches for it was replaced; infinity for the current key


class RecordGap(msgspec.Struct, frozen=True):
    first: int
    last: int
    behind: str  # record found in their place


class StreamCheck:
    def __init__(self, stream: str, claims: Iterable[StreamClaim] = ()) -> None:
        """Check a stream against the claims of checkpoints, in the order they were written."""
        self._stream = stream
        self._digest = bytes(records.DIGEST_SIZE)
        self._last = ""
        self._gaps: list[RecordGap] = []
        self._claims = sorted(claims, key=lambda claim: claim.count, reverse=True)
        self.count = 0
        self.bound = self._claims[0].count if self._claims else 0  # number of records that checkpoints cover
        # Number of records from before signing began.
        self.adopted = max((claim.count for claim in self._claims if claim.begins), default=0)
        self.has_first = False  # True if the first record of the stream was read
        self.signing = ""  # signing mode according to the first record, if that is signed
        # Number of records that keys vouch for, by the time when they were replaced: the highest count comes last.
        self.vouched = {claim.replaced: claim.count for claim in reversed(self._claims)}
        self._told: set[str] = set()

    def is_first(self, kind: str) -> bool:
        """Return True for the first fault of a kind that would otherwise be reported for every record."""
        if kind in self._told:
            return False
        self._told.add(kind)
        return True

    def take(self, record: KeptRecord, place: RecordPlace | None) -> Faults:
        """Yield the faults of the next record; `place` is None if the record cannot be trusted."""
        sequence = record.sequence
        if sequence <= self.count:
            yield self._out_of_place(record)
            return
        told = place.stream_digest if place is not None else self._digest.hex()
        if sequence > self.count + 1:
            self._gaps.append(RecordGap(self.count + 1, sequence - 1, record.audit_id))
            if len(self._gaps) > 10_000:
                yield self._missing(self._gaps.pop(0))
            yield from self._judge(sequence - 1, told, record.audit_id)
        elif told != self._digest.hex() and sequence == 1:
            message = "it is the first of its stream but refers to earlier records"
            yield TrailFault("forged", message, record.audit_id, self._stream, 1)
        elif told != self._digest.hex():
            message = f"it is not the record that {record.audit_id} was sealed behind: changed or put in its place"
            yield TrailFault("changed", message, self._last, self._stream, sequence - 1)
        self.count, self._last = sequence, record.audit_id
        self._digest = records.roll(_bytes(told), _bytes(record.audit_id))
        yield from self._judge(sequence, self._digest.hex(), record.audit_id)

    def end(self) -> Faults:
        """Yield the faults that are certain after the last record."""
        for gap in self._gaps:
            yield self._missing(gap)
        if self._claims:
            claim = self._claims[0]
            lost = claim.count - self.count
            yield TrailFault(
                "truncated",
                f"the stream ends with record {self.count}, and checkpoint {claim.checkpoint_id} had seen "
                f"{claim.count}: {_records(lost)} cut off",
                stream=self._stream,
                sequence=self.count + 1,
                checkpoint_id=claim.checkpoint_id,
            )

    def _judge(self, count: int, digest: str, audit_id: str) -> Faults:
        while self._claims and self._claims[-1].count <= count:
            claim = self._claims.pop()
            if claim.count == count and claim.digest != digest:
                signed = f"checkpoint {claim.checkpoint_id} was signed over"
                message = f"it is not the record that {signed}, or one before it is not"
                yield TrailFault("changed", message, audit_id, self._stream, count, claim.checkpoint_id)

    def _out_of_place(self, record: KeptRecord) -> TrailFault:
        sequence = record.sequence
        for index, gap in enumerate(self._gaps):
            if gap.first <= sequence <= gap.last:
                parts = (RecordGap(gap.first, sequence - 1, gap.behind), RecordGap(sequence + 1, gap.last, gap.behind))
                self._gaps[index : index + 1] = [part for part in parts if part.first <= part.last]
                message = f"it comes after record {self.count} of its stream but belongs before {gap.behind}"
                return TrailFault("reordered", message, record.audit_id, self._stream, sequence)
        message = f"its stream has a record with the number {sequence} already: repeated or added"
        return TrailFault("added", message, record.audit_id, self._stream, sequence)

    def _missing(self, gap: RecordGap) -> TrailFault:
        which = f"record {gap.first}" if gap.first == gap.last else f"records {gap.first} to {gap.last}"
        message = f"{which} of the stream, before {gap.behind}: {_records(gap.last - gap.first + 1)} removed"
        return TrailFault("removed", message, stream=self._stream, sequence=gap.first)


def _records(count: int) -> str:
    return "one record was" if count == 1 else f"{count} records were"


def _bytes(text: str) -> bytes:
    """Decode hexadecimal digits; return empty bytes for other text, which another fault reports."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


class _TrustedCheckpoint(msgspec.Struct, frozen=True):
    checkpoint_id: str
    content: Checkpoint
    replaced: float  # time at which its key was replaced; infinity for the current key


class CheckpointCheck:
    def __init__(self, keys: TrustedKeys, expected: Expectation | None = None) -> None:
        self._keys = keys
        self._expected = expected or Expectation()
        self._wanted: dict[str, str] = {}  # checkpoints referred to but not seen yet, by the one that refers to them
        self._seen: list[_TrustedCheckpoint] = []
        self._followers: dict[str, str] = {}
        self.ids: set[str] = set()
        self.claims: dict[str, list[StreamClaim]] = {}  # claims of the trusted checkpoints by stream, after `end`
        self.count = 0
        self.last = ""
        self.signing = ""  # change of signing that the last trusted checkpoint to record one has recorded, and its time
        self.signing_at = ""

    def take(self, kept: KeptCheckpoint) -> Faults:
        """Yield the faults of the next checkpoint. An untrusted checkpoint makes no claims."""
        self.count += 1
        self.last = kept.checkpoint_id
        repeated = kept.checkpoint_id in self.ids
        self.ids.add(kept.checkpoint_id)
        checkpoint = self._read(kept)
        if isinstance(checkpoint, TrailFault):
            yield checkpoint
            return
        if repeated:
            yield _fault("it appears twice", kept.checkpoint_id)
            return
        follower = self._wanted.pop(kept.checkpoint_id, None)
        if follower is not None:
            yield _fault(f"it comes after {follower}, which follows it: the order was changed", kept.checkpoint_id)
        content = checkpoint.content
        previous = content.previous_checkpoint_id
        if previous != FIRST:
            if previous not in self.ids:
                self._wanted[previous] = kept.checkpoint_id
            other = self._followers.setdefault(previous, kept.checkpoint_id)
            if other != kept.checkpoint_id:
                yield _fault(f"it follows {previous}, which {other} already follows", kept.checkpoint_id)
        if self._expected.server_ids and content.server_id not in self._expected.server_ids:
            yield _fault(f"it is of the server {content.server_id[:100]!r}", kept.checkpoint_id, "foreign")
        if content.signing not in ("", self.signing):
            self.signing, self.signing_at = content.signing, content.issued_at
        self._seen.append(checkpoint)

    def end(self) -> Faults:
        """Yield the faults that are certain after the last checkpoint."""
        for missing, follower in self._wanted.items():
            message = f"checkpoint {missing}, which {follower} follows, is not there"
            yield TrailFault("checkpoint", message, checkpoint_id=missing)
        # A checkpoint vouches for those it follows, so the newest key among its successors counts.
        vouched: dict[str, float] = {}
        for seen in reversed(self._seen):
            best = max(seen.replaced, vouched.get(seen.checkpoint_id, 0.0))
            previous = seen.content.previous_checkpoint_id
            vouched[seen.checkpoint_id] = best
            vouched[previous] = max(best, vouched.get(previous, 0.0))
        for seen in self._seen:
            best = vouched[seen.checkpoint_id]
            issued = read_instant(seen.content.issued_at)
            if best <= seen.replaced and issued is not None and issued > seen.replaced:
                yield _fault("it was signed with a replaced key, after that key was replaced", seen.checkpoint_id)
            for bound in seen.content.streams:
                claim = StreamClaim(bound.count, bound.digest, seen.checkpoint_id, seen.content.signing == BEGINS, best)
                self.claims.setdefault(bound.stream, []).append(claim)

    def _read(self, kept: KeptCheckpoint) -> _TrustedCheckpoint | TrailFault:
        if jws_id(kept.jws) != kept.checkpoint_id:
            return _fault("its content is not what its id was made of", kept.checkpoint_id)
        compact, checkpoint = parse_compact(kept.jws), read_checkpoint(kept.jws)
        if compact is None or checkpoint is None:
            return _fault("it is not a valid checkpoint", kept.checkpoint_id)
        verdict = check_signature(compact, self._keys)
        if verdict == "unsigned":
            return _fault("it is not signed", kept.checkpoint_id)
        if verdict in ("bad", "unknown-key"):
            return _fault(_describe_signature(verdict, compact), kept.checkpoint_id)
        return _TrustedCheckpoint(kept.checkpoint_id, checkpoint, self._expected.replaced.get(compact.key_id, inf))


def _describe_signature(verdict: SignatureStatus, compact: Jws) -> str:
    if verdict == "bad":
        return "its signature is not by the key it names"
    return f"it is signed by {compact.key_id[:100]!r}, which is not a trusted key"


def _fault(message: str, checkpoint_id: str, kind: TrailFaultKind = "checkpoint") -> TrailFault:
    return TrailFault(kind, f"checkpoint {checkpoint_id}: {message}", checkpoint_id=checkpoint_id)


@dataclass(slots=True)
class Tally:
    records: int = 0
    agents: int = 0
    streams: int = 0
    checkpoints: int = 0
    signed: int = 0  # records with a valid signature
    unsigned: int = 0
    unchecked: int = 0  # records with a signature that no key could check
    behind: int = 0  # records not yet covered by a checkpoint: the end of each stream
    last_checkpoint: str = ""
    adopted: int = 0  # Unsigned records from before signing began. The checkpoint of that moment covers them.
    unproven: int = 0  # Records since signing was switched off, which is recorded. Anyone could have written them.
    signing: str = ""  # last recorded change of signing, `begins` or `ends`, and its time
    signing_at: str = ""
    faults: int = 0


class Verification:
    def __init__(
        self, trail: Trail, keys: TrustedKeys, expected: Expectation | None = None, *, most_heads: int = _MOST_HEADS
    ) -> None:
        self._trail = trail
        self._keys = keys
        self._expected = expected or Expectation()
        self._most_heads = most_heads
        self._checkpoints = CheckpointCheck(keys, self._expected)
        self._unsigned: dict[str, KeptRecord] = {}  # first of each stream that only a recorded end of signing explains
        self._streams: dict[str, StreamCheck] = {}
        self._heads: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._named: dict[str, KeptRecord] = {}  # checkpoints named by records and not seen yet
        self.tally = Tally()

    async def faults(self) -> AsyncIterator[TrailFault]:
        """Yield every fault. `tally` is complete at the end."""
        async for fault in self._all():
            self.tally.faults += 1
            yield fault

    async def _all(self) -> AsyncIterator[TrailFault]:
        async for checkpoint in self._trail.checkpoints():
            for fault in self._checkpoints.take(checkpoint):
                yield fault
        for fault in self._checkpoints.end():
            yield fault
        self._streams = {stream: StreamCheck(stream, claims) for stream, claims in self._checkpoints.claims.items()}
        async for record in self._trail.records():
            async for fault in self._take(record):
                yield fault
        for fault in self._remaining():
            yield fault
        for checkpoint_id, record in self._named.items():
            # It may have been written while records were read; then it is there now.
            if await self._trail.find_checkpoint(checkpoint_id) is None:
                message = f"checkpoint {checkpoint_id}, which record {record.audit_id} was sealed behind, is not there"
                place = (record.audit_id, record.stream, record.sequence, checkpoint_id)
                yield TrailFault("checkpoint", message, *place)
        tally = self.tally
        tally.agents = await self._trail.agents()
        tally.streams = sum(1 for check in self._streams.values() if check.count)
        tally.checkpoints = self._checkpoints.count
        tally.last_checkpoint = self._checkpoints.last
        tally.signing, tally.signing_at = self._checkpoints.signing, self._checkpoints.signing_at
        tally.behind = sum(max(check.count - check.bound, 0) for check in self._streams.values())

    async def _take(self, record: KeptRecord) -> AsyncIterator[TrailFault]:
        self.tally.records += 1
        check = self._streams.get(record.stream)
        if check is None:
            check = self._streams[record.stream] = StreamCheck(record.stream)
        place = None
        read = _read(record)
        if isinstance(read, TrailFault):
            yield read
        else:
            compact, place = read
            for fault in self._judge_signature(record, compact, place, check):
                yield fault
        before = check.count
        for fault in check.take(record, place):
            yield fault
        if check.count == before:  # it does not stand where it belongs, which has been said
            return
        if place is not None:
            if place.checkpoint_id and place.checkpoint_id not in self._checkpoints.ids:
                self._named.setdefault(place.checkpoint_id, record)
            link = await self._judge_link(record, place)
            if link is not None:
                yield link
        key = (record.stream, record.agent_id)
        self._heads[key] = record.audit_id
        self._heads.move_to_end(key)
        if len(self._heads) > self._most_heads:
            self._heads.popitem(last=False)

    def _judge_signature(self, record: KeptRecord, compact: Jws, place: RecordPlace, check: StreamCheck) -> Faults:
        tally = self.tally
        verdict = check_signature(compact, self._keys)
        tally.signed += verdict == "good"
        tally.unchecked += verdict == "unchecked"
        tally.unsigned += verdict == "unsigned"
        if place.sequence == 1 and not check.has_first and verdict in ("good", "unchecked", "unsigned"):
            check.has_first = True
            check.signing = place.signing if verdict != "unsigned" else ""
        if check.is_first("server") and self._expected.server_ids and place.server_id not in self._expected.server_ids:
            yield _record_fault("foreign", f"its stream is of the server {place.server_id[:100]!r}", record)
        if verdict in ("bad", "unknown-key"):
            yield _record_fault("forged", _describe_signature(verdict, compact), record)
        elif verdict == "good":
            yield from self._judge_age(record, compact, place, check)
        elif verdict == "unsigned":
            yield from self._judge_missing(record, place, check)

    def _judge_age(self, record: KeptRecord, compact: Jws, place: RecordPlace, check: StreamCheck) -> Faults:
        """Check that a record by a replaced key is from before its end, or covered by a newer key."""
        replaced = self._expected.replaced.get(compact.key_id)
        issued = read_instant(place.issued_at) if replaced is not None and place.issued_at else None
        if replaced is None or issued is None or issued <= replaced:
            return
        if place.sequence <= max((count for time, count in check.vouched.items() if time > replaced), default=0):
            return
        if check.is_first("replaced-key"):
            message = (
                "it was signed with a replaced key, after that key was replaced. If the server has not been "
                "restarted since, restart it"
            )
            yield _record_fault("forged", message, record)

    def _judge_missing(self, record: KeptRecord, place: RecordPlace, check: StreamCheck) -> Faults:
        """Check that a record may be without a signature. What the record itself says about it does not count."""
        if check.signing == "each":
            yield _record_fault("unsigned", "it is not signed, although its stream signs each record", record)
        elif check.signing == "checkpoints":
            must = self._expected.sign not in (None, "checkpoints") and place.sequence > check.bound
            if must and check.is_first("unsigned"):
                message = "it is not signed, no checkpoint covers it, and the configuration does not allow that"
                yield _record_fault("unsigned", message, record)
        elif check.has_first:
            if place.sequence <= check.adopted:
                self.tally.adopted += 1
            else:
                self.tally.unproven += 1
                self._unsigned.setdefault(record.stream, record)

    def _remaining(self) -> Faults:
        for check in self._streams.values():
            yield from check.end()
        tally, checkpoints = self.tally, self._checkpoints
        required = self._keys or tally.signed or tally.unchecked or checkpoints.count
        ended = checkpoints.signing == ENDS
        if not required or (ended and self._expected.sign in (None, "none")):
            return
        for record in self._unsigned.values():
            message = "it is not signed, and no checkpoint says that signing was off when it was written"
            if ended or not checkpoints.count:
                message += ". If signing was switched on since the server last started, start it once"
            yield _record_fault("unsigned", message, record)

    async def _judge_link(self, record: KeptRecord, place: RecordPlace) -> TrailFault | None:
        last = self._heads.get((record.stream, record.agent_id))
        previous = place.previous_audit_id
        if previous == last:
            return None
        if previous == FIRST:
            if last is None:
                return None
            return _record_fault("forged", "it claims to be the first of its agent but is not", record)
        found = await self._trail.find(previous)
        if found is None:
            message = f"{previous}, the record before {record.audit_id} in the chain of its agent, is not there"
            return TrailFault("removed", message, previous, record.stream)
        if found.agent_id != record.agent_id:
            return _record_fault("forged", f"it follows {previous}, a record of another agent", record)
        if found.position > record.position:
            return _record_fault("reordered", f"it comes before {previous}, which it follows", record)
        return None


def _read(record: KeptRecord) -> tuple[Jws, RecordPlace] | TrailFault:
    """Split a record and return its claimed place, or why it cannot be trusted."""
    if jws_id(record.jws) != record.audit_id:
        return _record_fault("changed", "its content is not what its Audit-ID was made of", record)
    compact = parse_compact(record.jws)
    place = records.place_in(compact) if compact is not None else None
    if compact is None or compact.header.get("typ") != RECORD or place is None:
        return _record_fault("changed", "it is not a valid attribution record", record)
    if (place.stream, place.sequence, place.agent_id) != (record.stream, record.sequence, record.agent_id):
        message = (
            f"it is kept as record {record.sequence} of stream {record.stream} by agent "
            f"{record.agent_id or '(anonymous)'}, and says that it is record {place.sequence} of {place.stream} "
            f"by {place.agent_id or '(anonymous)'}"
        )
        return _record_fault("changed", message, record)
    return compact, place


def _record_fault(kind: TrailFaultKind, message: str, record: KeptRecord) -> TrailFault:
    return TrailFault(kind, message, record.audit_id, record.stream, record.sequence)
