"""Checkpoints: what they say, and that nothing else passes for one."""

from __future__ import annotations

import pytest
from tests.state.audit.trails import ANN, KEY, KEYS, NOW, make_sealer

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.checkpoints import BoundStream, make_checkpoint, read_checkpoint
from bespeak.state.audit.record import FIRST, encode_header, jws_id, parse_compact
from bespeak.state.audit.sealer import StreamHead
from bespeak.state.identity.key_files import SigningKey, check_signature


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
