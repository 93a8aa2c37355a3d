"""Verification of checkpoints: complete, in order and signed, with their claims about streams."""

from __future__ import annotations

from collections.abc import Iterator

from bespeak.state.audit.checkpoint import Checkpoint, read_checkpoint
from bespeak.state.audit.compact import jws_id, parse_compact
from bespeak.state.audit.reading import KeptCheckpoint
from bespeak.state.audit.record import FIRST
from bespeak.state.audit.signature_status import judge
from bespeak.state.audit.stream_check import Claim
from bespeak.state.audit.trail_fault import TrailFault
from bespeak.state.audit.trusted_keys import TrustedKeys


class CheckpointCheck:
    """Follows the checkpoints from the first one."""

    def __init__(self, keys: TrustedKeys) -> None:
        self._keys = keys
        self._wanted: dict[str, str] = {}
        """Checkpoints referred to but not seen yet, with the checkpoint that refers to them."""
        self.ids: set[str] = set()
        self.claims: dict[str, list[Claim]] = {}
        self.count = 0
        self.last = ""

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
            yield _fault("it appears twice", kept)
            return
        follower = self._wanted.pop(kept.checkpoint_id, None)
        if follower is not None:
            yield _fault(f"it comes after {follower}, which follows it: the order was changed", kept)
        previous = checkpoint.previous_checkpoint_id
        if previous != FIRST and previous not in self.ids:
            self._wanted[previous] = kept.checkpoint_id
        for bound in checkpoint.streams:
            claim = Claim(bound.count, bound.digest, kept.checkpoint_id)
            self.claims.setdefault(bound.stream, []).append(claim)

    def end(self) -> Iterator[TrailFault]:
        """Yield the faults that are certain after the last checkpoint."""
        for missing, follower in self._wanted.items():
            message = f"checkpoint {missing}, which {follower} follows, is not there"
            yield TrailFault("checkpoint", message, checkpoint_id=missing)

    def _read(self, kept: KeptCheckpoint) -> Checkpoint | TrailFault:
        if jws_id(kept.jws) != kept.checkpoint_id:
            return _fault("its content is not what its id was made of", kept)
        compact, checkpoint = parse_compact(kept.jws), read_checkpoint(kept.jws)
        if compact is None or checkpoint is None:
            return _fault("it is not a valid checkpoint", kept)
        verdict = judge(compact, self._keys)
        if verdict == "unsigned":
            return _fault("it is not signed", kept)
        if verdict == "bad":
            return _fault("its signature is not by the key it names", kept)
        if verdict == "unknown-key":
            return _fault(f"it is signed by {compact.header.kid[:100]!r}, which is not a trusted key", kept)
        return checkpoint


def _fault(message: str, kept: KeptCheckpoint) -> TrailFault:
    return TrailFault("checkpoint", f"checkpoint {kept.checkpoint_id}: {message}", checkpoint_id=kept.checkpoint_id)
