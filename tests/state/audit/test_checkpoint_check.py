"""The chain of checkpoints."""

from __future__ import annotations

from tests.state.audit.trails import KEY, KEYS, NOW

from bespeak.state.audit.checkpoints import make_checkpoint
from bespeak.state.audit.record import FIRST, KeptCheckpoint
from bespeak.state.audit.sealer import StreamHead
from bespeak.state.audit.verification import CheckpointCheck, Claim, TrailFault
from bespeak.state.identity.key_files import SigningKey


def make_chain(count: int) -> list[KeptCheckpoint]:
    previous, made = FIRST, []
    for number in range(1, count + 1):
        head = StreamHead("s1", number, bytes([number]) * 32)
        one = make_checkpoint(
            SigningKey(KEY), [head], server_id="rooms", issued_at=NOW, previous=previous, position=number
        )
        previous = one.checkpoint_id
        made.append(KeptCheckpoint(number, one.checkpoint_id, one.jws))
    return made


CHAIN = make_chain(4)


def follow(chain: list[KeptCheckpoint]) -> tuple[list[TrailFault], CheckpointCheck]:
    check = CheckpointCheck(KEYS)
    faults = [fault for kept in chain for fault in check.take(kept)]
    return [*faults, *check.end()], check


def test_complete_chain_yields_its_claims() -> None:
    faults, check = follow(CHAIN)
    assert faults == []
    assert check.claims["s1"][-1] == Claim(4, "04" * 32, CHAIN[3].checkpoint_id)
    assert (check.count, check.last) == (4, CHAIN[3].checkpoint_id)


def test_missing_checkpoint_is_named_by_its_successor() -> None:
    faults, _ = follow([CHAIN[0], *CHAIN[2:]])
    assert [fault.checkpoint_id for fault in faults] == [CHAIN[1].checkpoint_id]


def test_missing_first_checkpoint_is_named() -> None:
    faults, _ = follow(CHAIN[2:])
    assert [fault.checkpoint_id for fault in faults] == [CHAIN[1].checkpoint_id]


def test_moved_or_repeated_checkpoint_is_named() -> None:
    faults, _ = follow([CHAIN[0], CHAIN[2], CHAIN[1], CHAIN[3], CHAIN[3]])
    assert [fault.checkpoint_id for fault in faults] == [CHAIN[1].checkpoint_id, CHAIN[3].checkpoint_id]


def test_invalid_checkpoint_yields_no_claims() -> None:
    faults, check = follow([KeptCheckpoint(1, "0" * 64, CHAIN[0].jws), KeptCheckpoint(2, "x", "nonsense")])
    assert [fault.kind for fault in faults] == ["checkpoint", "checkpoint"]
    assert check.claims == {}
