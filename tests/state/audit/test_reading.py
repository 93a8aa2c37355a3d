"""Reading records without believing them."""

from __future__ import annotations

import pytest
from tests.state.audit.trails import ANN, make_sealer

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import encode_header, payload_of, place_of


def token(payload: bytes) -> str:
    return (encode_header({"alg": "none"}) + encode64(payload)).decode() + "."


def test_record_has_a_place_and_a_payload() -> None:
    sealer = make_sealer()
    sealer.learn(ANN, None)
    jws = sealer.seal(ANN, {"agent_id": ANN, "status": 200}).jws
    place = place_of(jws)
    assert place is not None
    assert (place.stream, place.sequence, place.agent_id, place.signing) == ("s1", 1, ANN, "each")
    content = payload_of(jws)
    assert content is not None
    assert content["status"] == 200


@pytest.mark.parametrize("payload", [b"", b"[]", b"7", b"{", b"[" * 100_000])
def test_invalid_record_has_neither_place_nor_payload(payload: bytes) -> None:
    assert place_of(token(payload)) is None
    assert payload_of(token(payload)) is None


def test_an_object_without_a_place_has_none() -> None:
    assert place_of(token(b'{"stream": 1}')) is None
    assert payload_of(token(b'{"stream": 1}')) == {"stream": 1}
