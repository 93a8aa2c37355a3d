"""Verification of checkpoints: complete, in order and signed, with their claims about streams."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from bespeak.protocol.exchange.instant import read_instant
from bespeak.state.audit.checkpoint import BEGINS, Checkpoint, read_checkpoint
from bespeak.state.audit.compact import jws_id, parse_compact
from bespeak.state.audit.expectation import Expectation
from bespeak.state.audit.reading import KeptCheckpoint
from bespeak.state.audit.record import FIRST
from bespeak.state.audit.signature_status import judge
from bespeak.state.audit.stream_check import Claim
from bespeak.state.audit.trail_fault import TrailFault
from bespeak.state.audit.trusted_keys import TrustedKeys


class _Seen(msgspec.Struct, frozen=True):
    """A trusted checkpoint."""

    checkpoint_id: str
    content: Checkpoint
    replaced: float
    """Time at which its key was replaced; infinity for the current key."""


class CheckpointCheck:
    """Follows the checkpoints from the first one."""

    def __init__(self, keys: TrustedKeys, expected: Expectation | None = None) -> None:
        self._keys = keys
        self._expected = expected or Expectation()
        self._wanted: dict[str, str] = {}
        """Checkpoints referred to but not seen yet, with the checkpoint that refers to them."""
        self._seen: list[_Seen] = []
        self._followers: dict[str, str] = {}
        self.ids: set[str] = set()
        self.claims: dict[str, list[Claim]] = {}
        """Claims of the trusted checkpoints by stream, after `end`."""
        self.count = 0
        self.last = ""
        self.signing = ""
        """Change of signing that the last trusted checkpoint to record one has recorded, and its time."""
        self.signing_at = ""

    def take(self, kept: KeptCheckpoint) -> Iterator[TrailFault]:
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
            yield _foreign(checkpoint)
        if content.signing not in ("", self.signing):
            self.signing, self.signing_at = content.signing, content.issued_at
        self._seen.append(checkpoint)

    def end(self) -> Iterator[TrailFault]:
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
            if best <= seen.replaced and _is_later(seen.content.issued_at, seen.replaced):
                yield _fault("it was signed with a replaced key, after that key was replaced", seen.checkpoint_id)
            for bound in seen.content.streams:
                begins = seen.content.signing == BEGINS
                claim = Claim(bound.count, bound.digest, seen.checkpoint_id, begins, best)
                self.claims.setdefault(bound.stream, []).append(claim)

    def _read(self, kept: KeptCheckpoint) -> _Seen | TrailFault:
        if jws_id(kept.jws) != kept.checkpoint_id:
            return _fault("its content is not what its id was made of", kept.checkpoint_id)
        compact, checkpoint = parse_compact(kept.jws), read_checkpoint(kept.jws)
        if compact is None or checkpoint is None:
            return _fault("it is not a valid checkpoint", kept.checkpoint_id)
        verdict = judge(compact, self._keys)
        if verdict == "unsigned":
            return _fault("it is not signed", kept.checkpoint_id)
        if verdict == "bad":
            return _fault("its signature is not by the key it names", kept.checkpoint_id)
        kid = compact.key_id
        if verdict == "unknown-key":
            return _fault(f"it is signed by {kid[:100]!r}, which is not a trusted key", kept.checkpoint_id)
        return _Seen(kept.checkpoint_id, checkpoint, self._expected.replaced.get(kid, inf))


def _is_later(issued_at: str, replaced: float) -> bool:
    issued = read_instant(issued_at)
    return issued is not None and issued > replaced


def _foreign(seen: _Seen) -> TrailFault:
    message = f"checkpoint {seen.checkpoint_id}: it is of the server {seen.content.server_id[:100]!r}"
    return TrailFault("foreign", message, checkpoint_id=seen.checkpoint_id)


def _fault(message: str, checkpoint_id: str) -> TrailFault:
    return TrailFault("checkpoint", f"checkpoint {checkpoint_id}: {message}", checkpoint_id=checkpoint_id)
