"""Verification of one stream: its records are complete, in order and as its checkpoints claim."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

import msgspec

from bespeak.state.audit.reading import KeptRecord
from bespeak.state.audit.record import DIGEST_SIZE, Place, roll
from bespeak.state.audit.trail_fault import TrailFault

_MOST_GAPS: Final = 10_000


class Claim(msgspec.Struct, frozen=True):
    """The claim of a checkpoint about a stream."""

    count: int
    digest: str
    checkpoint_id: str
    begins: bool = False
    """True if signing began with this checkpoint."""
    replaced: float = inf
    """Time at which the key that vouches for it was replaced; infinity for the current key."""


class Gap(msgspec.Struct, frozen=True):
    """Records missing from their place."""

    first: int
    last: int
    behind: str
    """Record found in their place."""


class StreamCheck:
    """Follows one stream from its first record."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._digest = bytes(DIGEST_SIZE)
        self._last = ""
        self._gaps: list[Gap] = []
        self._claims: list[Claim] = []
        self.count = 0
        self.bound = 0
        """Number of records that checkpoints cover."""
        self.adopted = 0
        """Number of records from before signing began."""
        self.has_first = False
        """True if the first record of the stream was read."""
        self.signing = ""
        """Signing mode according to the first record, if that is signed."""
        self._vouched: dict[float, int] = {}
        self._told: set[str] = set()

    def claim(self, claim: Claim) -> None:
        """Add the claim of a checkpoint. All claims come before the records, in the order they were written."""
        self._claims.append(claim)
        self.bound = max(self.bound, claim.count)
        self._vouched[claim.replaced] = max(claim.count, self._vouched.get(claim.replaced, 0))
        if claim.begins:
            self.adopted = max(self.adopted, claim.count)

    def vouched_after(self, replaced: float) -> int:
        """Return the number of records that are covered by keys newer than one replaced at this time."""
        return max((count for time, count in self._vouched.items() if time > replaced), default=0)

    def is_first(self, kind: str) -> bool:
        """Return True for the first fault of a kind that would otherwise be reported for every record."""
        if kind in self._told:
            return False
        self._told.add(kind)
        return True

    def begin(self) -> None:
        """End the claims."""
        self._claims.sort(key=lambda claim: claim.count, reverse=True)

    def take(self, record: KeptRecord, place: Place | None) -> Iterator[TrailFault]:
        """Yield the faults of the next record; `place` is None if the record cannot be trusted."""
        sequence = record.sequence
        if sequence <= self.count:
            yield self._out_of_place(record)
            return
        told = place.stream_digest if place is not None else self._digest.hex()
        if sequence > self.count + 1:
            self._gaps.append(Gap(self.count + 1, sequence - 1, record.audit_id))
            if len(self._gaps) > _MOST_GAPS:
                yield self._missing(self._gaps.pop(0))
            yield from self._judge(sequence - 1, told, record.audit_id)
        elif told != self._digest.hex():
            yield self._another(record)
        self.count, self._last = sequence, record.audit_id
        self._digest = roll(_bytes(told), _bytes(record.audit_id))
        yield from self._judge(sequence, self._digest.hex(), record.audit_id)

    def end(self) -> Iterator[TrailFault]:
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

    def _judge(self, count: int, digest: str, audit_id: str) -> Iterator[TrailFault]:
        while self._claims and self._claims[-1].count <= count:
            claim = self._claims.pop()
            if claim.count == count and claim.digest != digest:
                yield TrailFault(
                    "changed",
                    f"it is not the record that checkpoint {claim.checkpoint_id} was signed over, or one before it "
                    "is not",
                    audit_id,
                    self._stream,
                    count,
                    claim.checkpoint_id,
                )

    def _another(self, record: KeptRecord) -> TrailFault:
        if record.sequence == 1:
            message = "it is the first of its stream but refers to earlier records"
            return TrailFault("forged", message, record.audit_id, self._stream, 1)
        message = f"it is not the record that {record.audit_id} was sealed behind: changed or put in its place"
        return TrailFault("changed", message, self._last, self._stream, record.sequence - 1)

    def _out_of_place(self, record: KeptRecord) -> TrailFault:
        sequence = record.sequence
        for index, gap in enumerate(self._gaps):
            if gap.first <= sequence <= gap.last:
                self._gaps[index : index + 1] = [
                    part
                    for part in (Gap(gap.first, sequence - 1, gap.behind), Gap(sequence + 1, gap.last, gap.behind))
                    if part.first <= part.last
                ]
                message = f"it comes after record {self.count} of its stream but belongs before {gap.behind}"
                return TrailFault("reordered", message, record.audit_id, self._stream, sequence)
        message = f"its stream has a record with the number {sequence} already: repeated or added"
        return TrailFault("added", message, record.audit_id, self._stream, sequence)

    def _missing(self, gap: Gap) -> TrailFault:
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
