"""Verification of a trail from its beginning, naming every change since it was written.

Memory grows with the number of checkpoints and streams, not of records.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

from bespeak.protocol.exchange.instant import read_instant
from bespeak.state.audit.checkpoint import ENDS
from bespeak.state.audit.checkpoint_check import CheckpointCheck
from bespeak.state.audit.compact import jws_id, parse_compact
from bespeak.state.audit.expectation import Expectation
from bespeak.state.audit.reading import KeptRecord, place_in
from bespeak.state.audit.record import FIRST, Place
from bespeak.state.audit.sealer import RECORD
from bespeak.state.audit.signature_status import judge
from bespeak.state.audit.stream_check import StreamCheck
from bespeak.state.audit.trail import Trail
from bespeak.state.audit.trail_fault import Kind, TrailFault
from bespeak.state.audit.trusted_keys import TrustedKeys
from bespeak.state.identity.jws import Jws

_MOST_HEADS: Final = 100_000
"""Limit of chains whose last record is in memory; others are looked up."""


@dataclass(slots=True)
class Tally:
    """Counts of a verification."""

    records: int = 0
    agents: int = 0
    streams: int = 0
    checkpoints: int = 0
    signed: int = 0
    """Records with a valid signature."""
    unsigned: int = 0
    unchecked: int = 0
    """Records with a signature that no key could check."""
    behind: int = 0
    """Records not yet covered by a checkpoint: the end of each stream."""
    last_checkpoint: str = ""
    adopted: int = 0
    """Unsigned records from before signing began. The checkpoint of that moment covers them."""
    unproven: int = 0
    """Records since signing was switched off, which is recorded. Anyone could have written them."""
    signing: str = ""
    """Last recorded change of signing, `begins` or `ends`, and its time."""
    signing_at: str = ""
    faults: int = 0


class Verification:
    """One verification of a trail."""

    def __init__(
        self, trail: Trail, keys: TrustedKeys, expected: Expectation | None = None, *, most_heads: int = _MOST_HEADS
    ) -> None:
        self._trail = trail
        self._keys = keys
        self._expected = expected or Expectation()
        self._most_heads = most_heads
        self._checkpoints = CheckpointCheck(keys, self._expected)
        self._unsigned: dict[str, KeptRecord] = {}
        """First record of each stream that only a recorded end of signing could explain."""
        self._streams: dict[str, StreamCheck] = {}
        self._heads: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._named: dict[str, KeptRecord] = {}
        """Checkpoints named by records and not seen yet."""
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
        for stream, claims in self._checkpoints.claims.items():
            check = self._streams[stream] = StreamCheck(stream)
            for claim in claims:
                check.claim(claim)
            check.begin()
        async for record in self._trail.records():
            async for fault in self._take(record):
                yield fault
        for fault in self._remaining():
            yield fault
        for checkpoint_id, record in self._named.items():
            # It may have been written while records were read; then it is there now.
            if await self._trail.find_checkpoint(checkpoint_id) is None:
                yield _missing_checkpoint(checkpoint_id, record)
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
        self._advance(record)

    def _judge_signature(
        self, record: KeptRecord, compact: Jws, place: Place, check: StreamCheck
    ) -> Iterator[TrailFault]:
        tally = self.tally
        verdict = judge(compact, self._keys)
        tally.signed += verdict == "good"
        tally.unchecked += verdict == "unchecked"
        tally.unsigned += verdict == "unsigned"
        if place.sequence == 1 and not check.has_first and verdict in ("good", "unchecked", "unsigned"):
            check.has_first = True
            check.signing = place.signing if verdict != "unsigned" else ""
        if check.is_first("server") and self._expected.server_ids and place.server_id not in self._expected.server_ids:
            yield _fault("foreign", f"its stream is of the server {place.server_id[:100]!r}", record)
        if verdict == "bad":
            yield _fault("forged", "its signature is not by the key it names", record)
        elif verdict == "unknown-key":
            yield _fault("forged", f"it is signed by {compact.key_id[:100]!r}, which is not a trusted key", record)
        elif verdict == "good":
            yield from self._judge_age(record, compact, place, check)
        elif verdict == "unsigned":
            yield from self._judge_missing(record, place, check)

    def _judge_age(self, record: KeptRecord, compact: Jws, place: Place, check: StreamCheck) -> Iterator[TrailFault]:
        """Check that a record by a replaced key is from before its end, or covered by a newer key."""
        replaced = self._expected.replaced.get(compact.key_id)
        issued = read_instant(place.issued_at) if replaced is not None and place.issued_at else None
        if replaced is None or issued is None or issued <= replaced or place.sequence <= check.vouched_after(replaced):
            return
        if check.is_first("replaced-key"):
            message = (
                "it was signed with a replaced key, after that key was replaced. If the server has not been "
                "restarted since, restart it"
            )
            yield _fault("forged", message, record)

    def _judge_missing(self, record: KeptRecord, place: Place, check: StreamCheck) -> Iterator[TrailFault]:
        """Check that a record may be without a signature. What the record itself says about it does not count."""
        if check.signing == "each":
            yield _fault("unsigned", "it is not signed, although its stream signs each record", record)
        elif check.signing == "checkpoints":
            must = self._expected.sign not in (None, "checkpoints") and place.sequence > check.bound
            if must and check.is_first("unsigned"):
                message = "it is not signed, no checkpoint covers it, and the configuration does not allow that"
                yield _fault("unsigned", message, record)
        elif check.has_first:
            if place.sequence <= check.adopted:
                self.tally.adopted += 1
            else:
                self.tally.unproven += 1
                self._unsigned.setdefault(record.stream, record)

    def _remaining(self) -> Iterator[TrailFault]:
        """Yield the faults that are certain after the last record."""
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
            yield _fault("unsigned", message, record)

    async def _judge_link(self, record: KeptRecord, place: Place) -> TrailFault | None:
        """Check that the previous record in the agent's chain exists."""
        last = self._heads.get((record.stream, record.agent_id))
        previous = place.previous_audit_id
        if previous == last:
            return None
        if previous == FIRST:
            if last is None:
                return None
            return _fault("forged", "it claims to be the first of its agent but is not", record)
        found = await self._trail.find(previous)
        if found is None:
            message = f"{previous}, the record before {record.audit_id} in the chain of its agent, is not there"
            return TrailFault("removed", message, previous, record.stream)
        if found.agent_id != record.agent_id:
            return _fault("forged", f"it follows {previous}, a record of another agent", record)
        if found.position > record.position:
            return _fault("reordered", f"it comes before {previous}, which it follows", record)
        return None

    def _advance(self, record: KeptRecord) -> None:
        key = (record.stream, record.agent_id)
        self._heads[key] = record.audit_id
        self._heads.move_to_end(key)
        if len(self._heads) > self._most_heads:
            self._heads.popitem(last=False)


def _read(record: KeptRecord) -> tuple[Jws, Place] | TrailFault:
    """Split a record and return its claimed place, or why it cannot be trusted."""
    if jws_id(record.jws) != record.audit_id:
        return _fault("changed", "its content is not what its Audit-ID was made of", record)
    compact = parse_compact(record.jws)
    place = place_in(compact) if compact is not None else None
    if compact is None or compact.header.get("typ") != RECORD or place is None:
        return _fault("changed", "it is not a valid attribution record", record)
    told = (place.stream, place.sequence, place.agent_id)
    if told != (record.stream, record.sequence, record.agent_id):
        message = (
            f"it is kept as record {record.sequence} of stream {record.stream} by agent "
            f"{record.agent_id or '(anonymous)'}, and says that it is record {place.sequence} of {place.stream} "
            f"by {place.agent_id or '(anonymous)'}"
        )
        return _fault("changed", message, record)
    return compact, place


def _fault(kind: Kind, message: str, record: KeptRecord) -> TrailFault:
    return TrailFault(kind, message, record.audit_id, record.stream, record.sequence)


def _missing_checkpoint(checkpoint_id: str, record: KeptRecord) -> TrailFault:
    message = f"checkpoint {checkpoint_id}, which record {record.audit_id} was sealed behind, is not there"
    return TrailFault("checkpoint", message, record.audit_id, record.stream, record.sequence, checkpoint_id)
